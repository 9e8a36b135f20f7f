#!/usr/bin/env python3
"""wrk on the front, beside the same handlers on plain cpp-httplib: front.py HOLDFAST PLAIN_FRONT [--passes N]. Prints a table in Markdown.

Needs `wrk` (a Debian package). Every side has a ledger of its own; GET asks for one settled run, submit makes an open run each time.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import urllib.request

SUBMIT = json.dumps({"name": "n", "mode": "open", "deadline": "1h"})
LUA = 'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [[%s]]\n' % SUBMIT
CONFIG = "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\ndatabase: holdfast.db\n"
POOL_THREADS = 32


def post(url, body):
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


class Side:
    def __init__(self, name, command, folder, pattern):
        self.name, self.folder = name, folder
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = "http://" + re.search(pattern, self.process.stdout.readline())[1]
        self.get = self.settled_run()
        self.forgotten = None

    def settled_run(self):
        run = post(self.url + "/v1/runs", SUBMIT)["id"]
        post(f"{self.url}/v1/runs/{run}/finish", '{"status": "succeeded", "result": {"ok": true}}')
        return f"{self.url}/v1/runs/{run}"

    def cold(self):
        """A run that settled so long ago that it is no longer in memory."""
        if self.forgotten is None:
            self.forgotten = self.settled_run()
            for _ in range(2_000):
                self.get = self.settled_run()
        return self.forgotten

    def stop(self):
        self.process.kill()
        self.process.wait(10)


def wrk(url, connections, seconds, *more):
    """Requests per second, p99 in milliseconds, and how many went wrong."""
    threads = min(2, connections)
    out = subprocess.run(["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--latency", "--timeout", "5s", *more, url],
                         capture_output=True, text=True, check=True).stdout
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", out).groups()
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    wrong = sum(map(int, errors.groups())) if errors else 0
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    return rate, float(value) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit], wrong + (int(refused[1]) if refused else 0)


def passes(sides, script, arguments):
    """(what, side, connections) -> [(rate, p99, wrong)]; the sides take turns, so that a slow minute of the machine is everybody's."""
    found = {}
    for _ in range(arguments.passes):
        for connections in arguments.connections:
            for what in arguments.what.split(","):
                for side in sides:
                    url, more = (side.url + "/v1/runs", ("-s", script)) if what == "submit" else (side.cold() if what == "cold" else side.get, ())
                    found.setdefault((what, side.name, connections), []).append(wrk(url, connections, arguments.seconds, *more))
    return found


def cell(passes):
    rates = sorted(rate for rate, _, _ in passes)
    wrong = sum(w for _, _, w in passes)
    p99 = statistics.median(p99 for _, p99, _ in passes)
    return f"{statistics.median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f}; {p99:.1f} ms{f', {wrong} errors' if wrong else ''})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holdfast")
    parser.add_argument("plain_front")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--what", default="get,submit", help="of get, submit, and cold: a run that only the ledger remembers")
    parser.add_argument("--also", action="append", default=[], metavar="NAME=BINARY", help="another build of holdfast, beside")
    arguments = parser.parse_args()
    folders = []

    def folder():
        folders.append(tempfile.mkdtemp(prefix="holdfast-front-"))
        with open(os.path.join(folders[-1], "holdfast.yaml"), "w") as f:
            f.write(CONFIG)
        return folders[-1]

    script = os.path.join(folder(), "submit.lua")
    with open(script, "w") as f:
        f.write(LUA)
    at = folder()
    sides = [Side("plain cpp-httplib", [os.path.abspath(arguments.plain_front), at, str(POOL_THREADS)], at, r"(\S+)")]
    for name, binary in [("the front", arguments.holdfast), *(one.split("=", 1) for one in arguments.also)]:
        sides.append(Side(name, [os.path.abspath(binary), "serve", "--config", "holdfast.yaml"], folder(), r"client=(\S+)"))
    try:
        found = passes(sides, script, arguments)
        print("| requests/s: median (least to most; p99) | " + " | ".join(map(str, arguments.connections)) + " |\n|---" + "|---" * len(arguments.connections) + "|")
        for what in arguments.what.split(","):
            for side in sides:
                print(f"| {what}, {side.name} | " + " | ".join(cell(found[what, side.name, n]) for n in arguments.connections) + " |")
    finally:
        for side in sides:
            side.stop()
        for path in folders:
            shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    main()
