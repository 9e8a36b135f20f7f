"""How every world ends: the tools are well, nobody begins anything new, every run must come to rest, and the three witnesses are compared."""
import time

import oracles

HEALING = 40.0  # seconds for all runs to come to rest: their deadline is 15 s


def come_to_rest(world, clients, operator, start):
    """`start` brings the product up when it is down, and tells whether it did. Returns the report's counts; breaches are the world's problems."""
    world.heal()
    for client in clients:
        client.stop.set()
    if not world.product.running() and not start():
        world.problem(f"the last start failed: {world.product.errors()}")
    for client in clients:
        client.join(HEALING)
        if client.is_alive():
            world.problem(f"client {client.number} does not come to an end")
    end = time.monotonic() + HEALING
    while (open_runs := still_open(world)) and time.monotonic() < end:
        world.ask("GET", f"/v1/runs/{open_runs[0]}?wait=2s")
    if open_runs:
        world.problem(f"{len(open_runs)} runs do not come to rest, such as {open_runs[0]}")
    world.over.set()
    if operator:
        operator.join(15)
    code = world.product.terminate()
    if code != 0:
        world.problem(f"SIGTERM at the end: exit {code}")
    return oracles.judge(world, oracles.Ledger(world.folder, world.product.binary), settled_now=True)


def still_open(world):
    found = []
    for status in ("queued", "running", "waiting"):
        answer = world.ask("GET", f"/v1/runs?status={status}&limit=200")
        found += [run["id"] for run in answer.json["items"]] if answer is not None else ["?"]
    return found
