"""A machine in trouble: stacks, ends, memory and signals beside loads."""

import os

import loads
import programs
import tables
import trouble_captures

# What is measured unless other loads are asked for.
ROWS = ("calm", "spin16", "mixed", "storm")
# How nice the programs are whose callers are known, so that there are samples
# of them.
KNOWN_NICE = {"calm": 0, "mixed": -10}
RATES_HZ = (99, 499)
SHORT_RUNS = 3  # of one second
LONG_SECONDS = 5
LATE_LIMIT = 40  # seconds after which a capture that does not end is killed


def late(seconds, limit, decimals=2):
    if seconds is None:
        return "-"
    return f"> {limit}" if seconds >= limit else tables.number(seconds,
                                                               decimals)


def largest(values):
    return max((value for value in values if value is not None), default=None)


class Row:
    """One load and one rate; `cells` are those of the table."""

    def __init__(self, context, kind, rate_hz):
        self.context = context
        self.kind = kind
        self.rate_hz = rate_hz
        self.late_limit = 15 if context.quick else LATE_LIMIT
        self.notes = []

    def title(self):
        return f"{self.kind}, {self.rate_hz} Hz"

    def capture(self, seconds, stacks, judges):
        run, report = trouble_captures.capture(
            self.context, self.rate_hz, seconds, self.late_limit)
        if report is not None:
            stacks.add(report, judges)
        if run.status != 0:
            lines = run.said.strip().splitlines()
            self.notes.append(f"{seconds} s capture: " + (
                "killed" if run.status is None else f"status {run.status}") +
                (f", {lines[-1]}" if lines else ""))
        return run

    def short_cells(self):
        stacks = trouble_captures.Stacks()
        runs = [self.capture(1, stacks, {})
                for _ in range(self.context.runs(SHORT_RUNS))]
        self.notes.append(f"1 s, broken: {stacks.broken()}")
        return [late(tables.median([run.late for run in runs]),
                     self.late_limit),
                late(largest(run.late for run in runs), self.late_limit),
                tables.number(largest(run.peak_rss_mib for run in runs), 1),
                tables.number(stacks.whole_percent(), 2)]

    def long_cells(self):
        stacks = trouble_captures.Stacks()
        seconds = 2 if self.context.quick else LONG_SECONDS
        with trouble_captures.known_programs(
                self.context, KNOWN_NICE.get(self.kind, -5)) as judges:
            run = self.capture(seconds, stacks, judges)
        self.notes.append(f"{seconds} s, broken: {stacks.broken()}; "
                          f"{stacks.right} of {stacks.judged} right")
        return [late(run.late, self.late_limit),
                tables.number(run.peak_rss_mib, 1),
                tables.number(stacks.whole_percent(), 2),
                tables.number(stacks.right_percent(), 2),
                tables.number(stacks.taken_percent(), 1)]

    def cells(self):
        return [self.title()] + self.short_cells() + self.long_cells()


HEADER = ["load", "late", "worst", "MiB", "whole %", "late", "MiB", "whole %",
          "right %", "taken %"]


def measure_rows(context, kind):
    rows = []
    with running(context, kind):
        for rate_hz in RATES_HZ[:1 if context.quick else None]:
            row = Row(context, kind, rate_hz)
            rows.append(row.cells())
            print("  " + " | ".join(rows[-1]), flush=True)
            for note in row.notes:
                print("      " + note, flush=True)
    return rows


def running(context, kind):
    return loads.running(kind, os.path.join(
        context.build, "tests", "e2e", "loads"), context.scratch)


def print_captures(context, kinds):
    rows = [row for kind in kinds for row in measure_rows(context, kind)]
    print("\nksym-profile beside loads: captures of 1 s "
          f"(median and worst of {context.runs(SHORT_RUNS)}), and of "
          f"{2 if context.quick else LONG_SECONDS} s with two more programs "
          "whose callers are known. late: seconds beyond the capture's; MiB: "
          "peak memory; whole: user stacks; right: of those two programs; "
          "taken: samples, of what the rate promises")
    tables.print_table(HEADER, rows)


def run(context):
    with trouble_captures.measuring():
        print_captures(context, context.loads)
