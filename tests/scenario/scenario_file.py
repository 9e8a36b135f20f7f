"""Reads a scenario: a title and sections of plain text. README.md describes the format."""
import os
import re

SECTIONS = ("rows", "config", "tools", "submit", "do", "expect")


class Scenario:
    def __init__(self):
        self.title, self.rows, self.config, self.tools, self.submissions, self.do, self.expect = "", [], "", [], {}, [], []


def sections(text):
    """(name, argument, lines) in order; lines carry their numbers."""
    found, current = [], ("", "", [])
    for number, line in enumerate(text.split("\n"), 1):
        head = re.fullmatch(r"\[(\w+)(?: ([^\]]+))?\]\s*", line)
        if head and head[1] in SECTIONS:
            current = (head[1], head[2] or "", [])
            found.append(current)
        else:
            current[2].append((number, line))
        if len(found) == 0 and current not in found:
            found.append(current)
    return found


def instructions(lines):
    """Lines that say something; a line that starts with white space goes on with the one before it."""
    out = []
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0] in " \t" and out:
            out[-1] = (out[-1][0], out[-1][1] + " " + line.strip())
        else:
            out.append((number, line.strip()))
    return out


def rows(lines):
    """The table of a parameterised scenario: column names, then one row per variant, separated by `|`."""
    table = [[cell.strip() for cell in line.split("|")] for _, line in instructions(lines)]
    names, *values = table
    for row in values:
        if len(row) != len(names):
            raise ValueError(f"a row has {len(row)} cells and not {len(names)}: {row}")
    return [dict(zip(names, row)) for row in values]


def parse(path):
    """A list of (variant's name, Scenario): one for a plain file, one per row for a parameterised one."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    table = [rows(lines) for name, _, lines in sections(text) if name == "rows"]
    variants = table[0] if table else [{}]
    made = []
    for variant in variants:
        filled = text
        for name, value in variant.items():
            filled = filled.replace(f"<{name}>", value)
        made.append((next(iter(variant.values()), os.path.basename(path)), build(filled)))
    return made


def build(text):
    scenario = Scenario()
    for name, argument, lines in sections(text):
        if name == "":
            scenario.title = " ".join(line.lstrip("# ") for _, line in lines if line.strip())
        elif name == "config":
            scenario.config = "\n".join(line for _, line in lines)
        elif name == "submit":
            scenario.submissions[argument] = "\n".join(line for _, line in lines if not line.startswith("#"))
        elif name in ("tools", "do", "expect"):
            getattr(scenario, name).extend(instructions(lines))
    return scenario
