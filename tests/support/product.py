"""The built binary as a process, and a client for its two listeners."""
import http.client
import json
import os
import queue
import re
import signal
import socket
import subprocess
import threading
import time

READY = re.compile(r"holdfast ready client=(\S+) admin=(\S+)")


def place(text):
    """`host:port` as a pair, `unix:/path` as the path."""
    if text.startswith("unix:"):
        return text.removeprefix("unix:")
    host, _, port = text.rpartition(":")
    return host, int(port)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Product:
    def __init__(self, binary, folder):
        self.binary, self.folder, self.process = binary, folder, None
        self.client = self.admin = None
        self.config = "holdfast.yaml"  # in `folder`, unless it is absolute
        self.secret, self.leaks = None, set()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_") and "proxy" not in k.lower()}

    def start(self, limit=20.0):
        lines = queue.Queue()
        with open(os.path.join(self.folder, "err.log"), "ab") as errors:
            self.process = subprocess.Popen([self.binary, "serve", "--config", self.config], cwd=self.folder, env=self.environment,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)

        def follow(stream):
            for line in stream:
                if self.secret and self.secret in line:
                    self.leaks.add("stdout")
                lines.put(line)
            lines.put(None)
        threading.Thread(target=follow, args=(self.process.stdout,), daemon=True).start()
        end = time.monotonic() + limit
        while time.monotonic() < end:
            try:
                line = lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                break
            if line is None:
                break
            ready = READY.search(line)
            if ready:
                self.client, self.admin = place(ready[1]), place(ready[2])
                return
        raise AssertionError(f"not ready within {limit:g} s: {self.errors()}")

    def watch_for(self, secret):
        """From now on every answer that has this text in it is written into `leaks`."""
        self.secret = secret

    def errors(self):
        try:
            with open(os.path.join(self.folder, "err.log"), errors="replace") as f:
                return f.read()[-600:]
        except FileNotFoundError:
            return ""

    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)

    def terminate(self, limit=20.0):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(limit)

    def request(self, method, path, body=None, headers=(), admin=False, limit=70.0):
        address = self.admin if admin else self.client
        unix = isinstance(address, str)
        connection = UnixConnection(address, limit) if unix else http.client.HTTPConnection(*address, timeout=limit)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            data = None if body is None else body.encode()
            if data is not None:
                connection.putheader("Content-Type", "application/json")
            if method == "POST":
                connection.putheader("Content-Length", str(len(data or b"")))
            for name, value in headers:
                connection.putheader(name, value)
            try:
                connection.endheaders(data)
            except (BrokenPipeError, ConnectionResetError):
                if connection.sock is None:
                    raise  # there was nobody to begin with
                # Refused before it was read: the answer says why.
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
            if self.secret and (self.secret.encode() in answer.body or self.secret in str(answer.headers)):
                self.leaks.add(f"the answer to {method} {path}")
            return answer
        finally:
            connection.close()
