"""A tool server that misbehaves on demand: plain HTTP tools under /t/<tool>, MCP of revision 2025-11-25 and earlier at /mcp, of 2026-07-28 at /modern.

Each listener has its own port. Every tool has a list of behaviours, one per hit; a hit without one of its own gets the default (an
effect and a success). What arrived is recorded exactly: `seen` counts heads, `hits` whole requests, `effects` what was done.
"""
import email.utils
import gzip
import itertools
import json
import os
import re
import socket
import struct
import threading
import time
import urllib.parse

import behaviour

HOLD_SECONDS = 120.0
BRIDGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stdio_bridge.py")
MCP_TOOLS_ANY = [{"name": name, "inputSchema": {"type": "object"}} for name in ("w", "r", "k", "find")]


class Request:
    """One request as it arrived."""

    def __init__(self, method, path, headers, connection):
        self.method, self.path, self.headers, self.connection = method, path, headers, connection
        self.body, self.arguments, self.message, self.modern = b"", {}, None, False
        self.at, self.ended = time.monotonic(), None  # while it is None, somebody still waits for the answer

    def header(self, name):
        return next((v for k, v in self.headers if k == name.lower()), "")

    @property
    def marker(self):
        value = self.arguments.get("m")
        return value if isinstance(value, str) else None


class Tool:
    def __init__(self):
        self.planned, self.default, self.seen, self.hits, self.effects, self.lock = {}, None, 0, [], [], threading.Lock()

    def plan(self, which, actions):
        if which == "*":
            self.default = actions
        else:
            self.planned[int(which)] = actions

    def actions_for(self, number):
        return self.planned.get(number, self.default)


class Connection:
    def __init__(self, sock, number):
        self.sock, self.number, self.buffer = sock, number, b""

    def read_until(self, mark):
        while mark not in self.buffer:
            piece = self.sock.recv(65536)
            if not piece:
                return None
            self.buffer += piece
        head, _, self.buffer = self.buffer.partition(mark)
        return head

    def read_exactly(self, count):
        while len(self.buffer) < count:
            piece = self.sock.recv(65536)
            if not piece:
                return None
            self.buffer += piece
        body, self.buffer = self.buffer[:count], self.buffer[count:]
        return body

    def send(self, data):
        self.sock.sendall(data)

    def wait_for_peer(self, limit):
        """Returns when the peer has gone, or after `limit` seconds."""
        self.sock.settimeout(limit)
        try:
            while self.sock.recv(65536):
                pass
        except OSError:
            pass

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def large(text):
    """`$60MiB` is letters, `$deep` 100,000 nested arrays, `$blocks` 10,000 content blocks."""
    text = re.sub(r"\$(\d+)MiB", lambda m: "x" * (int(m[1]) << 20), text)
    return text.replace("$deep", "[" * 100_000 + "]" * 100_000).replace("$blocks", json.dumps([{"type": "text", "text": "b"}] * 10_000))


class Over(Exception):
    """The connection is done with."""


class Exchange:
    """Carries out the actions for one request."""

    def __init__(self, listener, connection, request, tool):
        self.listener, self.connection, self.request, self.tool = listener, connection, request, tool
        self.headers, self.streaming = [], False

    def run(self, actions):
        for name, argument in actions:
            getattr(self, "do_" + name)(argument)
        if behaviour.needs_answer(actions):
            if not any(name == "effect" for name, _ in actions):
                self.do_effect("")
            self.answer_plainly()

    def answer_plainly(self):
        if self.request.message is not None:
            self.do_result('{"content": [{"type": "text", "text": "done"}], "structuredContent": {"ok": true}, "isError": false}')
        else:
            self.do_status('200 {"ok": true}')

    def head(self, status, extra):
        echo = [f"X-Echo: {self.request.header('x-planted')}"]  # a tool that tells its caller's secrets to everybody
        lines = [f"HTTP/1.1 {status} X", *(f"{k}: {v}" for k, v in self.headers), *echo, *extra]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def with_type(self, kind):
        if not any(k.lower() == "content-type" for k, _ in self.headers):
            self.headers.append(("Content-Type", kind))

    def fill(self, text):
        """`$id` is the request's JSON-RPC id, `$call` that of the last tools/call, `$big` a megabyte of letters and `$60MiB` sixty, `$header:x` what came in the header x, `$deep` 100,000
        nested arrays, `$blocks` 10,000 content blocks, `$date+2` an HTTP date two seconds ahead, `@name@` a listener's URL."""
        text = text.replace("$id", json.dumps((self.request.message or {}).get("id"))).replace("$big", "x" * (1 << 20))
        text = large(text)
        text = text.replace("$call", json.dumps(self.listener.last_call))
        text = re.sub(r"\$header:([\w-]+)", lambda m: self.request.header(m[1]), text)
        text = re.sub(r"\$date\+(\d+)", lambda m: email.utils.formatdate(time.time() + int(m[1]), usegmt=True), text)
        return self.listener.server.fill(text)

    def full_answer(self, status, body):
        """With the body's length, unless the line named another one."""
        told = any(name.lower() == "content-length" for name, _ in self.headers)
        self.connection.send(self.head(status, [f"Content-Length: {len(body)}"] if status not in (204, 304) and not told else []) + body)

    def do_early(self, _):
        pass

    def do_effect(self, _):
        with self.tool.lock:
            self.tool.effects.append(self.request)

    def do_wait(self, argument):
        self.listener.server.stopping.wait(behaviour.seconds(argument))

    def do_until(self, argument):
        self.listener.server.gate(argument).wait(HOLD_SECONDS)

    def do_kill(self, _):
        self.listener.server.on_kill()

    def do_forget(self, _):
        self.listener.sessions.clear()

    def do_header(self, argument):
        name, _, value = argument.partition(":")
        self.headers.append((name.strip(), self.fill(value.strip()).replace("\\x01", "\x01").replace("\\x00", "\x00")))

    def do_status(self, argument):
        status, _, body = argument.partition(" ")
        if body[:1] in ("{", "[", '"'):
            self.with_type("application/json")
        self.full_answer(int(status), self.fill(body).encode())

    def do_gzip(self, argument):
        """`gzip 200 {...}`: the body packed."""
        status, _, body = argument.partition(" ")
        self.with_type("application/json")
        self.headers.append(("Content-Encoding", "gzip"))
        self.full_answer(int(status), gzip.compress(self.fill(body).encode()))

    def do_cut(self, argument):
        """`cut 200 {...}`: half of the body, then the end."""
        status, _, body = argument.partition(" ")
        self.with_type("application/json")
        self.connection.send(self.head(status, [f"Content-Length: {len(body)}"]) + body[: len(body) // 2].encode())
        raise Over

    def do_drip(self, argument):
        """`drip head 200ms` or `drip body 200ms`: a 200 whose head or body comes one byte at a time, without end."""
        part, pause = argument.split()
        whole = self.head(200, ["Content-Type: application/json", "Content-Length: 100000"])
        if part == "body":
            self.connection.send(whole)
            whole = b'"' + b"x" * 99998 + b'"'
        for byte in whole:
            self.connection.send(bytes([byte]))
            if self.listener.server.stopping.wait(behaviour.seconds(pause)):
                raise Over

    def do_hold(self, _):
        self.connection.wait_for_peer(HOLD_SECONDS)
        raise Over

    def do_reset(self, _):
        self.connection.reset()
        raise Over

    def do_close(self, _):
        raise Over

    def do_sse(self, _):
        self.connection.send(self.head(200, ["Content-Type: text/event-stream", "Transfer-Encoding: chunked"]))
        self.streaming = True

    def chunk(self, text):
        data = text.encode()
        self.connection.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def do_text(self, argument):
        """A line of the stream as it is, with `\\n` for a line end."""
        self.chunk(self.fill(argument).replace("\\n", "\n"))

    def do_data(self, argument):
        self.chunk(f"data: {self.fill(argument)}\n\n")

    def do_half(self, argument):
        """An event without the blank line that would complete it."""
        self.chunk(f"data: {self.fill(argument)}\n")

    def do_end(self, _):
        self.connection.send(b"0\r\n\r\n")

    def do_raw(self, argument):
        self.do_status("200 " + argument)

    def do_result(self, argument):
        if self.request.modern and '"resultType"' not in argument:
            argument = argument.replace("{", '{"resultType": "complete", ', 1)
        self.do_status('200 {"jsonrpc": "2.0", "id": $id, "result": ' + argument + "}")

    def do_error(self, argument):
        code, _, text = argument.partition(" ")
        self.do_status('200 {"jsonrpc": "2.0", "id": $id, "error": {"code": %d, "message": %s}}' % (int(code), json.dumps(text)))


class Listener:
    def __init__(self, server, name):
        self.server, self.name, self.tools, self.sessions, self.dead, self.last_call = server, name, {}, set(), None, None
        self.numbers, self.lock = itertools.count(1), threading.Lock()
        self.open(0)

    def open(self, port):
        self.socket = socket.create_server(("127.0.0.1", port), backlog=512)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, args=(self.socket,), daemon=True).start()

    def tool(self, name):
        with self.lock:
            return self.tools.setdefault(name, Tool())

    def close(self):
        """No connection is accepted from now on. Closing alone would leave a thread that is inside accept() one more."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()

    def accept(self, listening):
        while True:
            try:
                sock, _ = listening.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(Connection(sock, next(self.numbers)),), daemon=True).start()

    def serve(self, connection):
        try:
            while self.one(connection):
                pass
        except (OSError, Over):
            pass
        finally:
            connection.sock.close()

    def one(self, connection):
        head = connection.read_until(b"\r\n\r\n")
        if head is None:
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines)
        request = Request(method, path, [(k.lower().strip(), v.strip()) for k, _, v in pairs], connection.number)
        if path.startswith("/mcp"):
            return self.mcp(connection, request)
        if path.startswith("/modern"):
            return self.modern(connection, request)
        tool = self.tool(urllib.parse.urlsplit(path).path.split("/")[2] if path.startswith("/t/") else path)
        return self.call(connection, request, tool, body_read=False)

    def read_body(self, connection, request):
        body = connection.read_exactly(int(request.header("content-length") or 0))
        if body is None:
            raise Over
        request.body = body

    def call(self, connection, request, tool, body_read):
        with tool.lock:
            tool.seen += 1
            number = tool.seen
        actions = tool.actions_for(number) or []
        if not body_read and not any(name == "early" for name, _ in actions):
            self.read_body(connection, request)
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query)
            request.arguments = json.loads(request.body) if request.body else {k: v[0] for k, v in query.items()}
        with tool.lock:
            tool.hits.append(request)
        try:
            Exchange(self, connection, request, tool).run(actions)
        finally:
            request.ended = time.monotonic()
        return True

    # --- MCP, revision 2025-11-25 and earlier ---

    def mcp(self, connection, request):
        self.read_body(connection, request)
        if request.method != "POST":
            # A stream that nobody asked to resume is not offered.
            tool = self.tool(request.method)
            if not request.header("last-event-id") or (not tool.planned and tool.default is None):
                tool.hits.append(request)
                Exchange(self, connection, request, Tool()).run(behaviour.parse("status 405"))
                return True
            return self.call(connection, request, tool, body_read=True)
        message = request.message = json.loads(request.body)
        method = message.get("method", "")
        answer = getattr(self, "mcp_" + method.replace("/", "_"), None)
        if method != "tools/call":
            self.tool(method).hits.append(request)
            Exchange(self, connection, request, Tool()).run(answer(message) if answer else behaviour.parse("error -32601 no such method") if "id" in message else
                                                            behaviour.parse("status 202"))
            return True
        params = message.get("params", {})
        request.arguments = params.get("arguments", {})
        session = request.header("mcp-session-id")
        if self.dead or session not in self.sessions:
            self.tool("dead").hits.append(request)
            Exchange(self, connection, request, Tool()).run(behaviour.parse(self.dead or 'status 404 {"error": "no such session"}'))
            return True
        self.last_call = message.get("id")
        return self.call(connection, request, self.tool(params.get("name", "")), body_read=True)

    # --- MCP, revision 2026-07-28 ---

    def modern(self, connection, request):
        """No handshake and no session. A result is `complete` unless it says otherwise itself."""
        self.read_body(connection, request)
        message = request.message = json.loads(request.body or b"{}")
        method = message.get("method", "")
        if method == "tools/call":
            params = message.get("params", {})
            request.arguments, request.modern = params.get("arguments", {}), True
            self.last_call = message.get("id")
            return self.call(connection, request, self.tool(params.get("name", "")), body_read=True)
        answers = {"server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}, "tools/list": {"tools": MCP_TOOLS_ANY}, "ping": {}}
        self.tool(method).hits.append(request)
        actions = [("result", json.dumps({"resultType": "complete", **answers[method]}))] if method in answers else \
            behaviour.parse("error -32601 no such method" if "id" in message else "status 202")
        Exchange(self, connection, request, Tool()).run(actions)
        return True

    def mcp_server_discover(self, _):
        return behaviour.parse('status 400 {"jsonrpc": "2.0", "id": $id, "error": {"code": -32000, "message": "not initialized"}}')

    def mcp_initialize(self, message):
        session = f"s-{self.name}-{next(self.numbers)}"
        self.sessions.add(session)
        version = message.get("params", {}).get("protocolVersion", "2025-11-25")
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": self.name, "version": "1"}}
        return [("header", f"Mcp-Session-Id: {session}"), ("result", json.dumps(result))]

    def mcp_tools_list(self, _):
        return [("result", json.dumps({"tools": MCP_TOOLS_ANY}))]

    def mcp_ping(self, _):
        return [("result", "{}")]


class FaultServer:
    def __init__(self):
        self.listeners, self.gates, self.lock = {}, {}, threading.Lock()
        self.stopping, self.on_kill = threading.Event(), lambda: None

    def listener(self, name):
        with self.lock:
            if name not in self.listeners:
                self.listeners[name] = Listener(self, name)
            return self.listeners[name]

    def gate(self, name):
        with self.lock:
            return self.gates.setdefault(name, threading.Event())

    def fill(self, text):
        text = text.replace("@bridge@", BRIDGE)
        for name, listener in list(self.listeners.items()):
            text = text.replace(f"@{name}@", listener.url)
        return text

    def stop(self):
        self.stopping.set()
        for gate in list(self.gates.values()):
            gate.set()
        for listener in self.listeners.values():
            listener.close()
