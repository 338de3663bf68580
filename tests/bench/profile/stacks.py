# SPDX-License-Identifier: Apache-2.0
"""Samples lost, or left without their stack, with 10,000 call paths."""

import programs
import tables

PATHS = 10_000
# bpftrace takes long to print many stacks.
QUICK_PATHS = 100
RATE_HZ = 4999
QUICK_RATE_HZ = 499
BPFTRACE_ATTEMPTS = 2  # now and then it ends without printing its maps
BPFTRACE = ("profile:hz:{} {{ @taken = count(); "
            "@kept[kstack, ustack, comm] = count(); }} "
            "interval:ms:{} {{ exit(); }}")


def measure_ours(context, store, rate_hz, seconds):
    samples = programs.profile_to_json(
        context, ["-F", str(rate_hz), "--stack-map", store,
                  str(seconds)])["samples"]
    return [f"ksym-profile, {store}", samples["taken"],
            sum(samples["lost"].values()), samples["damaged"]["collision"]]


def measure_bpftrace(context, rate_hz, seconds):
    """Its map keeps what fits; the rest it loses without a word."""
    name = "bpftrace (default map size)"
    for _ in range(context.runs(BPFTRACE_ATTEMPTS)):
        sums = programs.bpftrace_counts(programs.run_bpftrace(
            context, BPFTRACE.format(rate_hz, int(seconds * 1000))))
        if "@taken" in sums:
            taken = sums["@taken"]
            return [name, taken, taken - sums.get("@kept", 0), None]
    return [name, None, None, None]


def run(context):
    seconds, paths, rate_hz = ((0.5, QUICK_PATHS, QUICK_RATE_HZ)
                               if context.quick else (8, PATHS, RATE_HZ))
    rows = []
    with programs.load(context, programs.online_cpus(), "paths", paths):
        for store in ("exact", "stackid"):
            rows.append(measure_ours(context, store, rate_hz, seconds))
        if programs.has_program("bpftrace"):
            rows.append(measure_bpftrace(context, rate_hz, min(seconds, 3)))
    print(f"{paths} call paths at {rate_hz} Hz for {seconds} s "
          "(bpftrace: 3 s at most)")
    tables.print_table(
        ["program", "taken", "lost", "without stack", "% of taken"],
        [[name] + [tables.number(figure, 0)
                   for figure in (taken, lost, damaged)] +
         [tables.number(tables.ratio(100 * ((lost or 0) + (damaged or 0)),
                                     taken), 2)]
         for name, taken, lost, damaged in rows])
