#!/usr/bin/env python3
"""wrk on the front, beside the same handlers on plain cpp-httplib: front.py HOLDFAST PLAIN_FRONT [SECONDS]. Prints a table in Markdown.

Needs `wrk` (a Debian package). Both sides have a ledger of their own; GET asks for one settled run, submit makes an open run each time.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

SUBMIT = json.dumps({"name": "n", "mode": "open", "deadline": "1h"})
LUA = 'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [[%s]]\n' % SUBMIT
CONFIG = "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\ndatabase: holdfast.db\n"
CONNECTIONS, POOL_THREADS = (1, 16, 64, 256), 32


def post(url, body):
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


class Side:
    def __init__(self, name, command, folder, pattern):
        self.name, self.folder = name, folder
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = "http://" + re.search(pattern, self.process.stdout.readline())[1]
        run = post(self.url + "/v1/runs", SUBMIT)["id"]
        post(f"{self.url}/v1/runs/{run}/finish", '{"status": "succeeded", "result": {"ok": true}}')
        self.get = f"{self.url}/v1/runs/{run}"

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


def main(arguments):
    binary, plain, seconds = os.path.abspath(arguments[0]), os.path.abspath(arguments[1]), arguments[2] if len(arguments) > 2 else "4"
    folders = [tempfile.mkdtemp(prefix="holdfast-front-") for _ in range(2)]
    with open(os.path.join(folders[0], "holdfast.yaml"), "w") as f:
        f.write(CONFIG)
    with open(os.path.join(folders[0], "submit.lua"), "w") as f:
        f.write(LUA)
    script = os.path.join(folders[0], "submit.lua")
    sides = [Side("plain httplib", [plain, folders[1], str(POOL_THREADS)], folders[1], r"(\S+)"),
             Side("the front", [binary, "serve", "--config", "holdfast.yaml"], folders[0], r"client=(\S+)")]
    try:
        print("| requests/s (p99) | " + " | ".join(f"{n}" for n in CONNECTIONS) + " |\n|---" * 1 + "|---" * len(CONNECTIONS) + "|")
        for what, url_of, more in (("get", lambda s: s.get, ()), ("submit", lambda s: s.url + "/v1/runs", ("-s", script))):
            for side in sides:
                cells = []
                for connections in CONNECTIONS:
                    rate, p99, wrong = wrk(url_of(side), connections, seconds, *more)
                    cells.append(f"{rate:,.0f} ({p99:.1f} ms{f', {wrong} errors' if wrong else ''})")
                print(f"| {what}, {side.name} | " + " | ".join(cells) + " |", flush=True)
    finally:
        for side in sides:
            side.stop()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
