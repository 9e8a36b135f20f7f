"""A workbench for tests of operations: a tool server, the product beside it, and a client."""
import hashlib
import http.server
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from product import Product  # noqa: E402

STDIO_TOOLS = os.path.join(HERE, "..", "support", "stdio_tools.py")


class Tools(http.server.ThreadingHTTPServer):
    """Answers every request at once, but for /hold, which waits for release(). Counts hits by path."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.hits, self.held, self.gate, self.lock = {}, threading.Event(), threading.Event(), threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a caller that hung up
            super().handle_error(request, client_address)

    def release(self):
        self.gate.set()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            self.server.hits[self.path] = self.server.hits.get(self.path, 0) + 1
        if self.path == "/hold":
            self.server.held.set()
            self.server.gate.wait(30)
        body = json.dumps({"path": self.path, "authorization": self.headers.get("Authorization")}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Bench(unittest.TestCase):
    binary = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="holdfast-operate-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.tools = Tools()
        self.addCleanup(self.tools.server_close)
        self.addCleanup(self.tools.shutdown)
        self.addCleanup(self.tools.release)

    def path(self, name):
        return os.path.join(self.folder, name)

    def server(self, **tools):
        """A plain HTTP server whose tools are writes: name=path."""
        return {"http": {"base_url": self.tools.url}, "tools": {
            name: {"effect": "write", "deadline": "30s", "request": {"method": "POST", "path": path}} for name, path in tools.items()}}

    def configure(self, folder=None, **fields):
        config = {"listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0", "database": "holdfast.db", **fields}
        with open(os.path.join(folder or self.folder, "holdfast.yaml"), "w") as file:
            json.dump(config, file)

    def product(self, folder=None):
        product = Product(self.binary, folder or self.folder)
        self.addCleanup(lambda: product.running() and product.kill())
        product.start()
        return product

    def submit(self, product, *steps, token=None, key=None):
        body = json.dumps({"deadline": "5m", "steps": [{"id": f"s{i}", "server": server, "tool": tool} for i, (server, tool) in enumerate(steps)]})
        headers = ([("Authorization", f"Bearer {token}")] if token else []) + ([("Idempotency-Key", key)] if key else [])
        answer = product.request("POST", "/v1/runs", body, headers)
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json["id"]

    def get(self, product, path, token=None, admin=False):
        return product.request("GET", path, None, [("Authorization", f"Bearer {token}")] if token else [], admin=admin)

    def wait_for(self, condition, what, limit=20.0):
        until = time.monotonic() + limit
        while not (value := condition()):
            self.assertLess(time.monotonic(), until, f"{what}: not within {limit:g} s")
            time.sleep(0.02)
        return value

    def log(self):
        """Every line of the log; each is a JSON object."""
        with open(self.path("err.log")) as file:
            return [json.loads(line) for line in file.read().splitlines()]


def token_line(name, scope, token):
    return {"name": name, "scope": scope, "sha256": hashlib.sha256(token.encode()).hexdigest()}


def main():
    Bench.binary = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__", verbosity=2, warnings="ignore")
