"""What must hold after all kills, read from the ledger's file, the recorder's log and the clients' acknowledgements: three witnesses."""
import collections
import os
import sqlite3

PLAIN = ("plain", "post", "append")
WRITES = PLAIN + ("keyed", "checked")
HARMLESS = ("not_sent", "refused")


class Ledger:
    """The file as it lies there, opened read-only once the product is down."""

    def __init__(self, folder):
        database = sqlite3.connect(f"file:{os.path.join(folder, 'holdfast.db')}?mode=ro", uri=True)
        database.row_factory = sqlite3.Row
        self.integrity = database.execute("PRAGMA integrity_check").fetchone()[0]
        self.runs = {row["seq"]: dict(row) for row in database.execute("SELECT * FROM runs")}
        self.steps = {(row["run_seq"], row["step"]): dict(row) for row in database.execute("SELECT * FROM steps")}
        self.writes = {(row["run_seq"], row["step"]): dict(row) for row in database.execute("SELECT * FROM writes")}
        self.attempts = collections.defaultdict(list)
        for row in database.execute("SELECT * FROM attempts ORDER BY run_seq, step, n"):
            self.attempts[row["run_seq"], row["step"]].append(dict(row))
        self.events = collections.defaultdict(list)
        for row in database.execute("SELECT run_seq, seq, type FROM events ORDER BY run_seq, seq"):
            self.events[row["run_seq"]].append((row["seq"], row["type"]))
        self.ordered = collections.Counter(row["subject"] for row in database.execute("SELECT subject FROM audit WHERE action = 'resolve.not_landed'"))
        database.close()

    def marker(self, place):
        return f"{self.runs[place[0]]['name']}/{self.steps[place]['id']}"

    def orders(self, place):
        return self.ordered[f"{self.runs[place[0]]['id'].replace('run_', 'wr_', 1)}_{place[1]}"]


def judge(world, ledger, settled_now):
    """Counts for the report; every breach goes to the world's problems."""
    facts = world.facts()
    hits, effects = collections.defaultdict(list), collections.Counter()
    for fact in facts:
        if fact["what"] == "hit":
            hits[fact["tool"], fact["m"]].append(fact)
        elif fact["what"] == "effect":
            effects[fact["tool"], fact["m"]] += 1
    if ledger.integrity != "ok":
        world.problem(f"integrity check: {ledger.integrity}")
    lost = promises(world, ledger)
    for place, step in ledger.steps.items():
        sent_rows(world, ledger, place, step, hits)
    repeated = [tool for (tool, marker), count in effects.items() if effect_faults(world, tool, marker, count)]
    strangers(world, ledger, hits)
    for seq, run in ledger.runs.items():
        run_faults(world, ledger, seq, run, settled_now)
    keyed = same_bytes(world, hits)
    calls = {key: seen for key, seen in hits.items() if key[0] in WRITES + ("read", "look")}
    return {"runs": len(ledger.runs), "promised": len(world.promised), "lost_runs": lost, "hits": sum(map(len, calls.values())),
            "effects": sum(effects.values()), "repeated_writes": len(repeated), "repeated_plain_writes": sum(tool in PLAIN for tool in repeated),
            "keyed_resends": keyed,
            "unknown_writes": sum(1 for w in ledger.writes.values() if w["open"]), "operator_orders": sum(ledger.ordered.values()),
            "statuses": dict(collections.Counter(r["status"] for r in ledger.runs.values()))}


def promises(world, ledger):
    """An acknowledged run is there, under its key and id; and no run is there that nobody asked for."""
    by_key = {run["submit_key"]: run["id"] for run in ledger.runs.values()}
    lost = {name: run_id for name, run_id in world.promised.items() if by_key.get(name) != run_id}
    for name, run_id in lost.items():
        world.problem(f"lost run: {name} was acknowledged as {run_id}, the ledger has {by_key.get(name)}")
    for name in set(by_key) - world.submitted:
        world.problem(f"invented run: {name}")
    return len(lost)


def sent_rows(world, ledger, place, step, hits):
    """Requests seen never exceed rows that may have left; a plain write leaves again only after harmless ends or an order."""
    rows, marker = ledger.attempts[place], ledger.marker(place)
    calls = [row for row in rows if row["kind"] == "call"]
    may_have_left = [row for row in calls if row["delivery"] != "not_sent"]
    seen = hits.get((step["tool"], marker), [])
    if len(seen) > len(may_have_left):
        world.problem(f"{marker} ({step['tool']}): {len(seen)} requests seen, {len(may_have_left)} rows")
    checks = sum(row["kind"] == "check" and row["delivery"] != "not_sent" for row in rows)
    if len(hits.get(("find", marker), [])) > checks and step["tool"] == "checked":
        world.problem(f"{marker}: more checks seen than rows")
    doubtful = sum(row["verdict"] not in HARMLESS for row in calls)
    if step["tool"] in PLAIN and doubtful > 1 + ledger.orders(place):
        world.problem(f"{marker} ({step['tool']}): {doubtful} attempts that may have landed, {ledger.orders(place)} orders")
    if sum(row["counted"] for row in calls) > step["max_attempts"]:
        world.problem(f"{marker}: more attempts than {step['max_attempts']}")
    if [row["n"] for row in rows] != list(range(1, len(rows) + 1)) or step["attempt_rows"] != len(rows):
        world.problem(f"{marker}: attempt rows {[row['n'] for row in rows]}, counted {step['attempt_rows']}")


def effect_faults(world, tool, marker, count):
    if count > 1:
        world.problem(f"{marker} ({tool}) took effect {count} times")
    return count > 1


def strangers(world, ledger, hits):
    known = {(ledger.steps[place]["tool"], ledger.marker(place)) for place in ledger.steps}
    for tool, marker in hits:
        if tool in WRITES + ("read", "look") and (tool, marker) not in known:
            world.problem(f"{tool} saw a request of {marker}, which the ledger does not know")


def run_faults(world, ledger, seq, run, settled_now):
    numbers = [number for number, _ in ledger.events[seq]]
    # The row of an open run is not written again for each of its events.
    newest = run["last_event"] if run["settled"] else max(numbers[-1:] + [run["last_event"]])
    if numbers != list(range(1, newest + 1)):
        world.problem(f"{run['name']}: events {numbers[:20]}, last is {run['last_event']}")
    ends = [kind for _, kind in ledger.events[seq] if kind == "run.settled"]
    if len(ends) != run["settled"]:
        world.problem(f"{run['name']}: {len(ends)} run.settled events, settled {run['settled']}")
    if run["retry_spent"] > run["retry_limit"]:
        world.problem(f"{run['name']}: budget {run['retry_spent']} of {run['retry_limit']}")
    if settled_now and not run["settled"] and run["status"] != "unknown" and not (run["status"] == "waiting" and run["wait_until"]):
        world.problem(f"{run['name']} is left {run['status']} ({run['detail']})")


def same_bytes(world, hits):
    """Every request of a keyed write has its one key and the same bytes. Returns how many were sent again."""
    resent = 0
    for (tool, marker), seen in hits.items():
        if tool != "keyed":
            continue
        resent += len(seen) - 1
        if len({(hit["key"], hit["sha"]) for hit in seen}) != 1 or not seen[0]["key"]:
            world.problem(f"{marker}: keyed requests differ: {[(h['key'], h['sha']) for h in seen]}")
    return resent
