"""Words about what an operator sees and does: circuits and plain requests. A mixin of the runner's World."""
import http.client
import json
import re

import expectations


class Operating:
    def breaker(self, place):
        """The listed entry of `api` (its server) or `api.r` (its tool); one that was never used is closed."""
        server, _, tool = place.partition(".")
        listed = self.pages("/v1/breakers", admin=True)
        untouched = {"state": "closed", "forced": None, "by": None, "why": None, "until": None, "probe": False, "last_cause": None, "generation": 1}
        return next((b for b in listed if b["server"] == server and (b["tool"] or "") == tool), untouched)

    def do_force(self, place, way, *words):
        """`force api open [for 2s] [-> STATUS]`, `force api.r close`"""
        status = words[words.index("->") + 1] if "->" in words else "200"
        body = {"reason": "the scenario says so"}
        if words[:1] == ("for",):
            body["for"] = words[1]
        answer = self.product.request("POST", f"/v1/breakers/{place.replace('.', '/')}/{way}", json.dumps(body), admin=True)
        self.check(str(answer.status) == status, f"force {place} {way}: {answer.status} {answer.body[:300]}")

    def wait_for_breaker(self, place, state):
        self.until(lambda: self.breaker(place)["state"] in state.split("/"), f"circuit {place} {state}")

    def expect_breaker(self, place, state, *pairs):
        """`breaker api.r open forced open until *`: its fields, as in the list."""
        found = {k: v if isinstance(v, (str, type(None))) else json.dumps(v) for k, v in self.breaker(place).items()}
        wrong = [f"{name} is {found[name]!r}" for name, wanted in zip(("state", *pairs[::2]), (state, *pairs[1::2]))
                 if not expectations.same(found[name], wanted)]
        if wrong:
            return f"circuit {place}: {', '.join(wrong)} in {found}"

    def expect_answer(self, listener, path, status, *words):
        """`answer admin /readyz 503 [words of the body]`: of a GET. `$a` is the id of the run a. A connection that the product ends at once has status `-`."""
        path = re.sub(r"\$(\w+)", lambda m: self.runs[m[1]], path)
        try:
            found = self.product.request("GET", path, admin=listener == "admin")
        except (OSError, http.client.HTTPException):
            return None if status == "-" else f"{path} has no answer"
        if str(found.status) not in status.split("/") or " ".join(words).lower() not in found.body.decode(errors="replace").lower():
            return f"{path}: {found.status} {found.body[:600]}"
