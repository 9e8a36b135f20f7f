"""What a scenario may demand. Each function is one word of the [do] and [expect] sections; README.md lists them."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import behaviour  # noqa: E402

SETTLED = ("succeeded", "failed", "cancelled")
SENT = ("in_flight", "maybe_sent", "answered")


def same(actual, wanted):
    """`-` is nothing or anything absent, `some` the opposite, `a/b` either, `*` anything."""
    actual = actual if actual not in (None, "") else "-"
    return wanted == "*" or (wanted == "some" and actual != "-") or actual == wanted or actual in wanted.split("/")


def within(value, wanted):
    """`3`, `1..3`, `2s..2.5s`, `2s..`"""
    number = lambda text: behaviour.seconds(text) if text[-1] == "s" else float(text)
    low, dots, high = wanted.partition("..")
    if not dots:
        return value == number(low)
    return number(low) <= value <= (number(high) if high else float("inf"))


def expect_run(world, name, status, reason="*"):
    run = world.get(name)
    if not (same(run["status"], status) and same(run.get("reason"), reason)):
        return f"run {name} is {run['status']} {run.get('reason')} ({run.get('detail')})"


def expect_step(world, place, status, reason="*", *pairs):
    step = world.step(place)
    faults = []
    if not (same(step["status"], status) and same(step.get("reason"), reason)):
        faults.append(f"is {step['status']} {step.get('reason')}")
    for field, wanted in zip(pairs[::2], pairs[1::2]):
        actual = (step.get("write") or {}).get("state") if field == "write" else step.get(field)
        actual = json.dumps(actual) if not isinstance(actual, (str, type(None))) else actual
        if not (same(actual, wanted) or (".." in wanted and within(float(actual), wanted))):
            faults.append(f"{field} is {actual}")
    if faults:
        return f"step {place} {', '.join(faults)} ({step.get('detail')})"


def expect_says(world, place, field, *words):
    """The field's text holds these words."""
    found = world.step(place) if "." in place else world.get(place)
    text = found.get(field) if field != "result" else json.dumps(found.get(field))
    if " ".join(words).lower() not in str(text).lower():
        return f"{place} {field} is {text!r}"


def expect_result(world, place, *words):
    found = world.step(place) if "." in place else world.get(place)
    if found.get("result") != json.loads(" ".join(words)):
        return f"result of {place} is {json.dumps(found.get('result'))}"


def expect_hits(world, tool, count):
    hits = len(world.tool(tool).hits)
    if not within(hits, count):
        return f"{tool} saw {hits} requests"


def expect_effects(world, tool, count):
    effects = len(world.tool(tool).effects)
    if not within(effects, count):
        return f"{tool} took effect {effects} times"


def expect_row(world, place, number, delivery, verdict, kind):
    rows = world.rows(place)
    if len(rows) < int(number):
        return f"{place} has {len(rows)} rows"
    row = rows[int(number) - 1]
    if not (same(row["delivery"], delivery) and same(row["verdict"], verdict) and same(row["class"], kind)):
        return f"row {number} of {place} is {row['delivery']} {row['verdict']} {row['class']} ({row.get('detail')})"


def expect_attempt(world, place, number, field, wanted):
    """One field of the row."""
    found = world.rows(place)[int(number) - 1][field]
    if not same(found if isinstance(found, (str, type(None))) else json.dumps(found), wanted):
        return f"row {number} of {place} has {field} {str(found)[:200]!r}"


def expect_rows(world, place, count):
    rows = len(world.rows(place))
    if not within(rows, count):
        return f"{place} has {rows} rows"


def expect_took(world, name, span):
    took = world.settled_at[name] - world.submitted_at[name]
    if not within(took, span):
        return f"{name} took {took:.2f} s"


def expect_lasted(world, place, number, span):
    """The attempt, by its own row."""
    row = world.rows(place)[int(number) - 1]
    if not within(row["waited_ms"] / 1000, span):
        return f"row {number} of {place} took {row['waited_ms']} ms ({row.get('detail')})"


def expect_gap(world, tool, first, second, span):
    hits = world.tool(tool).hits
    if len(hits) < int(second):
        return f"{tool} saw {len(hits)} requests"
    gap = hits[int(second) - 1].at - hits[int(first) - 1].at
    if not within(gap, span):
        return f"{gap:.3f} s between requests {first} and {second} of {tool}"


def expect_order(world, tool, *markers):
    """The tool saw these steps' first requests in this order."""
    seen = [h.marker for h in world.tool(tool).hits]
    places = [seen.index(m) if m in seen else -1 for m in markers]
    if places != sorted(places) or -1 in places:
        return f"{tool} saw {seen}"


def keys_of(world, tool):
    hits = world.tool(tool).hits
    return [h.header("idempotency-key") or h.arguments.get("idempotency_key") for h in hits]


def expect_keys(world, tool, what):
    """`keys api.w same` or `distinct`: of all its requests."""
    keys = keys_of(world, tool)
    if not keys:
        return None
    wanted = 1 if what == "same" else len(keys)
    if len(set(keys)) != wanted or None in keys or "" in keys:
        return f"keys at {tool} are {keys}"


def expect_different_keys(world, tool, count):
    keys = set(keys_of(world, tool))
    if not within(len(keys), count):
        return f"keys at {tool} are {keys}"


def expect_field(world, name, field, wanted):
    found = world.step(name) if "." in name else world.get(name)
    if not same(found.get(field), wanted):
        return f"{name} {field} is {found.get(field)!r}"


def expect_bodies(world, tool, what):
    bodies = {h.body for h in world.tool(tool).hits}
    if (len(bodies) == 1) != (what == "same"):
        return f"{len(bodies)} different bodies at {tool}"


def expect_header(world, tool, name, wanted):
    """Of the first request; `-` is absent."""
    value = world.tool(tool).hits[0].header(name)
    if not same(value, wanted):
        return f"header {name} at {tool} is {value!r}"


def expect_connections(world, tool, count):
    used = len({h.connection for h in world.tool(tool).hits})
    if not within(used, count):
        return f"{used} connections at {tool}"


def expect_unknowns(world, count):
    listed = world.product.request("GET", "/v1/unknowns?state=open&limit=200", admin=True).json["items"]
    if not within(len(listed), count):
        return f"{len(listed)} open unknowns are listed"


def expect_metric(world, series, count):
    """The series as /metrics writes it, such as holdfast_late_answers_total or holdfast_retries_total{reason="reset"} (quotes are left out on both
    sides); `-`: not there."""
    lines = world.product.request("GET", "/metrics", admin=True).body.decode().replace('"', "").splitlines()
    values = [float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == series.replace('"', "")]
    if (count == "-") != (not values) or (values and not within(values[0], count)):
        return f"{series} is {values}"


def expect_events(world, name, *kinds):
    """These event types stand in the run's events, in this order."""
    seen = [e["type"] for e in world.events(name)]
    rest = iter(seen)
    if not all(kind in rest for kind in kinds):
        return f"events of {name} are {seen}"


def after_every_scenario(world):
    """Requests never exceed the rows marked as sent, every run has ended or waits for something, no plain write took effect twice."""
    faults = []
    sent = {}
    for run_id in sorted(world.run_ids):
        run = world.get_id(run_id)
        waits = run["status"] == "waiting" and run.get("waiting")
        if run["status"] not in SETTLED + ("unknown",) and not waits and not world.may_be_open:
            faults.append(f"run {run_id} is left {run['status']}")
        for row in world.rows_of(run_id):
            if row["delivery"] in SENT:
                sent[run_id, row["step"]] = sent.get((run_id, row["step"]), 0) + 1
    for listener in world.faults.listeners.values():
        for name, tool in listener.tools.items():
            faults.extend(tool_faults(world, f"{listener.name}.{name}", tool, sent))
    return faults


def tool_faults(world, name, tool, sent):
    for marker in {h.marker for h in tool.hits if h.marker and world.runs_of(h.marker.partition(".")[0])}:
        submission, _, step = marker.partition(".")
        allowed = sum(sent.get((run_id, step), 0) for run_id in world.runs_of(submission))
        hits = sum(h.marker == marker for h in tool.hits)
        if hits > allowed:
            yield f"{name} saw {hits} requests of {marker}, and {allowed} rows are marked as sent"
        effects = sum(e.marker == marker for e in tool.effects)
        runs = len(world.runs_of(submission))
        if name in world.plain and effects > runs + world.ordered.get(marker, 0):
            yield f"plain write {name} took effect {effects} times for {marker}"


WORDS = {name[len("expect_"):]: fn for name, fn in list(globals().items()) if re.match(r"expect_", name)}
