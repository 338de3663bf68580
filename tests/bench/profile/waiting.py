# SPDX-License-Identifier: Apache-2.0
"""What sampling of waits adds to a switch of threads, of a pinned pair."""

import signal
import subprocess
import time

import programs
import tables

RATES = [99, 999]
# The ways to see that a thread goes on; see docs/waiting.md.
WAYS = ["exit", "interrupt"]
ALTERNATIONS = 9
SECONDS = 2


def pair(context, cpu, seconds):
    """(switches, ns of CPU time for each) of two processes on one CPU."""
    done = subprocess.run(
        [context.tool("bench_switches"), str(cpu), str(seconds)],
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise programs.Failed("bench_switches: " + done.stderr)
    switches, cost = done.stdout.split()
    return int(switches), float(cost)


def sampled_pair(context, cpu, seconds, arguments):
    """The same while ksym-profile runs with these arguments."""
    profiler = subprocess.Popen(
        [context.profiler, *arguments, "-f"], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    try:
        line = profiler.stderr.readline()
        if b"Sampling" not in line:
            raise programs.Skipped(line.decode().strip())
        time.sleep(0.2)  # the tracepoints are patched in meanwhile
        return pair(context, cpu, seconds)
    finally:
        profiler.send_signal(signal.SIGINT)
        profiler.communicate()


def run(context):
    cpu = programs.online_cpus()[-1]
    seconds = 0.5 if context.quick else SECONDS
    rows = []
    for name, options in [("-F 99 (CPU only)", ["-F", "99"])] + [
            (f"{mode} -F {rate}, by {way}",
             [*mode.split(), "-F", str(rate), "--wait-program", way])
            for mode in ("--off-cpu", "--off-cpu --wakers", "--wall")
            for rate in RATES for way in WAYS]:
        without, beside, ratios = [], [], []
        for _ in range(context.runs(ALTERNATIONS)):
            base = pair(context, cpu, seconds)
            sampled = sampled_pair(context, cpu, seconds, options)
            without.append(base[1])
            beside.append(sampled[1])
            ratios.append(sampled[0] / base[0])
        least = min(without), min(beside)
        medians = tables.median(without), tables.median(beside)
        rows.append([name, tables.number(medians[0], 0),
                     tables.number(medians[1] - medians[0], 0),
                     tables.number(least[1] - least[0], 0),
                     tables.number(medians[0] / medians[1], 3),
                     tables.number(tables.median(ratios), 3)])
    tables.print_table(["options", "ns per switch", "added (median)",
                        "added (least)", "CPU efficiency", "throughput"], rows)
