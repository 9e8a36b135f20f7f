#!/usr/bin/env python3
"""Instructions that the built binary takes for its hot paths, counted by callgrind: instructions.py HOLDFAST [--write].

Counts repeat within a few percent on any machine, however busy. Exits 1 when one is above its ceiling in instructions.json, or so far below
that the ceiling says nothing any more; --write sets the ceilings anew, a twentieth above what was counted.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from http.client import HTTPConnection

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from scale import World, run_of  # noqa: E402

CEILINGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.json")
RUNS = 150


class Counter:
    """Drives the server over one kept connection, and asks callgrind what a piece of work took."""

    def __init__(self, world):
        self.world, self.connection, self.part = world, HTTPConnection(*world.product.client, timeout=120), 0

    def ask(self, method, target, body=None):
        self.connection.request(method, target, body, {"Content-Type": "application/json"} if body else {})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status in (200, 201), text
        return json.loads(text)

    def taken(self):
        """Instructions of all threads since the last time this was asked."""
        self.part += 1
        subprocess.run(["callgrind_control", f"--dump=part{self.part}", str(self.world.product.process.pid)], check=True, capture_output=True, text=True)
        newest = max(glob.glob(os.path.join(self.world.folder, "callgrind.out.*")), key=os.path.getmtime)
        return sum(int(n) for n in re.findall(r"^summary: (\d+)", open(newest).read(), re.M))

    def each(self, work):
        self.taken()
        for _ in range(RUNS):
            work()
        return self.taken() // RUNS

    def run_to_end(self, steps):
        run = self.ask("POST", "/v1/runs", run_of("keyed", steps))["id"]
        while not self.ask("GET", f"/v1/runs/{run}?wait=30s")["settled"]:
            pass
        return run


def count(binary):
    with World(binary) as w:
        wrapper = os.path.join(w.folder, "counted")
        with open(wrapper, "w") as f:
            f.write(f'#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file={w.folder}/callgrind.out --quiet {binary} "$@"\n')
        os.chmod(wrapper, 0o755)
        w.product.binary = wrapper
        w.product.start(limit=120)
        c = Counter(w)
        for _ in range(20):
            run = c.run_to_end(5)
        one, five = c.each(lambda: c.run_to_end(1)), c.each(lambda: c.run_to_end(5))
        opened = json.dumps({"name": "scale", "mode": "open", "deadline": "1h"})
        return {"a run of one step, submitted and waited for": one, "each further step": (five - one) // 4,
                "a submission without a step": c.each(lambda: c.ask("POST", "/v1/runs", opened)), "a poll of a settled run": c.each(lambda: c.ask("GET", f"/v1/runs/{run}"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if not shutil.which("callgrind_control"):
        print("valgrind is not installed")
        return 77
    counted = count(os.path.abspath(arguments.binary))
    if arguments.write:
        with open(CEILINGS, "w") as f:
            f.write(json.dumps({what: n + n // 20 for what, n in counted.items()}, indent=2) + "\n")
    ceilings, wrong = json.load(open(CEILINGS)), 0
    assert ceilings.keys() == counted.keys()
    for what, n in counted.items():
        verdict = "above its ceiling" if n > ceilings[what] else "far below its ceiling: lower it with --write" if n < 0.7 * ceilings[what] else ""
        wrong += bool(verdict)
        print(f"{what}: {n:,} instructions, ceiling {ceilings[what]:,} {verdict}".rstrip())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
