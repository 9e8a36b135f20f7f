#!/usr/bin/env python3
"""Turns the JSON lines of holdfast_bench, from files or standard input, into tables in Markdown. The last line of a row counts."""
import fileinput
import json


def read_rows(lines):
    rows, floor = {}, None
    for line in lines:
        row = json.loads(line)
        if row["subject"] == "floor":
            floor = row
        else:
            name = row["subject"] + (" " + row["tool"] if row["subject"] == "holdfast" else "")
            rows.setdefault((row["steps"], row["concurrency"]), {})[name] = row
    return rows, floor


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


def main():
    rows, floor = read_rows(line for line in fileinput.input() if line.startswith("{"))
    print("\n".join(table(rows)))
    if floor:
        print(f"\nFloor: fdatasync {floor['fdatasync_append_ms']} ms appending, {floor['fdatasync_overwrite_ms']} ms overwriting, "
              f"fsync {floor['fsync_append_ms']} ms; SQLite FULL {floor['sqlite_commits_per_second']:,.0f} commits/s of one row, "
              f"{floor['sqlite_100_rows_per_second']:,.0f} rows/s at 100 rows a commit; "
              f"loopback HTTP {floor['http_requests_per_second']:,.0f} requests/s.")


main()
