#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the Python frames in our stacks against what is true of programs that
know; see scripts/truth-python.

    truth.py --profiler PROGRAM [OPTION...] [CASE...]

Exit status: 0; 1 when a figure is not as good as it should be, 77 without root
or any of the builds.
"""

import argparse
import os
import subprocess
import sys

import builds
import captures
import cases
import costs
import lives
import real_loads
import service
from context import Context

CASES = {
    "calls": cases.calls,
    "begun": cases.begun,
    "scenes": cases.scenes,
    "inside": cases.inside,
    "short": lives.short_lives,
    "churn": lives.churn,
    "walk": costs.walk,
    "depth": costs.depth,
    "slower": costs.slow_down,
    "memory": costs.memory,
    "service": service.service,
}
LOADS = "loads"  # a table of its own
# What is worth measuring on every build, and not on programs alone.
EVERYWHERE = {"calls", "begun", "scenes", "short"}
GOALS = {
    "all frames %": ">= 99.5", "torn %": "", "bad edges": "0",
    "begun all %": ">= 99.5",
    "scenes all %": ">= 99.5", "right %": ">= 99.9", "bad order": "0",
    "inside %": ">= 99.5",
    "50 ms %": ">= 99", "stale names": "0", "unnamed %": "<= 1",
    "ns/frame": "<= 40", "us/100": "<= 15", "depth": ">= 1024",
    "slower %": "~ 0", "MiB/10k": "<= 20",
    "service %": "<= 0.3",
}
WIDTH = 9
NOTES = 3  # of a figure
SKIPPED = 77


class Table:
    """Prints each row when it is there."""

    def __init__(self, names):
        self.columns = [column for column in GOALS if any(
            column in COLUMNS_OF[name] for name in names)]
        self.good = True
        self.notes = []

    def begin(self):
        self._print("", self.columns)
        self._print("goal", [GOALS[column] for column in self.columns])

    def add(self, build, figures):
        cells = []
        for column in self.columns:
            figure = figures.get(column)
            if figure is None:
                cells.append("")
                continue
            cells.append(figure.text + ("" if figure.good else " !"))
            self.good = self.good and figure.good
        self._print(build.text, cells)

    def note(self, build, figure):
        """Why it is not as good as it should be."""
        for note in [] if figure.good else figure.notes[:NOTES]:
            self.notes.append("%s: %s: %s" % (build.text, figure.column, note))

    def _print(self, first, cells):
        print(("%-28s" % first + "".join(
            "%*s" % (max(WIDTH, len(column)) + 2, cell)
            for cell, column in zip(cells, self.columns))).rstrip(),
              flush=True)

    def end(self):
        for note in self.notes:
            print("  " + note)


COLUMNS_OF = {
    "calls": ["all frames %", "torn %", "bad edges"],
    "begun": ["begun all %"],
    "scenes": ["scenes all %", "right %", "bad order"],
    "inside": ["inside %"],
    "short": ["50 ms %"],
    "churn": ["stale names", "unnamed %"],
    "walk": ["ns/frame", "us/100"],
    "depth": ["depth"],
    "slower": ["slower %"],
    "memory": ["MiB/10k"],
    "service": ["service %"],
}


def measure(context, build, names, table):
    figures = {}
    for name in names:
        if build.kind != "static" and name not in EVERYWHERE:
            continue
        try:
            for figure in CASES[name](context, build):
                figures[figure.column] = figure
                table.note(build, figure)
        except (captures.Failure, OSError, subprocess.SubprocessError,
                costs.cost.programs.Skipped,
                costs.cost.programs.Failed) as error:
            table.good = False
            table.notes.append("%s: %s: %s" % (build.text, name, error))
    table.add(build, figures)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/truth-python")
    parser.add_argument("--profiler", required=True)
    parser.add_argument("--roots", default=builds.SOURCE + "/build/roots",
                        help="where roots are kept; build/roots if not given")
    parser.add_argument("--versions", help="3.11,3.13; all if not given")
    parser.add_argument("--kinds", default=",".join(builds.KINDS),
                        help="of %(default)s")
    parser.add_argument("--samples", type=int, default=100000,
                        help="of call-heavy code (default: %(default)s)")
    parser.add_argument("--frequency", type=int, default=9999,
                        help="of call-heavy code and scenes "
                        "(default: %(default)s)")
    parser.add_argument("--quick", action="store_true",
                        help="all of it for seconds: proves that it works")
    parser.add_argument("cases", nargs="*", metavar="CASE",
                        help="of " + ", ".join([*CASES, LOADS]))
    arguments = parser.parse_args()
    for name in arguments.cases:
        if name not in [*CASES, LOADS]:
            parser.error("no case %s; there are %s" % (
                name, ", ".join([*CASES, LOADS])))
    return arguments


def print_table(context, arguments, names):
    """Whether all figures are good; None: there is nothing to measure."""
    versions = arguments.versions.split(",") if arguments.versions else []
    table = Table(names)
    left_out = []
    found = list(builds.all_builds(arguments.roots, versions,
                                   arguments.kinds.split(","), left_out.append))
    for reason in left_out:
        print(reason)
    if not found:
        return None
    table.begin()
    for build in found:
        measure(context, build, names, table)
    table.end()
    return table.good


def main():
    arguments = parse_arguments()
    if os.geteuid() != 0:
        print("skipped: sampling needs root")
        return SKIPPED
    if arguments.quick:
        context = Context.short(arguments.profiler)
    else:
        context = Context.full(arguments.profiler, arguments.samples,
                               arguments.frequency)
    wanted = arguments.cases or [*CASES, LOADS]
    names = [name for name in wanted if name != LOADS]
    good = True
    if names:
        good = print_table(context, arguments, names)
        if good is None:
            return SKIPPED
    if LOADS in wanted:
        good = real_loads.print_table(context) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
