#!/usr/bin/env python3
"""Kills the built binary under load, at named points and at random instants, and counts at the tools: kill.py BINARY [--kills N] [--worlds W]
[--seed S] [--json FILE]. Exit 0 when every oracle holds. The report is one JSON object."""
import argparse
import collections
import json
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ending  # noqa: E402
import load  # noqa: E402
from world import World  # noqa: E402

# Where to die, and how late at most: passings are drawn up to this number, small ones more often.
POINTS = {"loaded": 1, "before_commit": 60, "in_commit": 60, "committed": 60, "submit_committed": 20, "command_committed": 30, "answered": 40, "settled": 20,
          "folding": 3, "folded": 3, "checkpoint_begun": 1, "checkpoint_done": 1, "connected": 60, "half_head": 60, "request_sent": 60, "frame_sent": 10, "answer_read": 60,
          "before_absorb": 60, "backup_copied": 1, "draining": 1, "drained": 1}
CLIENTS = 5
PATIENCE = 2.0        # seconds until a point that is not reached becomes a random instant
SLOWEST_START = 10.0  # seconds; what CI machines take at their worst


class Campaign:
    def __init__(self, binary, folder, seed, kills):
        self.world, self.draws, self.kills = World(binary, folder, seed), random.Random(f"kill {seed}"), kills
        self.deaths, self.ready, self.born, self.recovery = collections.Counter(), [], [], []

    def run(self):
        world = self.world
        clients = [load.Client(world, i) for i in range(CLIENTS)]
        operator = load.Operator(world)
        if not self.die_once("migrating", 1):
            world.problem("the first start did not die while it migrated")
        for thread in [*clients, operator]:
            thread.start()
        bag = []
        for _ in range(self.kills - 1):
            bag = bag or self.draws.sample([*POINTS, *["instant"] * 5], k=len(POINTS) + 5)
            point = bag.pop()
            self.die_once(point, self.passing(POINTS.get(point, 1)))
            if len(world.problems) > 20:
                break
        report = ending.come_to_rest(world, clients, operator, self.start)
        report |= {"kills": sum(self.deaths.values()), "by_point": dict(self.deaths), "ready_s": self.ready, "first_progress_s": self.first_progress()}
        return report

    def passing(self, most):
        return min(most, max(1, int(most ** self.draws.random() + 0.5)))

    def start(self, crash_at=None):
        before = time.monotonic()
        alive = self.world.product.launch(crash_at)
        if alive:
            took = time.monotonic() - before
            self.ready.append(took)
            self.born.append(before)
            if took > SLOWEST_START:
                self.world.problem(f"a start took {took:.1f} s")
            self.world.up.set()
        return alive

    def die_once(self, point, passing):
        """One life, ended by SIGKILL at the point, or somewhere within PATIENCE. True when it was at the point."""
        product = self.world.product
        alive = self.start(None if point == "instant" else f"{point}:{passing}")
        if alive:
            if point in ("draining", "drained"):
                time.sleep(self.draws.uniform(0.05, 0.3))
                product.process.terminate()
            if point == "backup_copied":
                threading.Thread(target=self.world.ask, args=("POST", "/v1/backup", {"path": os.path.join(self.world.folder, f"b{time.monotonic_ns()}.db")}),
                                 kwargs={"admin": True}, daemon=True).start()
            there = product.died(self.draws.uniform(0.02, 0.8) if point == "instant" else PATIENCE)
            self.world.up.clear()
            if not there:
                product.kill()
        died_there = product.process.returncode == -9 and (not alive or there) and point != "instant"
        if product.process.returncode != -9:
            self.world.problem(f"{point}: ended with {product.process.returncode} by itself: {product.errors()}")
        self.deaths[point if died_there else "instant"] += 1
        return died_there

    def first_progress(self):
        """Seconds from each start to the first request that a tool saw of it."""
        times = [fact["at"] for fact in self.world.facts() if fact["what"] == "hit"]
        out = []
        for born, ready, next_born in zip(self.born, self.ready, [*self.born[1:], float("inf")]):
            first = next((at for at in times if born + 0.005 < at < next_born), None)
            if first is not None:
                out.append(first - born)
        return out


def one_world(binary, seed, kills, results):
    folder = tempfile.mkdtemp(prefix="holdfast-kill-")
    campaign = Campaign(binary, folder, seed, kills)
    report = {}
    try:
        report = campaign.run()
    except Exception as e:
        campaign.world.problem(f"{type(e).__name__}: {e}")
    finally:
        campaign.world.close()
    problems = campaign.world.problems
    if problems:
        kept = folder
    else:
        kept = None
        shutil.rmtree(folder, ignore_errors=True)
    results.put((report, problems, kept))


def summed(reports):
    total = collections.Counter()
    for report in reports:
        for key, value in report.items():
            if isinstance(value, int):
                total[key] += value
            elif isinstance(value, dict):
                total.update({f"{key}.{k}": v for k, v in value.items()})
    out = {key: value for key, value in total.items() if "." not in key}
    for group in ("by_point", "statuses"):
        out[group] = {key.partition(".")[2]: value for key, value in sorted(total.items()) if key.startswith(group + ".")}
    for key in ("ready_s", "first_progress_s"):
        values = [value for report in reports for value in report.get(key, [])]
        if values:
            out[key] = {"median": round(statistics.median(values), 3), "p95": round(sorted(values)[int(len(values) * 0.95)], 3), "max": round(max(values), 3)}
    return out


def main():
    options = argparse.ArgumentParser()
    options.add_argument("binary")
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--worlds", type=int, default=min(4, os.cpu_count() or 2))
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 32))
    options.add_argument("--json")
    args = options.parse_args()
    results, started = multiprocessing.Queue(), time.monotonic()
    shares = [args.kills // args.worlds + (i < args.kills % args.worlds) for i in range(args.worlds)]
    workers = [multiprocessing.Process(target=one_world, args=(os.path.abspath(args.binary), args.seed + i, share, results)) for i, share in enumerate(shares)]
    for worker in workers:
        worker.start()
    ends = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    report = {"seed": args.seed, "seconds": round(time.monotonic() - started, 1)} | summed([r for r, _, _ in ends])
    problems = [p for _, found, _ in ends for p in found]
    report["problems"] = len(problems)
    print(json.dumps(report, indent=1))
    if args.json:
        with open(args.json, "w") as f:
            json.dump(report, f, indent=1)
    for problem in problems:
        print("PROBLEM", problem, file=sys.stderr)
    if problems:
        print(f"again: tests/crash/kill/kill.py {args.binary} --kills {args.kills} --worlds {args.worlds} --seed {args.seed}; "
              f"what is left: {' '.join(k for _, _, k in ends if k)}", file=sys.stderr)
    missed = sorted(set(POINTS) - set(report.get("by_point", {}))) if args.kills >= 200 else []
    if missed:
        print(f"PROBLEM never died at: {' '.join(missed)}", file=sys.stderr)
    return 1 if problems or missed else 0


if __name__ == "__main__":
    sys.exit(main())
