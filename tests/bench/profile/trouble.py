# SPDX-License-Identifier: Apache-2.0
"""A machine in trouble: stacks, ends, memory and signals beside loads."""

import dataclasses
import os

import loads
import tables
import trouble_captures
import trouble_peers
import trouble_service
import trouble_signals
import trouble_throughput

PARTS = ("captures", "signals", "throughput", "memory")
# Of each part, unless other loads are asked for.
ROWS = ("calm", "spin16", "spin32", "mixed", "storm")
QUICK_ROWS = ("mixed",)
# How nice the programs are whose callers are known, so that there are samples
# of them.
KNOWN_NICE = {"calm": 0, "mixed": -10}
SIGNAL_LOADS = ("mixed", "hostile")
MEMORY_LOADS = ("storm",)
RATES_HZ = (99, 499)
SHORT_RUNS = 3  # of one second
LONG_SECONDS = 5
LATE_LIMIT = 40  # seconds after which a capture that does not end is killed


@dataclasses.dataclass
class Wanted:
    """What was asked for; empty, 0: what there is."""
    loads: list
    parts: list
    signals: int


def largest(values):
    return max((value for value in values if value is not None), default=None)


class Row:
    """One load and one rate."""

    def __init__(self, context, kind, rate_hz):
        self.context = context
        self.known_nice = KNOWN_NICE.get(kind, -5)
        self.title = f"{kind}, {rate_hz} Hz"
        self.rate_hz = rate_hz
        self.late_limit = 10 if context.quick else LATE_LIMIT
        self.long_seconds = 2 if context.quick else LONG_SECONDS
        self.notes = []
        self.late = self.peak_rss_mib = None  # of the long capture

    def late_cell(self, seconds):
        if seconds is not None and seconds >= self.late_limit:
            return f"> {self.late_limit}"
        return tables.number(seconds, 2)

    def capture(self, seconds, stacks, judges):
        run, report = trouble_captures.capture(
            self.context, self.rate_hz, seconds, self.late_limit)
        if report is not None:
            stacks.add(report, judges)
        if run.status != 0:
            lines = run.said.strip().splitlines()
            self.notes.append(f"{seconds} s capture: " + (
                "killed" if run.status is None else f"status {run.status}") +
                (f"; {lines[-1]}" if lines else ""))
        return run

    def short_cells(self):
        stacks = trouble_captures.Stacks()
        runs = [self.capture(1, stacks, {})
                for _ in range(self.context.runs(SHORT_RUNS))]
        self.notes.append(f"1 s, broken: {stacks.broken()}")
        return [self.late_cell(tables.median([run.late for run in runs])),
                self.late_cell(largest(run.late for run in runs)),
                tables.number(largest(run.peak_rss_mib for run in runs), 1),
                tables.number(stacks.whole_percent(), 2)]

    def long_cells(self):
        stacks = trouble_captures.Stacks()
        with trouble_captures.known_programs(
                self.context, self.known_nice) as judges:
            run = self.capture(self.long_seconds, stacks, judges)
        self.notes.append(f"{self.long_seconds} s, broken: {stacks.broken()}; "
                          f"{stacks.right} of {stacks.judged} right")
        self.late, self.peak_rss_mib = run.late, run.peak_rss_mib
        return [self.late_cell(run.late),
                tables.number(run.peak_rss_mib, 1),
                tables.number(stacks.whole_percent(), 2),
                tables.number(stacks.right_percent(), 2),
                tables.number(stacks.taken_percent(), 1)]

    def cells(self):
        cells = [self.title] + self.short_cells() + self.long_cells()
        if not self.context.quick or self.title.startswith("mixed"):
            service, notes = trouble_service.cells(
                self.context, self.rate_hz, self.known_nice)
            cells += service
            self.notes += notes
        print("  " + " | ".join(cells), flush=True)
        for note in self.notes:
            print("      " + note, flush=True)
        return cells + ["-"] * (len(HEADER) - len(cells))


HEADER = ["load", "late", "worst", "MiB", "whole %", "late", "MiB", "whole %",
          "right %", "taken %", "MiB", "whole %", "right %", "taken %", "stop"]


def measure_load(context, kind):
    """Rows of ours, and the peers' row."""
    rows, peers = [], []
    with running(context, kind):
        for rate_hz in RATES_HZ[:1 if context.quick else None]:
            row = Row(context, kind, rate_hz)
            rows.append(row.cells())
            if not context.quick:
                # Beside the same programs as ours.
                with trouble_captures.known_programs(context, row.known_nice):
                    peers.append(trouble_peers.cells(context, row))
    return rows, peers


def running(context, kind):
    return loads.running(kind, os.path.join(
        context.build, "tests", "e2e", "loads"), context.scratch)


def print_captures(context):
    rows, peers = [], []
    for kind in context.trouble.loads or (QUICK_ROWS if context.quick else
                                          ROWS):
        ours, theirs = measure_load(context, kind)
        rows += ours
        peers += theirs
    seconds = 2 if context.quick else LONG_SECONDS
    print(f"\nksym-profile beside loads: captures of 1 s (median and worst of "
          f"{context.runs(SHORT_RUNS)}); captures of {seconds} s, and the "
          "service (the last five columns), with two more programs whose "
          "callers are known.\nlate: seconds beyond the capture's; MiB: peak "
          "memory; whole: user stacks; right: of those two programs; taken: "
          "samples, of what the rate promises; stop: seconds")
    tables.print_table(HEADER, rows)
    if peers:
        print(f"perf record --call-graph dwarf and perf script, and bpftrace, "
              f"of {seconds} s beside the same loads, and our figure by theirs")
        tables.print_table(trouble_peers.HEADER, peers)


def run(context):
    wanted = context.trouble

    def load(kind):
        return running(context, kind)

    def print_throughput():
        with load("spin16") as spinners:
            trouble_throughput.print_throughput(context, spinners)
    parts = {
        "captures": lambda: print_captures(context),
        "signals": lambda: trouble_signals.print_signals(
            context, wanted.loads or SIGNAL_LOADS, load),
        "throughput": print_throughput,
        "memory": lambda: trouble_service.print_memory(
            context, wanted.loads or MEMORY_LOADS, load)}
    with trouble_captures.measuring():
        for part in wanted.parts or PARTS:
            parts[part]()
