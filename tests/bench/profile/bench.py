#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures ksym-profile beside perf and bpftrace; see scripts/bench.

    bench.py [--quick] [--program FILE] [--loads KINDS] [--parts PARTS]
             [--signals COUNT] [--waits PARTS] [--seconds SECONDS]
             [--alternations COUNT] [--against DIRECTORY]
             [--history DIRECTORY] [--minutes COUNT] --build DIRECTORY [SECTION...]

Exit status: 0, 1 when a section failed, 77 when nothing can be measured here.
"""

import argparse
import os
import platform
import signal
import subprocess
import sys
import tempfile

# What the end-to-end tests know of their programs and loads.
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), "e2e"))

import cost
import days
import fleet
import gsym
import history
import kernel
import loads
import markup
import paired
import programs
import rate
import stacks
import symbols
import trouble
import trouble_signals
import unwind
import waiting
import waits
import wall

SECTIONS = {"wall": wall, "cost": cost, "stacks": stacks, "rate": rate,
            "kernel": kernel, "symbols": symbols, "unwind": unwind,
            "gsym": gsym, "markup": markup, "waiting": waiting,
            "waits": waits, "history": history, "days": days, "fleet": fleet,
            "trouble": trouble, "paired": paired}
NOTHING_TO_MEASURE = 77


def version_of(command):
    try:
        done = subprocess.run([command, "--version"], capture_output=True,
                              text=True, check=False)
    except OSError:
        return f"{command}: not installed"
    return done.stdout.strip().splitlines()[0] if done.stdout else command


def print_host(context):
    print(f"{platform.system()} {platform.release()}, "
          f"{len(programs.online_cpus())} CPUs, load average "
          f"{os.getloadavg()[0]:.2f}")
    print(", ".join(version_of(program) for program in
                    (context.profiler, "perf", "bpftrace")) + "\n",
          flush=True)


def run_section(context, name):
    """True when it did not fail."""
    module = SECTIONS[name]
    print(f"== {name}: {module.__doc__.splitlines()[0]}\n", flush=True)
    try:
        module.run(context)
    except programs.Skipped as reason:
        print(f"  skipped: {reason}\n", flush=True)
    except (programs.Failed, loads.Failed, OSError) as error:
        print(f"  FAILED: {error}\n", flush=True)
        return False
    return True


def chosen(parser, text, known):
    """The names in a text with commas; each must be a known one."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            parser.error(f"no {name}; there are " + ", ".join(known))
    return names


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures ksym-profile beside perf and bpftrace.")
    parser.add_argument("--quick", action="store_true",
                        help="one short run of everything, as a smoke test")
    parser.add_argument("--build", required=True, metavar="DIRECTORY",
                        help="build directory to take the programs from")
    parser.add_argument("--program", metavar="FILE",
                        help="a program with debug data for the section gsym")
    parser.add_argument("--loads", metavar="KINDS", default="",
                        help="of the section trouble: of " +
                        ", ".join(loads.KINDS) + "; with commas between")
    parser.add_argument("--parts", metavar="PARTS", default="",
                        help="of the section trouble: of " +
                        ", ".join(trouble.PARTS) + " (default: all)")
    parser.add_argument("--signals", metavar="COUNT", type=int, default=0,
                        help="of the section trouble: captures that are told "
                        f"to end (default: {trouble_signals.COUNT}; "
                        f"{trouble_signals.QUICK_COUNT} with --quick)")
    parser.add_argument("--waits", metavar="PARTS", default="",
                        help="of the section waits: of " +
                        ", ".join(waits.PARTS) + " (default: all)")
    parser.add_argument("--seconds", type=float, default=0,
                        help="of the section waits: how long each run is "
                        "(default: 2)")
    parser.add_argument("--alternations", type=int, default=0,
                        metavar="COUNT",
                        help="of the sections waits and paired: how often in "
                        f"turns (default: 9; {paired.RUNS})")
    parser.add_argument("--against", metavar="DIRECTORY",
                        help="of the section paired: another build directory")
    parser.add_argument("--history", metavar="DIRECTORY",
                        help="of the section days: a history without an open "
                        "journal (default: records a load of its own); of the "
                        "section history: where to leave its histories, one "
                        "for each rate")
    parser.add_argument("--minutes", type=float, default=0,
                        help="of the section history: so long a load of "
                        "servers, databases, builds and batches (default: a "
                        "short one of a few programs)")
    parser.add_argument("sections", nargs="*", metavar="SECTION",
                        help="of " + ", ".join(SECTIONS) + " (default: all)")
    arguments = parser.parse_args()
    sections = chosen(parser, ",".join(arguments.sections), SECTIONS)
    kinds = chosen(parser, arguments.loads, loads.KINDS)
    parts = chosen(parser, arguments.parts, trouble.PARTS)
    waits_parts = chosen(parser, arguments.waits, waits.PARTS)
    if os.geteuid() != 0:
        print("skipped: sampling the whole machine and reading BPF run times "
              "needs root")
        return NOTHING_TO_MEASURE
    # So that whatever runs is ended and no directory stays.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="ksym-bench-") as scratch:
        context = programs.Context(os.path.abspath(arguments.build), scratch,
                                   arguments.quick, arguments.program,
                                   trouble.Wanted(kinds, parts,
                                                  arguments.signals),
                                   waits.Wanted(waits_parts, arguments.seconds,
                                                arguments.alternations),
                                   arguments.against and
                                   os.path.abspath(arguments.against),
                                   arguments.history and
                                   os.path.abspath(arguments.history),
                                   arguments.minutes)
        print_host(context)
        fine = [run_section(context, name)
                for name in sections or SECTIONS]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
