"""What a client's token sees of the others' runs: nothing, unless it was given an id. And who did what, in the audit.
Usage: tokens_test.py BINARY [unittest arguments]
"""
import json

from bench import Bench, main, token_line

MINE, OTHERS, OPS = "hf_mine.aaaa", "hf_others.bbbb", "hf_ops.cccc"


class Tokens(Bench):
    def start(self, **fields):
        servers = {"api": self.server(go="/go", hold="/hold")}
        tokens = [token_line("mine", "client", MINE), token_line("others", "client", OTHERS), token_line("ops", "operator", OPS)]
        self.configure(servers=servers, auth={"tokens": tokens}, **fields)
        return self.product()

    def ask(self, product, token, method, path, body=None, admin=False, headers=()):
        text = None if body is None else json.dumps(body)
        return product.request(method, path, text, [("Authorization", f"Bearer {token}"), *headers], admin=admin)

    def test_a_client_finds_no_id_that_it_was_not_given(self):
        product = self.start()
        kept = {"name": "kept", "mode": "open", "labels": {"team": "ops"}}
        theirs = self.ask(product, OTHERS, "POST", "/v1/runs", kept, headers=[("Idempotency-Key", "one")]).json["id"]
        settled = self.submit(product, ("api", "go"), token=OTHERS, key="two")
        self.assertEqual(self.ask(product, OTHERS, "GET", f"/v1/runs/{settled}?wait=20s").json["status"], "succeeded")
        out = self.submit(product, ("api", "hold"), token=OTHERS)
        self.wait_for(self.tools.held.is_set, "a call is out")
        ids = [run.removeprefix("run_") for run in (theirs, settled, out)]  # a write's id holds its run's

        heard = []

        def ask(method, path, body=None, admin=False, headers=()):
            answer = self.ask(product, MINE, method, path, body, admin, headers)
            heard.append((f"{method} {path}", answer.body.decode() + str(answer.headers)))
            return answer

        own = ask("POST", "/v1/runs", kept, headers=[("Idempotency-Key", "one")])  # their key and body
        self.assertEqual(own.status, 201)
        self.assertEqual(ask("POST", "/v1/runs", kept, headers=[("Idempotency-Key", "one")]).headers["Location"], f"/v1/runs/{own.json['id']}")
        self.assertIn(own.json["id"], ask("POST", "/v1/runs", {**kept, "name": "other"}, headers=[("Idempotency-Key", "one")]).json["detail"])
        self.assertEqual(ask("POST", "/v1/runs", {"steps": [{"id": "a", "server": "gone", "tool": "x"}]}, headers=[("Idempotency-Key", "two")]).status, 400)
        for query in ("", "?limit=1", "?name=kept", "?label=team:ops", "?status=waiting", "?status=running", "?status=succeeded"):
            items = ask("GET", f"/v1/runs{query}").json["items"]
            self.assertLessEqual({item["id"] for item in items}, {own.json["id"]}, query)
        cursor = self.ask(product, OTHERS, "GET", "/v1/runs?limit=1").json["next_cursor"]  # handed on by mistake
        self.assertLessEqual({item["id"] for item in ask("GET", f"/v1/runs?cursor={cursor}").json["items"]}, {own.json["id"]})
        self.assertEqual(ask("GET", f"/v1/runs/{own.json['id']}/events").status, 200)
        for path in ("/metrics", "/v1/audit", "/v1/unknowns", "/v1/tools", "/v1/breakers"):
            self.assertEqual(ask("GET", path).status, 404, path)
            self.assertEqual(ask("GET", path, admin=True).status, 403, path)
        self.assertEqual(ask("GET", "/v1/runs", admin=True).status, 403)
        for what, said in heard:
            for run in ids:
                self.assertNotIn(run, said, what)

    def test_a_client_changes_no_run_of_another_and_learns_nothing_from_trying(self):
        product = self.start()
        run = self.ask(product, OTHERS, "POST", "/v1/runs", {"mode": "open"}).json["id"]
        nobodys = run[:-1] + ("0" if run[-1] != "0" else "1")
        step = {"id": "a", "server": "api", "tool": "go"}
        for path, body in (("cancel", {}), ("steps", step), ("finish", {"status": "succeeded"})):
            answers = [self.ask(product, MINE, "POST", f"/v1/runs/{one}/{path}", body) for one in (run, nobodys)]
            self.assertEqual([a.status for a in answers], [404, 404], path)
            self.assertEqual(answers[0].body.decode().replace(run, nobodys), answers[1].body.decode())
        seen = self.ask(product, MINE, "GET", f"/v1/runs/{run}")  # whoever was given the id may read
        self.assertEqual((seen.status, seen.json["status"], seen.json["steps"]), (200, "waiting", []))
        self.assertEqual(self.tools.hits, {})

    def test_what_operators_do_is_in_the_audit_under_their_names(self):
        product = self.start()
        theirs = self.ask(product, OTHERS, "POST", "/v1/runs", {"mode": "open"}).json["id"]
        doomed = self.ask(product, OTHERS, "POST", "/v1/runs", {"mode": "open"}).json["id"]
        unsure = self.submit(product, ("api", "hold"), token=OTHERS)
        self.wait_for(self.tools.held.is_set, "a call is out")
        self.ask(product, OTHERS, "POST", f"/v1/runs/{unsure}/cancel", {})
        write = self.wait_for(lambda: self.ask(product, OPS, "GET", "/v1/unknowns", admin=True).json["items"], "a write in doubt")[0]["id"]
        copy = self.path("copy.db")
        done = [
            ("step", theirs, f"/v1/runs/{theirs}/steps", {"id": "a", "server": "api", "tool": "go"}),
            ("finish", theirs, f"/v1/runs/{theirs}/finish?", {"status": "succeeded"}),
            ("cancel", doomed, f"/v1/runs/{doomed}/cancel", {"reason": "a drill"}),
            ("resolve.not_landed", write, f"/v1/unknowns/{write}/resolve", {"verdict": "not_landed", "note": "looked"}),
            ("breaker.open", "api", "/v1/breakers/api/open", {"reason": "a drill"}),
            ("breaker.close", "api", "/v1/breakers/api/close", {"reason": "over"}),
            ("breaker.open", "api/go", "/v1/breakers/api/go/open", {"reason": "a drill"}),
            ("breaker.close", "api/go", "/v1/breakers/api/go/close", {"reason": "over"}),
            ("backup", copy, "/v1/backup", {"path": copy}),
        ]
        for action, _, path, body in done:
            if action == "finish":
                self.wait_for(lambda: self.ask(product, OPS, "GET", f"/v1/runs/{theirs}/steps/a?wait=20s").json["status"] == "succeeded", "the step")
            answer = self.ask(product, OPS, "POST", path.rstrip("?"), body, admin=True)
            self.assertIn(answer.status, (200, 201), f"{path}: {answer.body}")
        entries = self.ask(product, OPS, "GET", "/v1/audit?limit=200", admin=True).json["items"]
        self.assertEqual([(e["action"], e["subject"]) for e in reversed(entries) if e["who"] == "ops"], [(action, subject) for action, subject, _, _ in done])


if __name__ == "__main__":
    main()
