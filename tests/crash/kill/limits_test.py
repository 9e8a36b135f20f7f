#!/usr/bin/env python3
"""The built binary, stopped, starved and doubled: limits_test.py BINARY. The same witnesses and oracles as after kills."""
import collections
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ending  # noqa: E402
import load  # noqa: E402
from rows import rows_of  # noqa: E402
from world import World  # noqa: E402

BINARY = None
MiB = 1 << 20


class Starved(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="holdfast-limits-")
        self.world = World(BINARY, self.folder, seed=7)
        self.clients, self.operator = [load.Client(self.world, i) for i in range(4)], None

    def tearDown(self):
        self.world.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, limits=()):
        self.assertTrue(self.world.product.launch(limits=limits), self.world.product.errors())
        self.world.up.set()
        return True

    def begin(self, limits=()):
        self.start(limits)
        for client in self.clients:
            client.start()

    def until(self, holds, what, limit=30.0):
        end = time.monotonic() + limit
        while not holds():
            self.assertLess(time.monotonic(), end, f"{what}: not within {limit:g} s; {self.world.product.errors()}")
            time.sleep(0.02)

    def requests_seen(self):
        return sum(fact["what"] == "hit" for fact in self.world.facts())

    def finish(self):
        report = ending.come_to_rest(self.world, self.clients, self.operator, self.start)
        self.assertEqual(self.world.problems, [])
        self.assertGreater(report["hits"], 0)
        self.assertEqual((report["lost_runs"], report["repeated_writes"]), (0, 0))
        return report

    def raise_limit(self, what, value):
        resource.prlimit(self.world.product.process.pid, what, (value, resource.prlimit(self.world.product.process.pid, what)[1]))

    def wait_until_full(self):
        """Alive, answering, and not ready."""
        def full():
            self.assertTrue(self.world.product.running(), f"died: {self.world.product.process.returncode} {self.world.product.errors()}")
            answer = self.world.ask("GET", "/readyz", limit=5.0)
            return answer is not None and answer.status == 503
        self.until(full, "the disk is full")

    def ready(self):
        answer = self.world.ask("GET", "/readyz", limit=2.0)
        return answer is not None and answer.status == 200

    def test_stopped_past_every_deadline(self):
        """SIGSTOP with calls out, for longer than a call's deadline and once for longer than a run's."""
        self.begin()
        for seconds in (1.5, 2.5, 16.0):
            seen = self.requests_seen()
            self.until(lambda: self.requests_seen() > seen + 40, "requests")
            self.world.product.process.send_signal(signal.SIGSTOP)
            time.sleep(seconds)  # time itself is the matter
            self.world.product.process.send_signal(signal.SIGCONT)
        self.until(self.ready, "ready again")
        self.finish()

    def test_a_disk_that_fills_and_is_freed(self):
        """RLIMIT_FSIZE stands in for a full disk: nothing leaves without a row, and all goes on by itself once there is room."""
        unlimited = resource.RLIM_INFINITY
        self.start()
        resource.prlimit(self.world.product.process.pid, resource.RLIMIT_FSIZE, (MiB, unlimited))
        for client in self.clients:
            client.start()
        for room in (2 * MiB, 3 * MiB, unlimited):  # all less than what makes a checkpoint due, which would make room by itself
            self.wait_until_full()
            answer = self.world.ask("POST", "/v1/runs", {"name": "late", "steps": [{"id": "s", "server": "api", "tool": "read"}]})
            self.assertIn(answer.status, (503, 507))
            self.raise_limit(resource.RLIMIT_FSIZE, room)
            self.until(self.ready, "ready again")
        self.finish()

    def test_a_full_disk_and_a_kill(self):
        self.start()
        for client in self.clients:
            client.start()
        for _ in range(5):
            resource.prlimit(self.world.product.process.pid, resource.RLIMIT_FSIZE, (MiB, resource.RLIM_INFINITY))
            self.wait_until_full()
            self.world.up.clear()
            self.world.product.kill()
            self.start()
        self.finish()

    def test_no_descriptors(self):
        """Fewer descriptors than calls and connections want: calls that get none were never sent, and nothing dies."""
        self.start(limits=[(resource.RLIMIT_NOFILE, 36)])
        for client in self.clients:
            client.start()
        self.until(lambda: self.starved() > 5, "calls without a descriptor", limit=60.0)
        self.assertTrue(self.world.product.running())
        self.world.up.clear()
        self.world.product.kill()
        self.start()
        self.finish()

    def starved(self):
        try:
            with rows_of(f"{self.folder}/holdfast.db", self.world.product.binary) as ledger:
                return ledger.execute("SELECT count(*) FROM attempts WHERE rule = 'A5'").fetchone()[0]
        except subprocess.CalledProcessError:
            return 0  # copied while the product wrote: asked again

    def test_a_second_process_on_the_same_file(self):
        self.begin()
        self.until(lambda: self.requests_seen() > 20, "requests")
        with open(os.path.join(self.folder, "holdfast.yaml")) as f:
            config = f.read().replace(f":{self.world.product.client[1]}", ":0").replace(f":{self.world.product.admin[1]}", ":0")
        with open(os.path.join(self.folder, "second.yaml"), "w") as f:
            f.write(config)
        for _ in range(3):
            second = subprocess.run([BINARY, "serve", "--config", "second.yaml"], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    timeout=20)
            self.assertEqual(second.returncode, 1)
            self.assertIn(str(self.world.product.process.pid), second.stderr)
        self.finish()

    def test_a_restored_backup(self):
        """What was open in the backup has gone on since: no effect comes twice, and nothing but reads and known keys leaves by itself."""
        self.begin()
        self.until(lambda: self.requests_seen() > 100, "requests")
        backup = os.path.join(self.folder, "backup.db")
        self.assertEqual(self.world.insist("POST", "/v1/backup", {"path": backup}, admin=True).status, 200)
        open_then = self.open_in(backup)
        seen = self.requests_seen()
        self.until(lambda: self.requests_seen() > seen + 300, "requests after the backup")
        for client in self.clients:
            client.stop.set()
        self.world.over.set()
        for client in self.clients:
            client.join(20)
        self.world.product.terminate()
        self.world.over.clear()
        for suffix in ("-wal", "-shm"):
            if os.path.exists(os.path.join(self.folder, "holdfast.db" + suffix)):
                os.remove(os.path.join(self.folder, "holdfast.db" + suffix))
        os.replace(backup, os.path.join(self.folder, "holdfast.db"))
        self.world.heal()
        self.start()
        self.until(lambda: not ending.still_open(self.world), "every restored run rests", limit=40.0)
        self.assertTrue(self.world.fence())
        unknown = self.world.ask("GET", "/v1/runs?status=unknown&limit=200").json["items"]
        self.assertTrue({run["id"] for run in unknown} & open_then, "a run that was open in the backup is unknown")
        self.settle_as_recorded(unknown)
        for place, count in self.effects().items():
            self.assertEqual(count, 1, f"{place} took effect {count} times")
        self.assertEqual(self.world.problems, [])

    def settle_as_recorded(self, runs):
        """Every unknown, by what the tools have seen; what was not seen is sent now."""
        for run in runs:
            for step in run["steps"]:
                if step["status"] == "unknown":
                    seen = any(m == f"{run['name']}/{step['id']}" for _, m in self.effects())
                    verdict = {"verdict": "landed" if seen else "not_landed", "note": "looked it up", "deadline": "8s"}
                    answer = self.world.ask("POST", f"/v1/unknowns/{step['write']['id']}/resolve", verdict, admin=True)
                    self.assertEqual(answer.status, 200, answer.body)
        self.until(lambda: not ending.still_open(self.world), "every settled run rests")

    def effects(self):
        return collections.Counter((fact["tool"], fact["m"]) for fact in self.world.facts() if fact["what"] == "effect")

    def open_in(self, path):
        with rows_of(path, self.world.product.binary) as ledger:
            return {row[0] for row in ledger.execute("SELECT id FROM runs WHERE settled = 0")}


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
