#!/usr/bin/env python3
"""10,000 idle connections cost under 100 MB and slow nobody: idle_test.py <binary>. Exit 0 when it holds.

Each has had one request answered. Both ends need a descriptor per connection: with a lower limit fewer are opened, and less is allowed.
"""
import os
import resource
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import front as fronts  # noqa: E402
import raw  # noqa: E402
from hostile_bytes import get  # noqa: E402

WANTED = 10_000
BYTES_EACH = 10_000
CONFIG = "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\ndatabase: holdfast.db\nlimits: {connections: 12000}\n"


def possible():
    """How many connections the limit on descriptors allows, raised as far as it can be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(WANTED, (1 << 20 if hard == resource.RLIM_INFINITY else hard) - 200)


def run(front):
    count, socks = possible(), []
    for _ in range(50):
        raw.ask(front.client, get("/healthz", "Connection: close\r\n"))
    before = front.memory()
    begun = time.monotonic()
    for _ in range(count):
        sock = raw.connect(front.client)
        sock.sendall(get("/healthz"))
        socks.append(sock)
    for sock in socks:
        assert raw.Answers(sock).next()[0] == 200
    opened = time.monotonic() - begun
    front.watch("/healthz")
    begun = time.monotonic()
    while time.monotonic() < begun + 2.0:
        time.sleep(0.05)
    slowest, grown = front.slowest(begun), front.memory() - before
    print(f"{count} idle connections: {grown / 1e6:.1f} MB ({grown / count:.0f} bytes each), opened in {opened:.1f} s, threads {len(front.threads())}, "
          + " ".join(f"{k} {ms:.1f} ms" for k, ms in slowest.items()))
    wrong = []
    if grown > count * BYTES_EACH:
        wrong.append(f"{grown / 1e6:.1f} MB for {count} connections")
    wrong += [f"{k} took {ms:.0f} ms" for k, ms in slowest.items() if k != "control" and not 0 <= ms <= 50 + slowest["control"]]
    for sock in socks:
        sock.close()
    try:
        fronts.until(lambda: front.descriptors() < 60, "descriptors given back")
    except AssertionError as e:
        wrong.append(str(e))
    return wrong


def main(arguments):
    folder = tempfile.mkdtemp(prefix="holdfast-idle-")
    front = fronts.Front(os.path.abspath(arguments[0]), folder, CONFIG)
    try:
        wrong = run(front)
    finally:
        front.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
