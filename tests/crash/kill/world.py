"""One world: the recorder, the product on fixed ports, and what was promised to its clients."""
import http.client
import json
import os
import random
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "support")]
from product import Product, READY, place  # noqa: E402

CONFIG = """
listen: 127.0.0.1:{client}
admin_listen: 127.0.0.1:{admin}
database: holdfast.db
shutdown_grace: 300ms
defaults: {{deadline: 1s, max_attempts: 4, backoff: {{base: 50ms, cap: 400ms}}, run_deadline: 15s}}
servers:
  api:
    http: {{base_url: "{url}"}}
    max_in_flight: 64
    breaker: {{consecutive_failures: 12, min_calls: 60, failure_rate: 0.9, cooldown: 300ms, max_cooldown: 1s}}
    tools:
      read: {{effect: read, request: {{method: GET, path: /t/read}}}}
      plain: {{effect: write, request: {{method: POST, path: /t/plain}}}}
      keyed: {{effect: write, request: {{method: POST, path: /t/keyed}}, key: {{header: Idempotency-Key}}}}
      checked:
        effect: write
        request: {{method: POST, path: /t/checked}}
        check: {{tool: find, args: {{m: "${{args/m}}"}}, found: {{pointer: /total, not: 0}}, settle: 1s, for: 1m}}
      find: {{effect: read, request: {{method: GET, path: /t/find}}}}
  crm:
    mcp: {{url: "{url}/mcp"}}
    max_in_flight: 16
    breaker: {{consecutive_failures: 12, cooldown: 300ms, max_cooldown: 1s}}
    tools: {{look: {{effect: read}}, post: {{}}}}
  files:
    mcp: {{command: [{python}, -B, {stdio}, {log}]}}
    tools: {{append: {{}}}}
"""


def free_port():
    """Below the ephemeral range, so that nobody's outgoing connection takes it while the product is down."""
    while True:
        port = random.SystemRandom().randrange(18000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Victim(Product):
    """The product, which may die at any moment."""

    def launch(self, crash_at=None, limits=(), limit=20.0):
        """True when it became ready, False when it died first."""
        environment = dict(self.environment)
        arguments = [self.binary, "serve", "--config", "holdfast.yaml"]
        if crash_at:
            environment["HOLDFAST_CRASH_AT"] = crash_at
            arguments.append("--allow-crash-points")

        def set_limits():
            for what, value in limits:
                resource.setrlimit(what, (value, value))
        if self.process:
            self.process.stdout.close()
        with open(os.path.join(self.folder, "err.log"), "ab") as errors:
            self.process = subprocess.Popen(arguments, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=errors, text=True, preexec_fn=set_limits if limits else None)
        if not select.select([self.process.stdout], [], [], limit)[0]:
            self.kill()
            raise AssertionError(f"not ready within {limit:g} s: {self.errors()}")
        ready = READY.search(self.process.stdout.readline())
        if ready:
            self.client, self.admin = place(ready[1]), place(ready[2])
            return True
        self.process.wait(10)
        return False

    def died(self, limit):
        """True when it ended within `limit` seconds."""
        try:
            self.process.wait(limit)
            return True
        except subprocess.TimeoutExpired:
            return False


class World:
    def __init__(self, binary, folder, seed):
        self.folder, self.seed, self.log = folder, seed, os.path.join(folder, "tools.log")
        open(self.log, "w").close()
        self.recorder = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "recorder.py"), self.log, str(seed)], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        self.url = self.recorder.stdout.readline().strip()
        self.product = Victim(binary, folder)
        self.product.client, self.product.admin = ("127.0.0.1", free_port()), ("127.0.0.1", free_port())
        with open(os.path.join(folder, "holdfast.yaml"), "w") as f:
            f.write(CONFIG.format(client=self.product.client[1], admin=self.product.admin[1], url=self.url, log=self.log, python=sys.executable,
                                  stdio=os.path.join(HERE, "stdio_tool.py")))
        self.up, self.over, self.lock = threading.Event(), threading.Event(), threading.Lock()
        self.known_facts, self.read_so_far = [], 0
        self.promised, self.submitted, self.problems = {}, set(), []  # promised: run name -> id, from an answer that a client has read

    def problem(self, text):
        with self.lock:
            if len(self.problems) < 50:
                self.problems.append(text)

    def ask(self, method, path, body=None, headers=(), admin=False, limit=10.0):
        """The answer, or None when the product died or was not there: the caller repeats what it asked."""
        try:
            return self.product.request(method, path, None if body is None else json.dumps(body), headers, admin, limit)
        except (OSError, http.client.HTTPException, AttributeError):  # http.client's own words for a connection that is gone
            return None

    def insist(self, *arguments, **options):
        """As ask(), again and again until it is answered with anything but 503 or 507; None when the world is over."""
        while not self.over.is_set():
            self.up.wait(1.0)
            answer = self.ask(*arguments, **options)
            if answer is not None and answer.status not in (503, 507):
                return answer
            self.over.wait(0.02)
        return None

    def fence(self):
        """True when the recorder has carried out everything that was sent to it before."""
        try:
            with urllib.request.urlopen(self.url + "/fence", timeout=40) as answer:
                return answer.status == 200
        except OSError:
            return False

    def heal(self):
        self.recorder.send_signal(signal.SIGUSR1)

    def facts(self):
        """What the recorder has seen so far, oldest first."""
        with self.lock:
            with open(self.log, "rb") as f:
                f.seek(self.read_so_far)
                new = f.read()
            whole = new[:new.rfind(b"\n") + 1]
            self.read_so_far += len(whole)
            self.known_facts += [json.loads(line) for line in whole.splitlines()]
            return list(self.known_facts)

    def close(self):
        self.over.set()
        if self.product.running():
            self.product.kill()
        self.product.process.stdout.close()
        self.recorder.stdin.close()
        self.recorder.stdout.close()
        self.recorder.wait(10)

