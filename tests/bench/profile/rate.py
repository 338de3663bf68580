# SPDX-License-Identifier: Apache-2.0
"""Samples taken, against what the rate promises, on busy CPUs."""

import re

import programs
import tables

RATES_HZ = (99, 999, 9999)


def our_share(context, rate_hz, seconds):
    samples = programs.profile_to_json(
        context, ["-F", str(rate_hz), str(seconds)])["samples"]
    return samples["taken"] / (rate_hz * samples["time_enabled_ns"] / 1e9)


def perf_share(context, rate_hz, seconds):
    run = programs.run_measured(context, [
        "perf", "record", "-o", context.scratch_file("perf.data"), "-F",
        str(rate_hz), "-a", "-g", "sleep", str(seconds)],
                                priority=programs.PROFILER_PRIORITY)
    said = run.line_with(" samples)")
    taken = re.search(r"\((\d+) samples\)", said[1]) if said else None
    if taken is None:
        raise programs.Failed("perf record did not say its samples")
    return int(taken.group(1)) / (
        rate_hz * len(programs.online_cpus()) * seconds)


def bpftrace_share(context, rate_hz, seconds):
    sums = programs.bpftrace_counts(programs.run_bpftrace(
        context, f"profile:hz:{rate_hz} {{ @taken = count(); }} "
        f"interval:ms:{int(seconds * 1000)} {{ exit(); }}"))
    return sums.get("@taken", 0) / (
        rate_hz * len(programs.online_cpus()) * seconds)


def run(context):
    seconds = 0.5 if context.quick else 3
    peers = {"perf": perf_share, "bpftrace": bpftrace_share}
    rows = []
    with programs.load(context, programs.online_cpus(), "depth", 7):
        for rate_hz in RATES_HZ[-1 if context.quick else 0:]:
            ours = our_share(context, rate_hz, seconds)
            row = [f"{rate_hz} Hz", tables.number(ours, 4)]
            for name, measure in peers.items():
                theirs = (measure(context, rate_hz, seconds)
                          if programs.has_program(name) else None)
                row += [tables.number(theirs, 4),
                        tables.number(tables.ratio(ours, theirs), 3)]
            rows.append(row)
    print("Samples taken / expected (rate x CPUs x seconds; ours: the time the "
          "events were\nenabled, as the report says; peers: as asked for), a "
          f"spinner per CPU, {seconds} s each")
    tables.print_table(
        ["rate", "ksym-profile", "perf", "ratio", "bpftrace", "ratio"], rows)
