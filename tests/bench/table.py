#!/usr/bin/env python3
"""Turns the JSON lines of holdfast_bench, from files or standard input, into tables in Markdown. The last line of a row counts."""
import fileinput
import json


def read_rows(lines):
    rows, around = {}, {}
    for line in lines:
        row = json.loads(line)
        if row["subject"] in ("machine", "floor"):
            around[row["subject"]] = row
        else:
            name = row["subject"] + (" " + row["tool"] if row["subject"].startswith("holdfast") else "")
            rows.setdefault((row["steps"], row["concurrency"]), {})[name] = row
    return rows, around


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def ratio(row, peer):
    return f"{row['runs_per_second'] / peer['runs_per_second']:.1f} ×" if peer else ""


def table(rows):
    peers = sorted({name for row in rows.values() for name in row if not name.startswith("holdfast")}, reverse=True)
    head = ["steps", "clients", "subject", "runs/s", "least to most", *("÷ " + peer for peer in peers),
            "p50 ms", "p99 ms", "CPU ms per run", "memory MiB"]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for (steps, clients), row in sorted(rows.items()):
        for name, figures in row.items():
            ours = name.startswith("holdfast")
            yield "| " + " | ".join([
                str(steps), str(clients), name, number(figures["runs_per_second"]),
                number(figures["runs_per_second_min"]) + " to " + number(figures["runs_per_second_max"]),
                *(ratio(figures, row.get(peer)) if ours else "" for peer in peers),
                number(figures["p50_ms"]), number(figures["p99_ms"]), f"{figures['cpu_ms_per_run']:.2f}",
                number(figures["memory_mib"])]) + " |"


def machine_line(m):
    return (f"{m['date']}, commit {m['commit']}, {m['cores']} cores of {m['model']}, {m['memory_gib']} GiB, "
            f"Linux {m['kernel']}.\n")


def floor_line(f):
    return (f"\nFloor: fdatasync {f['fdatasync_append_ms']:.2f} ms appending, {f['fdatasync_overwrite_ms']:.2f} ms overwriting, "
            f"fsync {f['fsync_append_ms']:.2f} ms; SQLite FULL {f['sqlite_commits_per_second']:,.0f} commits/s of one row, "
            f"{f['sqlite_100_rows_per_second']:,.0f} rows/s at 100 rows a commit; "
            f"loopback HTTP {f['http_requests_per_second']:,.0f} requests/s.")


def main():
    rows, around = read_rows(line for line in fileinput.input() if line.startswith("{"))
    if "machine" in around:
        print(machine_line(around["machine"]))
    print("\n".join(table(rows)))
    if "floor" in around:
        print(floor_line(around["floor"]))


main()
