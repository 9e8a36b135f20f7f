"""The built binary against real MCP servers: server-everything over streamable HTTP, server-filesystem over stdio.
Effects are counted where they happen: in the files of the filesystem server.
Usage: servers_test.py BINARY [unittest arguments]
"""
import json
import os
import shutil
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "..", "scripts", "example")]
from product import Product  # noqa: E402
from real_servers import FILES, end, free_port, missing, start_everything  # noqa: E402

BINARY = None
END = "-- end --"


def entry(text):
    """The arguments of edit_file that add one line to the journal, once more with every call."""
    return {"path": "journal.txt", "edits": [{"oldText": END, "newText": f"{text}\n{END}"}]}


class RealServers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="holdfast-real-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.mkdir(self.path("files"))
        with open(self.path("files/journal.txt"), "w") as file:
            file.write(f"The journal.\n{END}\n")
        self.port, self.everything = free_port(), None
        self.submissions = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def hold(self, name):
        open(self.path(name), "w").close()

    def release(self, name):
        os.remove(self.path(name))

    def start(self, everything=False):
        if everything:
            self.start_everything()
        gate = [sys.executable, "-B", os.path.join(HERE, "gate.py"), self.folder, "node", FILES, self.path("files")]
        servers = {
            "everything": {"mcp": {"url": f"http://127.0.0.1:{self.port}/mcp"}, "deadline": "20s",
                           "tools": {"get-sum": {"effect": "read"}, "echo": {"effect": "read"},
                                     "trigger-long-running-operation": {"effect": "read"}}},
            "files": {"mcp": {"command": gate}, "deadline": "30s", "trust_annotations": True, "tools": {"edit_file": {"effect": "write"}}}}
        with open(self.path("holdfast.yaml"), "w") as file:
            json.dump({"listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0", "database": "holdfast.db", "servers": servers}, file)
        self.product = Product(BINARY, self.folder)
        self.addCleanup(lambda: self.product.running() and self.product.kill())
        self.product.start()

    def start_everything(self):
        self.everything = start_everything(self.port, self.path("everything.log"))
        self.addCleanup(end, self.everything, 1.0)

    def submit(self, *steps, text=None):
        self.submissions += 1
        body = text or json.dumps({"name": "real", "deadline": "5m", "steps": [
            {"id": id, "server": server, "tool": tool, "args": args} for id, server, tool, args in steps]})
        answer = self.product.request("POST", "/v1/runs", body, [("Idempotency-Key", f"real-{self.submissions}")])
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json["id"]

    def settled(self, run, wait="60s"):
        return self.product.request("GET", f"/v1/runs/{run}?wait={wait}").json

    def attempts(self, run):
        return self.product.request("GET", f"/v1/runs/{run}/attempts").json["items"]

    def resolve(self, run, verdict):
        write = self.settled(run)["steps"][0]["write"]["id"]
        body = json.dumps({"verdict": verdict, "note": "the journal was read", **({"result": {"seen": True}} if verdict == "landed" else {})})
        answer = self.product.request("POST", f"/v1/unknowns/{write}/resolve", body, admin=True)
        self.assertEqual(answer.status, 200, answer.body)

    def lines(self, text):
        with open(self.path("files/journal.txt")) as file:
            return file.read().splitlines().count(text)

    def wait_for(self, condition, what, limit=30.0):
        until = time.monotonic() + limit
        while not condition():
            self.assertLess(time.monotonic(), until, f"{what}: not within {limit:g} s; {self.product.errors()}")
            time.sleep(0.02)

    def assert_status(self, run, status, reason=None):
        self.assertEqual((run["status"], run["reason"]), (status, reason), json.dumps(run, indent=1))

    # --- reads, writes, refusals ----------------------------------------------------------------------------------------

    def test_reads_over_http_and_one_write_over_stdio(self):
        self.start(everything=True)
        run = self.settled(self.submit(("sum", "everything", "get-sum", {"a": 19, "b": 23}),
                                       ("journal", "files", "edit_file", entry("${sum/content/0/text}")),
                                       ("list", "files", "list_directory", {"path": "."}),
                                       ("echo", "everything", "echo", {"message": "${list/structuredContent/content}"})))
        self.assert_status(run, "succeeded")
        self.assertEqual(self.lines("The sum of 19 and 23 is 42."), 1)
        self.assertEqual(run["result"]["content"][0]["text"], "Echo: [FILE] journal.txt")
        self.assertEqual([s["effect"] for s in run["steps"]], ["read", "write", "read", "read"])
        self.assertEqual([s["attempts"] for s in run["steps"]], [1, 1, 1, 1])

    def test_arguments_on_several_lines_reach_a_stdio_server(self):
        self.start()
        run = self.submit(text=json.dumps({"name": "real", "deadline": "1m", "steps": [
            {"id": "journal", "server": "files", "tool": "edit_file", "args": entry("spread"), "deadline": "10s"}]}, indent=2))
        self.assert_status(self.settled(run), "succeeded")
        self.assertEqual(self.lines("spread"), 1)

    def test_what_a_real_server_refuses(self):
        self.start(everything=True)
        for server, tool, args, reason in (("files", "read_text_file", {"path": "absent.txt"}, "tool_error"),
                                           ("files", "no_such_tool", {}, "tool_not_found"),
                                           ("everything", "no_such_tool", {}, "tool_not_found"),
                                           ("everything", "get-sum", {"a": "text"}, "tool_error")):
            with self.subTest(server=server, tool=tool):
                run = self.settled(self.submit(("step", server, tool, args)))
                self.assert_status(run, "failed", reason)
                self.assertLessEqual(run["steps"][0]["attempts"], 1)

    def test_a_server_that_forgot_the_session_is_called_all_the_same(self):
        self.start(everything=True)
        self.assert_status(self.settled(self.submit(("one", "everything", "get-sum", {"a": 1, "b": 1}))), "succeeded")
        end(self.everything, 1.0)
        self.start_everything()
        run = self.settled(self.submit(("two", "everything", "get-sum", {"a": 1, "b": 2})))
        self.assert_status(run, "succeeded")
        self.assertEqual(run["result"]["content"][0]["text"], "The sum of 1 and 2 is 3.")

    # --- kill -9 --------------------------------------------------------------------------------------------------------

    def killed_in_flight(self, hold, text):
        """The run, after a kill while its plain write was out and a restart on the same file."""
        self.start()
        self.hold(hold)
        run = self.submit(("journal", "files", "edit_file", entry(text)))
        self.wait_for(lambda: os.path.exists(self.path("held")), "the write is out")
        self.product.kill()
        self.release(hold)
        self.product.start()
        self.assert_status(self.settled(run), "unknown", "crashed")
        return run

    def test_killed_after_a_plain_write_was_done(self):
        run = self.killed_in_flight("hold_answers", "done")
        self.assertEqual(self.lines("done"), 1)
        self.resolve(run, "landed")
        after = self.settled(run)
        self.assert_status(after, "succeeded")
        self.assertEqual(after["result"], {"seen": True})
        self.assertEqual(self.lines("done"), 1)
        self.assertEqual(len(self.attempts(run)), 1)

    def test_killed_before_a_plain_write_was_done(self):
        run = self.killed_in_flight("hold_requests", "later")
        self.assertEqual(self.lines("later"), 0)
        self.resolve(run, "not_landed")
        self.assert_status(self.settled(run), "succeeded")
        self.assertEqual(self.lines("later"), 1)
        self.assertEqual([a["verdict"] for a in self.attempts(run)], ["ambiguous", "ok"])

    def test_killed_twice_an_unknown_write_is_still_sent_once(self):
        run = self.killed_in_flight("hold_answers", "twice")
        self.product.kill()
        self.product.start()
        self.assert_status(self.settled(run), "unknown", "crashed")
        self.assertEqual(self.lines("twice"), 1)
        self.assertEqual(len(self.attempts(run)), 1)

    def test_killed_in_a_read_that_is_then_repeated(self):
        self.start(everything=True)
        run = self.submit(("slow", "everything", "trigger-long-running-operation", {"duration": 3, "steps": 1}),
                          ("journal", "files", "edit_file", entry("after the slow one")))
        self.wait_for(lambda: any(a["delivery"] == "in_flight" for a in self.attempts(run)), "the read is out")
        self.product.kill()
        self.product.start()
        self.assert_status(self.settled(run), "succeeded")
        self.assertEqual([(a["step"], a["class"]) for a in self.attempts(run)],
                         [("slow", "crashed"), ("slow", "ok"), ("journal", "ok")])
        self.assertEqual(self.lines("after the slow one"), 1)


if __name__ == "__main__":
    if missing():
        sys.exit(missing())
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2, warnings="ignore")
