"""The fault server's own tests; they need no product."""
import http.client
import json
import os
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import behaviour  # noqa: E402
import fault_server  # noqa: E402


class Behaviours(unittest.TestCase):
    def test_parts_are_split_outside_strings_and_brackets(self):
        self.assertEqual(behaviour.split('a; status 200 {"x": "a;b", "y": [1]}; c'), ["a", 'status 200 {"x": "a;b", "y": [1]}', "c"])

    def test_unknown_actions_and_durations_are_refused(self):
        self.assertRaises(ValueError, behaviour.parse, "explode")
        self.assertRaises(ValueError, behaviour.parse, "wait 3 parsecs")


class Served(unittest.TestCase):
    def setUp(self):
        self.server = fault_server.FaultServer()
        self.api = self.server.listener("api")

    def tearDown(self):
        self.server.stop()

    def plan(self, tool, *lines):
        for number, line in enumerate(lines, 1):
            self.api.tool(tool).plan(number, behaviour.parse(line))

    def post(self, path, body="{}", headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.api.socket.getsockname()[1], timeout=5)
        try:
            connection.request("POST", path, body, dict(headers))
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def test_each_hit_has_its_own_behaviour_and_the_rest_succeed(self):
        self.plan("w", 'header Retry-After: 5; status 429 {"a": 1}', "reset")
        status, body, headers = self.post("/t/w", '{"m": "run/w"}')
        self.assertEqual((status, body, headers["Retry-After"]), (429, b'{"a": 1}', "5"))
        self.assertRaises((ConnectionResetError, http.client.RemoteDisconnected), self.post, "/t/w")
        self.assertEqual(self.post("/t/w")[0], 200)
        tool = self.api.tool("w")
        self.assertEqual((len(tool.hits), len(tool.effects), tool.hits[0].marker), (3, 1, "run/w"))

    def test_an_effect_without_an_answer_counts(self):
        self.plan("w", "effect; close")
        self.assertRaises(http.client.RemoteDisconnected, self.post, "/t/w")
        self.assertEqual(len(self.api.tool("w").effects), 1)

    def test_a_cut_body_is_short(self):
        self.plan("w", 'cut 200 {"long": "body"}')
        self.assertRaises(http.client.IncompleteRead, self.post, "/t/w")

    def test_a_gate_holds_the_answer_back(self):
        self.plan("w", 'effect; until go; status 200 {}')
        sock = socket.create_connection(self.api.socket.getsockname())
        sock.sendall(b"POST /t/w HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        sock.settimeout(0.1)
        self.assertRaises(TimeoutError, sock.recv, 1)
        self.server.gate("go").set()
        sock.settimeout(5)
        self.assertTrue(sock.recv(100).startswith(b"HTTP/1.1 200"))
        sock.close()

    def test_drips_are_slow(self):
        self.plan("w", "drip head 20ms")
        sock = socket.create_connection(self.api.socket.getsockname(), timeout=5)
        sock.sendall(b"POST /t/w HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        started = time.monotonic()
        data = b""
        while len(data) < 5:
            data += sock.recv(1)
        self.assertGreater(time.monotonic() - started, 0.06)
        sock.close()

    def test_mcp_sessions_are_made_needed_and_forgotten(self):
        call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "w", "arguments": {"m": "a/w"}}}
        self.assertEqual(self.post("/mcp", json.dumps(call))[0], 404)
        _, _, headers = self.post("/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}))
        session = {"Mcp-Session-Id": headers["Mcp-Session-Id"]}
        status, body, _ = self.post("/mcp", json.dumps(call), session.items())
        self.assertEqual((status, json.loads(body)["id"]), (200, 7))
        self.api.sessions.clear()
        self.assertEqual(self.post("/mcp", json.dumps(call), session.items())[0], 404)
        self.assertEqual((len(self.api.tool("w").hits), len(self.api.tool("dead").hits)), (1, 2))

    def test_a_stream_sends_events_and_halves(self):
        self.plan("s", 'sse; text : hello\\n\\n; data {"a": $id}; half {"b": 1}; end')
        status, body, headers = self.post("/t/s")
        self.assertEqual((status, headers["Content-Type"], body), (200, "text/event-stream", b': hello\n\ndata: {"a": null}\n\ndata: {"b": 1}\n'))


if __name__ == "__main__":
    unittest.main()
