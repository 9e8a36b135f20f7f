"""What `scripts/start --keep` left running: remembered by process id and start time, so that only those are ever ended."""
import os
import signal
import time

from real_servers import ROOT

FOLDER = os.path.join(ROOT, "build", "start")
FILE = os.path.join(FOLDER, "processes")


def started_at(pid):
    """The start time of a process in clock ticks since boot, or None when there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def remember(processes):
    with open(FILE, "w") as file:
        file.writelines(f"{process.pid} {started_at(process.pid)}\n" for process in processes)


def running():
    try:
        with open(FILE) as file:
            entries = [line.split() for line in file]
    except OSError:
        return []
    return [int(pid) for pid, start in entries if started_at(pid) == start]


def stop(limit=15.0):
    """Ends them and what they started. False when nothing ran."""
    pids = running()
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + limit
    while running() and time.monotonic() < end:
        time.sleep(0.05)
    for pid in pids:
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass
    if os.path.exists(FILE):
        os.remove(FILE)
    return bool(pids)
