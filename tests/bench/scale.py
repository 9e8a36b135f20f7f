#!/usr/bin/env python3
"""What the load generator does not show: scale.py HOLDFAST [idle|recovery|slow|waiting|old …] [--small]. Prints one line per figure.

idle      start to ready, and memory and processor time of a server that has nothing to do
recovery  1,000 open runs of five steps, kill -9, start: when the first call comes, and when all have ended, beside the same without a kill
slow      5,000 calls of ten seconds at once: memory, threads, and how late deadlines fire meanwhile
waiting   100,000 runs behind an open circuit: memory for each, threads, processor time
old       makes a ledger of 1,000,000 settled runs at the path given by --keep, for `holdfast_bench --ledger`; listing and polling beside an empty one

Everything listens on loopback. --small does the same with a hundredth, to see that the script works. Exits 1 when a goal is missed
at full size.
"""
import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import shutil
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from product import Product  # noqa: E402

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'
SICK = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
TICKS = os.sysconf("SC_CLK_TCK")


class Tool(asyncio.Protocol):
    """Answers each request after `delay` seconds, or 503 to paths with `sick`; notes when requests came."""
    delay, stamps = 0.0, None

    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15:].split(b"\r\n")[0]) if at >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length:]
            with Tool.stamps.get_lock():
                if Tool.stamps[0] == 0.0:
                    Tool.stamps[0] = time.monotonic()
                Tool.stamps[1] += 1
            if b"/sick" in head.split(b"\r\n")[0]:
                self.transport.write(SICK)
            elif Tool.delay:
                asyncio.get_running_loop().call_later(Tool.delay, self.answer)
            else:
                self.transport.write(ANSWER)

    def answer(self):
        if not self.transport.is_closing():
            self.transport.write(ANSWER)


def tool_process(port, stamps, delay):
    Tool.delay, Tool.stamps = delay, stamps

    async def serve():
        server = await asyncio.get_running_loop().create_server(Tool, "127.0.0.1", 0, backlog=8192)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()
    asyncio.run(serve())


class World:
    """A server in a folder of its own, and a tool in a process of its own."""

    def __init__(self, binary, delay=0.0, in_flight=256, more=""):
        self.folder = tempfile.mkdtemp(prefix="holdfast-scale-")
        self.stamps = multiprocessing.Array("d", 2)  # first request, count of requests
        port = multiprocessing.Value("i", 0)
        self.tool = multiprocessing.Process(target=tool_process, args=(port, self.stamps, delay), daemon=True)
        self.tool.start()
        until(lambda: port.value, 10)
        with open(os.path.join(self.folder, "holdfast.yaml"), "w") as f:
            f.write("listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\ndatabase: holdfast.db\n"
                    f"limits: {{concurrent_calls: {max(in_flight, 256)}}}\nservers:\n  tool:\n"
                    f"    http: {{base_url: \"http://127.0.0.1:{port.value}\"}}\n    max_in_flight: {in_flight}\n{more}    tools:\n"
                    "      keyed: {effect: write, deadline: 60s, key: {header: Idempotency-Key}, request: {method: POST, path: /do}}\n"
                    "      slow: {effect: read, deadline: 60s, request: {method: POST, path: /slow}}\n"
                    "      short: {effect: read, deadline: 2s, max_attempts: 1, request: {method: POST, path: /slow}}\n"
                    "      sick: {effect: read, deadline: 5s, request: {method: POST, path: /sick}}\n")
        self.product = Product(binary, self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.product.kill()
        self.tool.kill()
        self.tool.join()
        shutil.rmtree(self.folder, ignore_errors=True)

    def forget(self):
        with self.stamps.get_lock():
            self.stamps[0] = self.stamps[1] = 0.0

    def submit(self, bodies, threads=8):
        """All of them, over kept connections; the ids in the order of the bodies."""
        local = threading.local()

        def one(body):
            if not hasattr(local, "connection"):
                local.connection = HTTPConnection(*self.product.client, timeout=60)
            local.connection.request("POST", "/v1/runs", body, {"Content-Type": "application/json"})
            answer = local.connection.getresponse()
            text = answer.read()
            assert answer.status == 201, text
            return json.loads(text)["id"]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, bodies))

    def open_runs(self):
        text = self.product.request("GET", "/metrics", admin=True).body.decode()
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in text.splitlines() if line.startswith("holdfast_runs_open"))

    def memory_mib(self):
        return int(status_of(self.product.process.pid, "VmRSS").split()[0]) / 1024

    def threads(self):
        return int(status_of(self.product.process.pid, "Threads"))

    def cpu_seconds(self):
        fields = open(f"/proc/{self.product.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def status_of(pid, name):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(name + ":"):
            return line.split(":")[1].strip()
    raise KeyError(name)


def until(condition, limit, pause=0.002):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not so within {limit:g} s")
        time.sleep(pause)


def run_of(tool, steps=1, **more):
    return json.dumps({"name": "scale", **more, "steps": [{"id": f"s{i}", "server": "tool", "tool": tool, "args": {"customer": "c-1042", "n": i}}
                                                          for i in range(steps)]})


MISSED = []


def say(what, figure, goal="", holds=True):
    if not holds:
        MISSED.append(what)
    print(f"{what}: {figure}" + (f"; goal {goal}{'' if holds else ', missed'}" if goal else ""), flush=True)


def spread(values, unit, digits=1):
    return f"{statistics.median(values):.{digits}f} {unit} ({min(values):.{digits}f} to {max(values):.{digits}f}, {len(values)} times)"


def idle(binary, scale, _):
    ready = []
    for _ in range(11):
        with World(binary) as w:
            w.product.start()  # makes the database
            w.product.terminate()
            begun = time.monotonic()
            w.product.start()
            ready.append(1000 * (time.monotonic() - begun))
    say("start to ready, from fork to the line read", spread(ready, "ms"), "50 ms", statistics.median(ready) < 50)
    with World(binary) as w:
        w.product.start()
        w.submit([run_of("keyed")] * 10)
        until(lambda: w.open_runs() == 0, 10)
        cpu, seconds = w.cpu_seconds(), max(2.0, 20 * scale)
        time.sleep(seconds)  # what is measured is this time without work
        share, memory = 100 * (w.cpu_seconds() - cpu) / seconds, w.memory_mib()
        say("idle", f"{memory:.1f} MiB resident, {share:.2f} % of a processor over {seconds:.0f} s, {w.threads()} threads", "15 MB and 0.1 %",
            memory * 1.048576 <= 15 and share <= 0.1)


def recovery(binary, scale, _):
    count, first, done, undisturbed = int(1000 * scale), [], [], []
    for _ in range(3):
        for kill in (False, True):
            with World(binary, in_flight=1) as w:
                w.product.start()
                # One call in flight while they are submitted, so that nearly all their steps are still to do.
                w.submit([run_of("keyed", 5)] * count)
                config = os.path.join(w.folder, "holdfast.yaml")
                text = open(config).read().replace("max_in_flight: 1\n", "max_in_flight: 256\n")
                with open(config, "w") as f:
                    f.write(text)
                if kill:
                    w.product.kill()
                else:
                    w.product.terminate()
                left = count * 5 - int(w.stamps[1])
                w.forget()
                begun = time.monotonic()
                w.product.start()
                until(lambda: w.open_runs() == 0, 60)
                seconds = time.monotonic() - begun
                (done if kill else undisturbed).append(1000 * seconds * 5000 / max(left, 1) * scale)
                if kill:
                    first.append(1000 * (w.stamps[0] - begun))
    say(f"{count} open runs of five steps, kill -9: first call after the start", spread(first, "ms"), "300 ms", statistics.median(first) < 300)
    say("all of them ended", spread(done, "ms", 0))
    say("the same after an orderly stop", spread(undisturbed, "ms", 0))


def slow(binary, scale, _):
    count = int(5000 * scale)
    with World(binary, delay=10.0, in_flight=2 * count) as w:
        w.product.start()
        threads = w.threads()
        w.submit([run_of("slow")] * count)
        until(lambda: w.stamps[1] >= count, 30)
        say(f"{count} calls of 10 s in flight", f"{w.memory_mib():.0f} MiB resident, {w.threads()} threads ({threads} before)",
            "150 MB", w.memory_mib() * 1.048576 <= 150)
        ids = w.submit([run_of("short")] * max(10, int(200 * scale)))
        late = []
        for run in ids:
            state = w.product.request("GET", f"/v1/runs/{run}?wait=20s").json
            attempt = w.product.request("GET", f"/v1/runs/{run}/attempts").json["items"][0]
            assert state["status"] == "failed" and attempt["class"] == "timeout", state
            late.append(attempt["waited_ms"] - attempt["deadline_ms"])
        say("deadlines of 2 s meanwhile, late by", f"{statistics.median(late):.0f} ms at the median, {max(late):.0f} ms at most, of {len(late)}", "50 ms", max(late) <= 50)
        until(lambda: w.open_runs() == 0, 60, 0.05)


def waiting(binary, scale, _):
    count = int(100_000 * scale)
    breaker = "    breaker: {consecutive_failures: 2, cooldown: 10m, max_cooldown: 10m}\n"
    with World(binary, more=breaker) as w:
        w.product.start()
        w.product.request("POST", "/v1/breakers/tool/open", json.dumps({"reason": "scale", "for": "1h"}), [("Content-Type", "application/json")], admin=True)
        w.submit([run_of("keyed", deadline="2h")] * max(100, count // 100))
        memory, threads, body = w.memory_mib(), w.threads(), run_of("keyed", deadline="2h")
        w.submit([body] * count)
        grown = w.memory_mib() - memory
        cpu, seconds = w.cpu_seconds(), max(2.0, 10 * scale)
        time.sleep(seconds)
        each = 1024 * 1024 * grown / count
        say(f"{count} runs waiting behind an open circuit", f"{each:.0f} bytes each with everything ({len(body)} bytes submitted), {w.threads()} threads ({threads} before), "
            f"{100 * (w.cpu_seconds() - cpu) / seconds:.2f} % of a processor over {seconds:.0f} s", "1,024 bytes each beyond its data, and no thread", each <= 1024 + len(body) and w.threads() <= 32)  # workers come and go
        assert w.open_runs() >= count


def copy_runs(path, count):
    """Settled runs with new numbers and ids, until there are `count`."""
    db = sqlite3.connect(path)
    have, step = db.execute("SELECT count(*), max(seq) FROM runs").fetchone()
    columns = {t: [c[1] for c in db.execute(f"PRAGMA table_info({t})")] for t in ("runs", "packed_runs", "steps", "writes", "attempts", "events")}
    batch = 0
    while have * (batch + 1) < count:
        batch += 1
        for table, names in columns.items():
            number = "seq" if table == "runs" else "run_seq"
            values = [f"{n} + {batch * step}" if n == number else f"printf('run_%010d', {batch}) || substr(id, 15)" if table == "runs" and n == "id" else n for n in names]
            db.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} FROM {table} WHERE {number} <= {step}")
        if batch % 50 == 0:
            db.commit()
    db.commit()
    total = db.execute("SELECT count(*) FROM runs").fetchone()[0]
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return total


def old(binary, scale, keep):
    with World(binary) as w:
        w.product.start()
        path = os.path.join(w.folder, "holdfast.db")
        figures = {}
        for name in ("empty", "old"):
            if name == "empty":
                w.submit([run_of("keyed")] * 1000)
                until(lambda: w.open_runs() == 0, 60)
            times = {"start": [], "listing": [], "a run by id": []}
            ids = w.product.request("GET", "/v1/runs?limit=200").json
            ids = [r["id"] for r in ids["items"]]
            connection = HTTPConnection(*w.product.client)
            for i in range(200):
                for what, target in (("listing", "/v1/runs?limit=50"), ("a run by id", "/v1/runs/" + ids[i % len(ids)])):
                    begun = time.monotonic()
                    connection.request("GET", target)
                    answer = connection.getresponse()
                    answer.read()
                    times[what].append(1000 * (time.monotonic() - begun))
                    assert answer.status == 200
            figures[name] = times
            w.product.terminate()
            if name == "empty":
                total = copy_runs(path, int(1_000_000 * scale))
                begun = time.monotonic()
                w.product.start()
                say(f"start with {total} settled runs, {os.path.getsize(path) / 1e9:.2f} GB", f"{1000 * (time.monotonic() - begun):.0f} ms")
        for what in ("listing", "a run by id"):
            say(f"{what}, 1,000 settled runs and {total}", f"{spread(figures['empty'][what], 'ms', 2)} and {spread(figures['old'][what], 'ms', 2)}")
        if keep:
            shutil.move(path, keep)
            say("kept", keep)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("what", nargs="*", default=["idle", "recovery", "slow", "waiting", "old"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--keep", help="where the ledger of `old` goes")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for what in arguments.what:
        {f.__name__: f for f in (idle, recovery, slow, waiting, old)}[what](os.path.abspath(arguments.binary), 0.01 if arguments.small else 1, arguments.keep)
    return 1 if MISSED and not arguments.small else 0


if __name__ == "__main__":
    sys.exit(main())
