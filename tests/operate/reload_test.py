"""SIGHUP: tools and tokens are exchanged under a running process, and no run notices.
Usage: reload_test.py BINARY [unittest arguments]
"""
import os
import signal
import subprocess
import sys

from bench import STDIO_TOOLS, Bench, main, token_line


class Reload(Bench):
    def stdio(self, mode="modern", **env):
        return {"mcp": {"command": [sys.executable, "-B", STDIO_TOOLS, mode], "env": env}, "deadline": "20s",
                "tools": {"ok": {"effect": "read"}, "hold": {"effect": "read"}, "release": {"effect": "read"}}}

    def hang_up(self, product, words="configuration reloaded"):
        seen = len(self.log())
        product.process.send_signal(signal.SIGHUP)
        return self.wait_for(lambda: [line for line in self.log()[seen:] if words in line["message"]], words)

    def settled(self, product, run, token=None):
        return self.get(product, f"/v1/runs/{run}?wait=20s", token).json

    def test_a_run_goes_on_while_its_tools_are_exchanged(self):
        self.configure(servers={"api": self.server(hold="/hold", next="/old", last="/last")})
        product = self.product()
        run = self.submit(product, ("api", "hold"), ("api", "next"))
        doomed = self.submit(product, ("api", "hold"), ("api", "last"))
        self.wait_for(lambda: self.tools.hits.get("/hold") == 2, "both calls are out")
        # The tool that is out is no longer there, the next one has moved, the last one is gone.
        self.configure(servers={"api": self.server(next="/new"), "more": self.server(fresh="/fresh")})
        self.hang_up(product)
        self.tools.release()
        self.assertEqual([s["status"] for s in self.settled(product, run)["steps"]], ["succeeded", "succeeded"])
        self.assertEqual(self.settled(product, run)["result"]["path"], "/new")
        self.assertEqual(self.settled(product, doomed)["steps"][1]["reason"], "tool_not_found")
        self.assertEqual(self.settled(product, self.submit(product, ("more", "fresh")))["status"], "succeeded")
        self.assertEqual(self.tools.hits, {"/hold": 2, "/new": 1, "/fresh": 1})
        refused = product.request("POST", "/v1/runs", '{"steps": [{"id": "a", "server": "api", "tool": "hold"}]}')
        self.assertEqual(refused.status, 400)

    def test_tokens_are_exchanged(self):
        old, new, ops = "hf_old.aaaa", "hf_new.bbbb", "hf_ops.cccc"
        servers = {"api": self.server(go="/go")}
        self.configure(servers=servers, auth={"tokens": [token_line("old", "client", old), token_line("ops", "operator", ops)]})
        product = self.product()
        run = self.submit(product, ("api", "go"), token=old)
        self.configure(servers=servers, auth={"tokens": [token_line("new", "client", new), token_line("ops", "operator", ops)]})
        self.assertEqual(self.get(product, "/v1/runs", new).status, 401)
        self.hang_up(product)
        self.assertEqual(self.get(product, "/v1/runs", old).status, 401)
        self.assertEqual(self.get(product, "/v1/runs", new).status, 200)
        self.assertEqual(self.get(product, "/v1/breakers", ops, admin=True).status, 200)
        self.assertEqual(self.settled(product, run, ops)["owner"], "old")
        # From tokens to none would open the door: it waits for a restart, and says so.
        self.configure(servers=servers)
        self.hang_up(product)
        self.assertEqual(self.get(product, "/v1/runs").status, 401)
        self.assertTrue([line for line in self.log() if "`auth.tokens` has changed" in line["message"]])

    def test_a_file_with_a_mistake_changes_nothing(self):
        self.configure(servers={"api": self.server(go="/go")})
        product = self.product()
        self.configure(servers={"api": {**self.server(go="/other"), "max_in_fligt": 2}})
        check = subprocess.run([self.binary, "check", "holdfast.yaml"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(check.returncode, 2)
        line = self.hang_up(product, "not reloaded")[0]
        self.assertIn(check.stderr.removeprefix("holdfast: ").strip(), line["message"])
        self.assertIn("did you mean `max_in_flight`?", line["message"])
        self.assertEqual(self.settled(product, self.submit(product, ("api", "go")))["status"], "succeeded")
        self.assertEqual(self.tools.hits, {"/go": 1})

    def test_every_reload_is_in_the_audit_also_one_that_was_refused(self):
        ops = "hf_ops.cccc"
        auth = {"tokens": [token_line("ops", "operator", ops)]}
        first = {"api": {**self.server(go="/go"), "headers": {"Authorization": "${env:AUDIT_SECRET}"}}}
        os.environ["AUDIT_SECRET"] = "planted-audit"
        self.addCleanup(os.environ.pop, "AUDIT_SECRET")
        self.configure(servers=first, auth=auth)
        product = self.product()

        def newest():
            return self.get(product, "/v1/audit?limit=1", ops, admin=True).json["items"]
        self.configure(servers={**first, "more": self.server(fresh="/fresh")}, auth=auth, retention="30d", database="other.db")
        self.hang_up(product)
        entry = self.wait_for(newest, "the reload in the audit")[0]
        self.assertEqual([entry[k] for k in ("who", "action", "subject", "why")], ["operator", "reload", "configuration", "SIGHUP"])
        self.assertEqual(entry["data"], {"changed": ["retention", "more added", "more.fresh added"], "needs_restart": ["database"]})
        self.configure(servers={"api": {**first["api"], "max_in_fligt": 2}}, auth=auth)
        self.hang_up(product, "not reloaded")
        refused = self.wait_for(lambda: [e for e in newest() if e["seq"] > entry["seq"]], "the refusal in the audit")[0]
        self.assertEqual([refused[k] for k in ("who", "action")], ["operator", "reload"])
        self.assertIn("did you mean `max_in_flight`?", refused["data"]["refused"])
        self.assertNotIn("planted-audit", str(self.get(product, "/v1/audit", ops, admin=True).body))

    def test_what_needs_a_restart_is_named_and_stays(self):
        servers = {"api": self.server(go="/go")}
        self.configure(servers=servers)
        product = self.product()
        self.configure(servers=servers, database="other.db", admin_listen="127.0.0.1:1")
        self.hang_up(product)
        named = [line["message"] for line in self.log() if "restart the server" in line["message"]]
        self.assertEqual(len(named), 2, named)
        self.assertEqual(self.settled(product, self.submit(product, ("api", "go")))["status"], "succeeded")
        self.assertFalse(os.path.exists(self.path("other.db")))

    def test_stdio_processes_stay_unless_they_are_started_differently(self):
        self.configure(servers={"kept": self.stdio(), "changed": self.stdio(), "gone": self.stdio()})
        product = self.product()
        pid = {name: self.settled(product, self.submit(product, (name, "ok")))["result"]["structuredContent"]["pid"]
               for name in ("kept", "changed", "gone")}
        held = self.submit(product, ("changed", "hold"))
        self.wait_for(lambda: self.get(product, f"/v1/runs/{held}/attempts").json["items"], "a call is out")
        self.configure(servers={"kept": {**self.stdio(), "max_in_flight": 4}, "changed": self.stdio(EXTRA="1")})
        self.hang_up(product)
        again = {name: self.settled(product, self.submit(product, (name, "ok")))["result"]["structuredContent"]["pid"] for name in ("kept", "changed")}
        self.assertEqual(again["kept"], pid["kept"])
        self.assertNotEqual(again["changed"], pid["changed"])
        self.wait_for(lambda: not os.path.exists(f"/proc/{pid['gone']}"), "the process that nobody names ends")
        self.assertTrue(os.path.exists(f"/proc/{pid['changed']}"), "a process with a call out goes on")
        product.request("POST", f"/v1/runs/{held}/cancel", "{}")
        self.assertEqual(self.settled(product, held)["status"], "cancelled")

    def test_no_secret_of_either_file_reaches_the_log(self):
        def servers(name):
            return {"api": {**self.server(go="/go"), "headers": {"Authorization": f"${{env:{name}}}"}}}
        self.configure(servers=servers("FIRST_SECRET"))
        os.environ.update(FIRST_SECRET="planted-first", SECOND_SECRET="planted-second")
        self.addCleanup(lambda: [os.environ.pop(name) for name in ("FIRST_SECRET", "SECOND_SECRET")])
        product = self.product()
        first = self.settled(product, self.submit(product, ("api", "go")))
        self.configure(servers=servers("SECOND_SECRET"))
        self.hang_up(product)
        second = self.settled(product, self.submit(product, ("api", "go")))
        self.assertEqual([r["result"]["authorization"] for r in (first, second)], ["***", "***"])
        product.process.send_signal(signal.SIGTERM)
        self.assertEqual(product.process.wait(20), 0)
        for name in os.listdir(self.folder):
            with open(self.path(name), "rb") as file:
                self.assertNotIn(b"planted-", file.read(), name)


if __name__ == "__main__":
    main()
