"""What a tool of the fault server does with one request, as a line of plain text.

    effect; wait 8s; status 200 {"ok": true}

Actions stand in order, separated by `; `. The first word names the action, the rest is its argument.
"""
import json
import re

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
ACTIONS = {"early", "effect", "wait", "until", "kill", "header", "status", "cut", "drip", "hold", "reset", "close", "sse", "data", "half", "text",
           "end", "result", "error", "raw", "forget", "gzip"}


def seconds(text):
    """`250ms`, `3s`, `2m` as seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if not found:
        raise ValueError(f"{text!r} is no duration")
    return float(found.group(1)) * UNITS[found.group(2)]


def split(text):
    """The parts of a line between semicolons that stand outside strings and brackets."""
    parts, depth, quoted, start, i = [], 0, False, 0, 0
    while i < len(text):
        c = text[i]
        if quoted:
            if c == "\\":
                i += 1
            elif c == '"':
                quoted = False
        elif c == '"':
            quoted = True
        elif c in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
        elif c == ";" and depth == 0:
            parts.append(text[start:i])
            start = i + 1
        i += 1
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def parse(text):
    """A list of (action, argument)."""
    actions = []
    for part in split(text):
        name, _, argument = part.partition(" ")
        if name not in ACTIONS:
            raise ValueError(f"unknown action {name!r}; known: {', '.join(sorted(ACTIONS))}")
        if name == "wait":
            seconds(argument)
        if name == "result":
            json.loads(argument)
        actions.append((name, argument.strip()))
    return actions


def needs_answer(actions):
    """True when no action ends the exchange, so that a plain success is sent after them."""
    enders = {"status", "gzip", "cut", "drip", "hold", "reset", "close", "sse", "result", "error", "raw"}
    return not any(name in enders for name, _ in actions)
