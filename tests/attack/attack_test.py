#!/usr/bin/env python3
"""Attacks the built binary over raw sockets: attack_test.py <binary> [name]. Exit 0 when it stood.

Throughout: memory within 20 MB, every descriptor given back, the process alive, health on both listeners answered within 100 ms and a
run's state within a second, plus what the machine itself took for a connection at that moment.
"""
import os
import shutil
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
import attacks  # noqa: E402
import front as fronts  # noqa: E402
from fault_server import FaultServer  # noqa: E402
import behaviour  # noqa: E402

BIG = {"name": "big", "deadline": "1h", "steps": [{"id": "r", "server": "api", "tool": "r", "args": {"m": "big.r"}}]}


def prepare(front, faults):
    """A run that waits for its client, one with a result of 5 MB, and a warm product."""
    faults.listener("api").tool("r").plan("*", behaviour.parse('status 200 {"x": "$big$big$big$big$big"}'))
    front.run = front.submit({"name": "n", "mode": "open", "deadline": "1h"})
    front.big = front.submit(BIG)
    state = front.product.request("GET", f"/v1/runs/{front.big}?wait=30s").json
    assert state["status"] == "succeeded", state["status"]
    front.watch(f"/v1/runs/{front.run}")
    warm_up(front)
    front.at_rest = front.descriptors()


def warm_up(front):
    """As many honest clients as there are threads, so that all that a busy server has is there before it is measured."""
    def client():
        for _ in range(4):
            for path in (f"/v1/runs/{front.big}", f"/v1/runs/{front.run}/events", "/v1/runs", f"/v1/runs/{front.big}/attempts"):
                front.product.request("GET", path)
    clients = [threading.Thread(target=client) for _ in range(64)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()


class Trial:
    def __init__(self, front):
        self.front, self.problems, self.memory, self.descriptors = front, [], front.memory(), front.descriptors()

    def held_against(self, name, wrong, since, peak):
        front = self.front
        if not front.product.running():
            wrong = [*wrong, "the process has ended"]
        slowest = front.slowest(since)
        control = slowest.get("control", 0.0)
        for kind, bound in fronts.SLOWEST_MS.items():
            if not 0 <= slowest.get(kind, 0.0) <= bound + control:
                wrong = [*wrong, f"{kind} took {slowest[kind]:.0f} ms (control {control:.0f} ms)"]
        if peak.memory > self.memory + fronts.MEMORY_BYTES:
            wrong = [*wrong, f"memory grew by {(peak.memory - self.memory) / 1e6:.1f} MB"]
        figures = " ".join(f"{kind} {ms:.0f} ms" for kind, ms in slowest.items())
        print(f"{'FAIL' if wrong else 'ok  '} {name}: {figures} memory {(peak.memory - self.memory) / 1e6:+.1f} MB", flush=True)
        for sentence in wrong:
            print(f"     {sentence}")
        self.problems += [f"{name}: {sentence}" for sentence in wrong]

    def carry_out(self, attack):
        since, wrong = time.monotonic(), []
        with fronts.Peak(self.front) as peak:
            try:
                wrong = attack(self.front)
            except (OSError, AssertionError) as e:
                wrong = [f"{type(e).__name__}: {e}"]
            peak.look()
        self.held_against(attack.__name__, wrong, since, peak)

    def settle(self):
        """Everything that was taken has been given back."""
        try:
            fronts.until(lambda: self.front.descriptors() <= self.descriptors + 12, "descriptors given back", 15)
        except AssertionError:
            self.problems.append(f"descriptors: {self.front.descriptors()}, before {self.descriptors}")
        grown = self.front.memory() - self.memory
        print(f"after all: memory {grown / 1e6:+.1f} MB, descriptors {self.front.descriptors()} (before {self.descriptors})")
        if grown > fronts.MEMORY_BYTES:
            self.problems.append(f"memory grew by {grown / 1e6:.1f} MB")


def run(front, only):
    trial = Trial(front)
    print(f"before: memory {trial.memory / 1e6:.1f} MB, descriptors {trial.descriptors}")
    for attack in attacks.QUICK:
        if only in ("", attack.__name__):
            trial.carry_out(attack)
    # Together, because each lasts as long as one of the product's limits.
    long = [threading.Thread(target=trial.carry_out, args=(attack,)) for attack in attacks.LONG if only in ("", attack.__name__)]
    for thread in long:
        thread.start()
    for thread in long:
        thread.join()
    trial.settle()
    return trial.problems


def main(arguments):
    binary, only = os.path.abspath(arguments[0]), arguments[1] if len(arguments) > 1 else ""
    folder = tempfile.mkdtemp(prefix="holdfast-attack-")
    faults = FaultServer()
    faults.listener("api")
    front = fronts.Front(binary, folder, faults.fill(fronts.CONFIG))
    try:
        prepare(front, faults)
        problems = run(front, only)
        if problems:
            print(front.product.errors())
    finally:
        front.stop()
        faults.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
