"""A started product under attack, and what is held against it: memory, descriptors, and how other clients fare."""
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support")]
from product import Product  # noqa: E402

MEMORY_BYTES = 20 << 20
SLOWEST_MS = {"health": 100.0, "admin": 100.0, "short": 1000.0}  # `short` queues behind what a storm has asked for
CONFIG = """listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
database: holdfast.db
limits: {connections: 4096, body_bytes: 8MiB}
servers:
  api: {http: {base_url: "@api@"}, tools: {w: {request: {method: POST, path: /t/w}}, r: {effect: read, deadline: 60s, request: {method: POST, path: /t/r}}}}
"""
RUN = {"name": "n", "mode": "open", "deadline": "1h"}


class Front:
    def __init__(self, binary, folder, config=CONFIG):
        with open(os.path.join(folder, "holdfast.yaml"), "w") as f:
            f.write(config)
        self.product = Product(binary, folder)
        self.product.start()
        self.client, self.admin = self.product.client, self.product.admin
        self.samples, self.probe = [], None

    def submit(self, body, key=None):
        """The run's id."""
        answer = self.product.request("POST", "/v1/runs", json.dumps(body), [("Idempotency-Key", key)] if key else [])
        assert answer.status in (200, 201), (answer.status, answer.body[:300])
        return answer.json["id"]

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.product.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.product.process.pid}/fd"))

    def threads(self):
        """Names of the process's threads."""
        names = []
        for task in os.listdir(f"/proc/{self.product.process.pid}/task"):
            try:
                with open(f"/proc/{self.product.process.pid}/task/{task}/comm") as f:
                    names.append(f.read().strip())
            except FileNotFoundError:
                pass
        return names

    def watch(self, path):
        """Starts asking what other clients ask."""
        self.probe = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "probe.py"), str(self.client[1]), str(self.admin[1]), path],
                                      stdout=subprocess.PIPE, text=True)

        def follow():
            for line in self.probe.stdout:
                at, kind, took = line.split()
                self.samples.append((float(at), kind, float(took)))
        threading.Thread(target=follow, daemon=True).start()
        until(lambda: len(self.samples) >= 40, "the probe", 20)

    def slowest(self, since):
        """By kind: the slowest in milliseconds since then, or -1 when one had no good answer."""
        out = {}
        for at, kind, took in list(self.samples):
            if at >= since:
                out[kind] = -1.0 if took < 0 or out.get(kind, 0) < 0 else max(out.get(kind, 0.0), took)
        return out

    def stop(self):
        if self.probe:
            self.probe.kill()
            self.probe.wait(10)
        if self.product.running():
            self.product.kill()


def until(ready, what, limit=10.0):
    end = time.monotonic() + limit
    while not ready():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {limit:g} s")
        time.sleep(0.01)


class Peak:
    """The highest memory and the most descriptors while it is open."""

    def __init__(self, front):
        self.front, self.memory, self.descriptors, self.over = front, 0, 0, threading.Event()

    def look(self):
        self.memory = max(self.memory, self.front.memory())
        self.descriptors = max(self.descriptors, self.front.descriptors())

    def __enter__(self):
        def sample():
            while not self.over.wait(0.02):
                try:
                    self.look()
                except OSError:
                    return
        self.thread = threading.Thread(target=sample, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
