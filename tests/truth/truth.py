#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what part of the user frames has a name; see scripts/truth.

    truth.py --profiler PROGRAM [LOAD...]

Exit status: 0; 1 when a frame was missed, or a named load cannot be run; 77
without root.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import loads
import tools

HEADER = ["load", "profiler", "user frames", "named", "in no file",
          "no symbol", "missed", "named of nameable"]


def percent(part, whole):
    return "%.2f %%" % (100 * part / whole) if whole else "-"


def row(load, tool, frames):
    cells = [load, tool, str(frames.total)]
    cells += [percent(part, frames.total) for part in (
        frames.named, frames.no_file, frames.no_symbol, frames.missed)]
    return cells + [percent(frames.named, frames.named + frames.missed)
                    if tool != "bpftrace" else "-"]


def print_row(cells):
    print("  %-8s %-9s" % tuple(cells[:2]) +
          "".join("%13s" % cell for cell in cells[2:-1]) +
          "%19s" % cells[-1], flush=True)


def measure(name, profiler):
    """True when nothing that could have a name lacks it."""
    with tempfile.TemporaryDirectory(prefix="ksym-truth-") as directory:
        os.chmod(directory, 0o755)
        load = loads.ALL[name](directory)
        missed = 0
        for tool in tools.ALL:
            if not tools.installed(tool):
                continue
            try:
                frames = tool(os.path.abspath(profiler), load, directory)
            except (OSError, subprocess.SubprocessError) as error:
                print("  %-8s %-9s %s" % (name, tool.__name__, error))
                continue
            print_row(row(name, tool.__name__, frames))
            if tool is tools.ksym:
                missed = frames.missed
                if frames.reasons:
                    print("           without a name: " + ", ".join(
                        "%s %s" % (reason, percent(count, frames.total))
                        for reason, count in frames.reasons.most_common()))
        return missed == 0


def main():
    parser = argparse.ArgumentParser(prog="scripts/truth")
    parser.add_argument("--profiler", required=True)
    parser.add_argument("loads", nargs="*", metavar="LOAD",
                        help="of " + ", ".join(loads.ALL))
    arguments = parser.parse_args()
    for name in arguments.loads:
        if name not in loads.ALL:
            parser.error("no load %s; there are %s" % (
                name, ", ".join(loads.ALL)))
    if os.geteuid() != 0:
        print("skipped: sampling needs root")
        return 77
    print_row(HEADER)
    good = True
    for name in arguments.loads or loads.ALL:
        try:
            good = measure(name, arguments.profiler) and good
        except loads.Missing as reason:
            print("  %-8s left out: %s" % (name, reason), flush=True)
            good = good and not arguments.loads
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
