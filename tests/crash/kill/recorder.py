"""The tools' side, as a process of its own: recorder.py LOG SEED. It outlives every kill, writes down each request before it answers, and
misbehaves at random until it gets SIGUSR1. Prints the base URL when it listens.

Plain HTTP under /t/<tool>: `read`, `plain`, `keyed` (honours Idempotency-Key), `checked` with its check `find`. MCP under /mcp: `look`, `post`.
"""
import fcntl
import hashlib
import json
import os
import random
import signal
import socket
import struct
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import behaviour  # noqa: E402
import fault_server  # noqa: E402

# What a tool does, and how often.
SICKNESS = {
    "read": [(80, ""), (8, "wait 20ms; effect; status 200 {}"), (4, "reset"), (4, "status 503 {}"), (2, "cut 200 {\"long\": 1}"), (1, "hold"),
             (1, 'header Retry-After: 1; status 429 {}')],
    "plain": [(70, ""), (12, "effect; wait 20ms; status 200 {}"), (5, "wait 20ms; effect; status 200 {}"), (4, "effect; reset"), (3, "effect; status 500 {}"),
              (4, "status 400 {}"), (1, "wait 20ms; reset"), (1, "effect; hold")],
    "keyed": [(65, ""), (12, "effect; wait 20ms; status 200 {}"), (8, "effect; reset"), (6, "reset"), (5, "status 503 {}"), (3, "effect; status 500 {}"), (1, "hold")],
}
SICKNESS.update({"checked": SICKNESS["plain"], "find": [(90, ""), (6, "status 503 {}"), (4, "reset")], "look": [(90, ""), (10, "wait 20ms; effect; status 200 {}")],
                 "post": [(80, ""), (10, "effect; reset"), (10, "effect; wait 20ms; close")]})
PARSED = {tool: [(weight, behaviour.parse(line)) for weight, line in lines] for tool, lines in SICKNESS.items()}


class Log:
    """One JSON object per line, written with one call, so that several processes may share the file."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, **what):
        os.write(self.fd, (json.dumps({"at": time.monotonic(), **what}) + "\n").encode())


class Effects:
    """What was done, by marker. A key that was seen does nothing twice."""

    def __init__(self, log):
        self.log, self.keys, self.done, self.lock = log, set(), {}, threading.Lock()

    def add(self, tool, request):
        key = request.header("idempotency-key")
        with self.lock:
            if key and key in self.keys:
                return
            if key:
                self.keys.add(key)
            self.done[request.marker] = self.done.get(request.marker, 0) + 1
        self.log.note(what="effect", tool=tool, m=request.marker)


class Recorded(fault_server.Tool):
    """A tool whose lists write to the log, and whose behaviour is drawn per request."""

    def __init__(self, name, recorder):
        super().__init__()
        self.name, self.recorder = name, recorder
        self.hits, self.effects = Adding(self.arrived), Adding(self.took_effect)

    def arrived(self, request):
        request.number = next(self.recorder.numbers)
        self.recorder.log.note(what="hit", tool=self.name, m=request.marker, n=request.number, key=request.header("idempotency-key"),
                               sha=hashlib.sha256(request.method.encode() + request.path.encode() + b"\n" + request.body).hexdigest()[:16])

    def took_effect(self, request):
        if self.name in ("plain", "keyed", "checked", "post"):
            self.recorder.effects.add(self.name, request)

    def actions_for(self, _):
        if self.recorder.well or self.name not in PARSED:
            return None
        with self.recorder.draw_lock:
            return self.recorder.draws.choices([a for _, a in PARSED[self.name]], [w for w, _ in PARSED[self.name]])[0]


class Adding:
    def __init__(self, append):
        self.append = append


class Watched(fault_server.Connection):
    """Knows at every moment whether a request may still be on its way in: what lies in the kernel is only looked at until `idle` is off."""

    def __init__(self, sock, number):
        super().__init__(sock, number)
        self.idle = False

    def read_until(self, mark):
        while mark not in self.buffer:
            self.idle = not self.buffer
            self.sock.recv(1, socket.MSG_PEEK)
            self.idle = False
            piece = self.sock.recv(65536)
            if not piece:
                return None
            self.buffer += piece
        head, _, self.buffer = self.buffer.partition(mark)
        return head

    def quiet(self):
        try:
            waiting = struct.unpack("i", fcntl.ioctl(self.sock, termios.FIONREAD, b"\0\0\0\0"))[0]
        except (OSError, ValueError):
            return False  # being closed: it leaves the set of live ones next
        return self.idle and waiting == 0


class Listener(fault_server.Listener):
    def accept(self, listening):
        while True:
            try:
                sock, _ = listening.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Watched(sock, next(self.numbers))
            self.server.live.add(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            super().serve(connection)
        finally:
            self.server.live.discard(connection)

    def fence(self, connection):
        """Answers once every request that was sent before this one has been read and carried out."""
        before, end = set(self.server.live) - {connection}, time.monotonic() + 30
        while any(c in self.server.live and not c.quiet() for c in before):
            if time.monotonic() > end:
                return "status 503"
            time.sleep(0.005)
        return "status 200 {}"

    def tool(self, name):
        with self.lock:
            if name not in self.tools:
                self.tools[name] = Recorded(name, self.server)
            return self.tools[name]

    def call(self, connection, request, tool, body_read):
        if request.path == "/fence":
            Exchange(self, connection, request, tool).run(behaviour.parse(self.fence(connection)))
            return False
        try:
            return super().call(connection, request, tool, body_read)
        finally:
            if hasattr(request, "number"):
                self.server.log.note(what="end", n=request.number)


class Exchange(fault_server.Exchange):
    def answer_plainly(self):
        if self.tool.name == "find":
            self.do_status('200 {"total": %d}' % self.listener.server.effects.done.get(self.request.marker, 0))
        else:
            super().answer_plainly()


class Recorder(fault_server.FaultServer):
    def __init__(self, log, seed):
        super().__init__()
        self.live = set()
        self.log, self.effects, self.well, self.draws = Log(log), None, False, random.Random(seed)
        self.effects, self.draw_lock, self.numbers = Effects(self.log), threading.Lock(), fault_server.itertools.count(1)
        fault_server.Exchange = Exchange
        self.listeners["tools"] = Listener(self, "tools")


def main(log, seed):
    recorder = Recorder(log, int(seed))
    signal.signal(signal.SIGUSR1, lambda *_: setattr(recorder, "well", True))
    print(recorder.listeners["tools"].url, flush=True)
    sys.stdin.read()  # until the supervisor goes
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
