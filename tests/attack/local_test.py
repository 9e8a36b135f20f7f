#!/usr/bin/env python3
"""Tokens and unix sockets of the built binary: local_test.py <binary>. Exit 0 when it holds.

Both listeners are unix sockets with tokens. 401 and 403 come although the body was never sent; a client token neither lists nor changes
another's run; the audit log has every operator action with the token's name; a socket left by a kill is replaced.
"""
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import front as fronts  # noqa: E402
import raw  # noqa: E402
from hostile_bytes import post  # noqa: E402

TOKENS = {"nightly": ("client", "hf_nightly.secret-1"), "other": ("client", "hf_other.secret-2"), "ops": ("operator", "hf_ops.secret-3")}


def config(folder):
    lines = ", ".join(f"{{name: {name}, scope: {scope}, sha256: {hashlib.sha256(secret.encode()).hexdigest()}}}" for name, (scope, secret) in TOKENS.items())
    return (f"listen: unix:{folder}/client.sock\nadmin_listen: unix:{folder}/admin.sock\nsocket_mode: \"0660\"\ndatabase: holdfast.db\nauth: {{tokens: [{lines}]}}\n"
            'servers: {api: {http: {base_url: "http://127.0.0.1:9"}, tools: {w: {request: {method: POST, path: /t/w}}}}}\n')


class Checks:
    def __init__(self, front):
        self.front, self.wrong = front, []

    def same(self, got, wanted, what):
        if got != wanted:
            self.wrong.append(f"{what}: {got!r}, wanted {wanted!r}")

    def ask(self, method, path, name, body=None, headers=(), admin=False):
        given = [("Authorization", f"Bearer {TOKENS[name][1]}")] if name else []
        return self.front.product.request(method, path, None if body is None else json.dumps(body), [*given, *headers], admin=admin)

    def before_the_body(self):
        for address, header, wanted in ((self.front.client, "", 401), (self.front.client, "Authorization: Bearer hf_nightly.wrong\r\n", 401),
                                        (self.front.admin, f"Authorization: Bearer {TOKENS['nightly'][1]}\r\n", 403)):
            sock = raw.connect(address, limit=3.0)
            sock.sendall(post(f"{header}Content-Length: 1000\r\n"))
            answer = raw.Answers(sock).next()
            self.same(answer and answer[0], wanted, "before the body")
            sock.close()

    def owners(self):
        body = {"name": "n", "mode": "open", "deadline": "1h"}
        mine, again, theirs = (self.ask("POST", "/v1/runs", name, body, [("Idempotency-Key", "k")]) for name in ("nightly", "nightly", "other"))
        self.same((mine.status, again.status, theirs.status), (201, 200, 201), "one key, two owners")
        run = mine.json["id"]
        self.same(mine.json["owner"], "nightly", "owner")
        self.same([r["id"] for r in self.ask("GET", "/v1/runs", "other").json["items"]], [theirs.json["id"]], "another's list")
        step = {"id": "s", "server": "api", "tool": "w", "args": {}}
        self.same(self.ask("GET", f"/v1/runs/{run}", "other").status, 200, "who was given an id may read")
        for method, path, sent in (("POST", "/cancel", {}), ("POST", "/steps", step), ("POST", "/finish", {"status": "succeeded"})):
            self.same(self.ask(method, f"/v1/runs/{run}{path}", "other", sent).status, 404, f"another's {method} {path}")
        self.same(self.ask("GET", f"/v1/runs/{run}", "nightly").json["status"], "waiting", "still there")
        return run

    def audit(self, run):
        copy = os.path.join(self.front.product.folder, "copy.db")
        acts = [("POST", f"/v1/runs/{run}/finish", {"status": "failed", "reason": "operator"}), ("POST", "/v1/backup", {"path": copy}),
                ("POST", "/v1/breakers/api/open", {"reason": "a test"}), ("POST", "/v1/breakers/api/close", {"reason": "done"})]
        for method, path, body in acts:
            self.same(self.ask(method, path, "ops", body, admin=True).status, 200, path)
        second = self.ask("POST", "/v1/runs", "nightly", {"name": "n", "mode": "open", "deadline": "1h"}).json["id"]
        self.same(self.ask("POST", f"/v1/runs/{second}/cancel", "ops", {"reason": "why"}, admin=True).status, 200, "cancel")
        entries = self.ask("GET", "/v1/audit", "ops", admin=True).json["items"]
        self.same([(e["who"], e["action"]) for e in reversed(entries)],
                  [("ops", "finish"), ("ops", "backup"), ("ops", "breaker.open"), ("ops", "breaker.close"), ("ops", "cancel")], "audit")

    def command_line(self, binary):
        environment = {**self.front.product.environment, "HOLDFAST_TOKEN": TOKENS["nightly"][1]}
        listed = subprocess.run([binary, "list", "-o", "ids", "--url", f"unix:{self.front.client}"], capture_output=True, text=True, env=environment, timeout=20)
        self.same((listed.returncode, len(listed.stdout.split())), (0, 2), f"list over a socket ({listed.stderr!r})")

    def sockets(self):
        for address in (self.front.client, self.front.admin):
            self.same(stat.S_IMODE(os.stat(address).st_mode), 0o660, "mode of a socket")
        product = self.front.product
        product.kill()
        self.same(os.path.exists(self.front.client), True, "the socket a kill leaves")
        product.start()
        self.same(self.ask("GET", "/v1/runs", "nightly").status, 200, "after the restart")
        self.same(product.terminate(), 0, "SIGTERM")
        self.same(os.path.exists(self.front.client), False, "socket after SIGTERM")


def main(arguments):
    binary, folder = os.path.abspath(arguments[0]), tempfile.mkdtemp(prefix="holdfast-local-")
    front = fronts.Front(binary, folder, config(folder))
    checks = Checks(front)
    try:
        checks.before_the_body()
        checks.audit(checks.owners())
        checks.command_line(binary)
        checks.sockets()
    finally:
        front.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(checks.wrong) or "ok")
    return 1 if checks.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
