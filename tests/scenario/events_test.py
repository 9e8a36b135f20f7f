#!/usr/bin/env python3
"""No event is missed or doubled: events_test.py <binary> [seed]. Exit 0 when it holds.

Runs go on while readers follow them by pages, long polls and streams, let go of their connections at random and come back with the last
event that they have seen; the server is killed in between. Every reader must have seen exactly the events of its run, in order, with one
`run.settled` as the last one, and a later start must show the same.
"""
import http.client
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
import behaviour  # noqa: E402
from fault_server import FaultServer  # noqa: E402
from product import Product  # noqa: E402

RUNS, STEPS, READERS_EACH, KILLS, LIMIT_SECONDS = 8, 6, 3, 5, 60.0
CONFIG = """listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
database: holdfast.db
defaults: {deadline: 2s, max_attempts: 30, backoff: {base: 10ms, cap: 50ms}, run_deadline: 10m, retry_budget: 200}
servers:
  api:
    http: {base_url: "@api@"}
    breaker: {consecutive_failures: 100000, failure_rate: 1.0, min_calls: 100000}
    tools: {r: {effect: read, request: {method: POST, path: /t/r}}}
"""


class Reader(threading.Thread):
    """Follows one run until its end, by one way of asking."""

    def __init__(self, product, run, way, seed):
        super().__init__(daemon=True)
        self.product, self.run_id, self.way, self.choice = product, run, way, random.Random(seed)
        self.seen, self.after, self.connects, self.fault = [], 0, 0, None

    def run(self):
        end = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < end and not self.over():
            try:
                self.connects += 1
                getattr(self, self.way)()
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.02)  # the server is away; it says nowhere when it is back
            except AssertionError as e:
                self.fault = str(e)
                return

    def over(self):
        return bool(self.seen) and self.seen[-1]["type"] == "run.settled"

    def take(self, event):
        assert event["seq"] > self.after, f"{event['seq']} after {self.after}"
        self.seen.append(event)
        self.after = event["seq"]

    def page(self, wait=""):
        answer = self.product.request("GET", f"/v1/runs/{self.run_id}/events?after={self.after}{wait}", limit=5.0)
        if answer.status >= 500:
            raise OSError(answer.status)
        assert answer.status == 200, answer.status
        for event in answer.json["events"]:
            self.take(event)
        assert answer.json["next"] == self.after, (answer.json["next"], self.after)
        if not wait:
            time.sleep(0.01)  # a page is what is there now

    def long_poll(self):
        self.page("&wait=2s")

    def stream(self):
        connection = http.client.HTTPConnection(*self.product.client, timeout=5.0)
        leave_after = self.choice.randint(1, 6)
        try:
            connection.request("GET", f"/v1/runs/{self.run_id}/events", headers={"Accept": "text/event-stream", "Last-Event-ID": str(self.after)})
            response = connection.getresponse()
            if response.status >= 500:
                raise OSError(response.status)
            assert response.status == 200, response.status
            fields = {}
            for line in response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "data" in fields:
                    event = json.loads(fields["data"])
                    assert fields["id"] == str(event["seq"]) and fields["event"] == event["type"], fields
                    self.take(event)
                    fields, leave_after = {}, leave_after - 1
                    if leave_after == 0:
                        return
        finally:
            connection.close()


def submission(i):
    steps = [{"id": f"s{n}", "server": "api", "tool": "r", "args": {"n": n}, **({"after": []} if n % 3 == 0 else {})} for n in range(STEPS)]
    return json.dumps({"name": f"run {i}", "steps": steps})


def all_events(product, run):
    events, after = [], 0
    while True:
        page = product.request("GET", f"/v1/runs/{run}/events?after={after}").json
        if not page["events"]:
            return events
        events += page["events"]
        after = page["next"]


def faults_of(reader, events):
    if reader.fault:
        yield reader.fault
    if reader.seen != events:
        yield f"saw {[e['seq'] for e in reader.seen]}, there are {[e['seq'] for e in events]}"


def trial(product, seed):
    choice = random.Random(seed)
    runs = [product.request("POST", "/v1/runs", submission(i), [("Idempotency-Key", f"k{i}")]).json["id"] for i in range(RUNS)]
    ways = ("page", "long_poll", "stream")
    readers = [Reader(product, run, ways[n % 3], choice.random()) for run in runs for n in range(READERS_EACH)]
    for reader in readers:
        reader.start()
    for _ in range(KILLS):
        time.sleep(choice.uniform(0.05, 0.6))  # the moment of the kill is what is random here
        product.kill()
        product.start()
    for reader in readers:
        reader.join(LIMIT_SECONDS)
    wrong = []
    stored = {run: all_events(product, run) for run in runs}
    for reader in readers:
        wrong += [f"{reader.way} of {reader.run_id}: {fault}" for fault in faults_of(reader, stored[reader.run_id])]
    for run, events in stored.items():
        if [e["seq"] for e in events] != list(range(1, len(events) + 1)):
            wrong.append(f"{run}: gaps in {[e['seq'] for e in events]}")
        if [e["type"] for e in events].count("run.settled") != 1 or events[-1]["type"] != "run.settled":
            wrong.append(f"{run}: {[e['type'] for e in events]}")
    product.kill()
    product.start()
    wrong += [f"{run}: other events after a restart" for run, events in stored.items() if all_events(product, run) != events]
    print(f"seed {seed}: {sum(map(len, stored.values()))} events of {RUNS} runs, {len(readers)} readers came {sum(r.connects for r in readers)} times")
    return wrong


def main(arguments):
    seed = int(arguments[1]) if len(arguments) > 1 else int(time.time())
    folder, faults = tempfile.mkdtemp(prefix="holdfast-events-"), FaultServer()
    faults.listener("api").tool("r").plan("*", behaviour.parse("wait 150ms; status 200 {}"))
    for hit in range(1, 400, 4):
        faults.listener("api").tool("r").plan(hit, behaviour.parse("wait 30ms; status 503 {}"))
    with open(os.path.join(folder, "holdfast.yaml"), "w") as f:
        f.write(faults.fill(CONFIG))
    product = Product(os.path.abspath(arguments[0]), folder)
    try:
        product.start()
        wrong = trial(product, seed)
    finally:
        if product.running():
            product.kill()
        faults.stop()
        shutil.rmtree(folder, ignore_errors=True)
    for sentence in wrong:
        print(sentence)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
