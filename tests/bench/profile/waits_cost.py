# SPDX-License-Identifier: Apache-2.0
"""What sampling of waits costs: of a switch, of throughput, for many threads,
of memory."""

import os
import subprocess

import cost
import programs
import tables
import waiting
import waits_programs
from waits_programs import Row

MODES = {"--off-cpu": ["--off-cpu", "-F", "99", "-f"],
         "--off-cpu --wakers": ["--off-cpu", "--wakers", "-F", "99", "-f"],
         "--wall": ["--wall", "-F", "99", "-f"]}
RING_THREADS = 1000
ASLEEP_THREADS = 10000


def alternate(context, wanted, commands, measure):
    """{name: [(without, beside)]}: in turns. Each without is the mean of one run
    before and one after: the machine drifts, which is not the program's cost."""
    figures = {name: [] for name in commands}
    before = measure()
    for _ in range(wanted.alternations):
        for name, command in commands.items():
            with waits_programs.sampling(context, command):
                beside = measure()
            behind = measure()
            figures[name].append(
                ([sum(pair) / 2 for pair in zip(before, behind)], beside))
            before = behind
    return figures


def commands_of(context, modes):
    return {**{name: waits_programs.own_command(context, *MODES[name])
               for name in modes}, **waits_programs.peers(context)}


def median_of(figures, name, value):
    return tables.median([value(without, beside)
                          for without, beside in figures.get(name, [])])


def switch(context, wanted):
    """A pinned pair of processes that wake each other."""
    cpu = programs.online_cpus()[-1]
    figures = alternate(context, wanted, commands_of(context, MODES),
                        lambda: waiting.pair(context, cpu, wanted.seconds))

    def row(what, goal, name, value, decimals):
        return Row(what, goal, median_of(figures, name, value),
                   median_of(figures, "baseline", value),
                   median_of(figures, "bpftrace", value), decimals)
    added = {"--off-cpu": "< 200", "--off-cpu --wakers": "< 300",
             "--wall": "< 200"}
    rows = [row(f"ns added to a switch, `{name}`", goal, name,
                lambda without, beside: beside[1] - without[1], 0)
            for name, goal in added.items()]
    return rows + [
        row(f"throughput kept, pinned pair, `{name}`", "> 0.92", name,
            lambda without, beside: beside[0] / without[0], 3)
        for name in added]


def pass_token(context, threads, seconds):
    """(CPU ns per switch, switches per second) of a ring."""
    done = subprocess.run(
        [context.tool("bench_waiters"), "ring", str(threads), str(seconds)],
        input="\n", capture_output=True, text=True, check=True)
    passed, cost = done.stdout.split()[1:3]
    return float(cost), int(passed) / seconds


def stacks_share(context, threads, seconds):
    """% of a CPU that the program takes which is there for stacks alone."""
    command = waits_programs.own_command(context, *MODES["--off-cpu"],
                                         "--wait-program", "interrupt")
    with cost.bpf_statistics(), \
            waits_programs.sampling(context, command) as running:
        def taken():
            return cost.program_statistics(running.pid,
                                           cost.RAW_TRACEPOINT_PROGRAM)[0]
        before = taken()
        pass_token(context, threads, seconds)
        return 100 * (taken() - before) / (seconds * 1e9)


def ring(context, wanted):
    """Threads that pass a token on: each wait is long enough to be sampled. The
    budget bounds what stacks take of it."""
    threads = 100 if context.quick else RING_THREADS
    figures = alternate(
        context, wanted, commands_of(context, ["--off-cpu"]),
        lambda: pass_token(context, threads, wanted.seconds))

    # Of one CPU, and of the time that its switches take.
    def share(without, beside):
        return 100 * (beside[0] - without[0]) * beside[1] / 1e9
    return [Row(f"% of a CPU, {threads} threads in a ring", "< 2",
                median_of(figures, "--off-cpu", share),
                median_of(figures, "baseline", share),
                median_of(figures, "bpftrace", share), 1),
            Row("same, for stacks alone", "",
                tables.median([stacks_share(context, threads, wanted.seconds)
                               for _ in range(min(3, wanted.alternations))]),
                decimals=2),
            Row("throughput kept, that ring", "",
                *[median_of(figures, name,
                            lambda without, beside: beside[1] / without[1])
                  for name in ("--off-cpu", "baseline", "bpftrace")], 3)]


def process_cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads_asleep(context, mode, threads):
    """bench_waiters with its threads; to be used with `with`."""
    process = subprocess.Popen(
        [context.tool("bench_waiters"), mode, str(threads)],
        stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "ready\n":
        process.kill()
        raise programs.Failed(f"bench_waiters {mode} {threads}")
    return process


def asleep(context, wanted):
    """What a pair pays, and the profiler itself, while many sleep beside it."""
    threads = 1000 if context.quick else ASLEEP_THREADS
    command = waits_programs.own_command(context, *MODES["--off-cpu"])
    cpu = programs.online_cpus()[-1]

    def measure():
        return waiting.pair(context, cpu, wanted.seconds)

    def own(samples):
        with waits_programs.sampling(context, command) as running:
            before = process_cpu_seconds(running.pid)
            samples.append((measure(), process_cpu_seconds(running.pid)
                            - before))
    alone, beside = [], []
    for _ in range(wanted.alternations):
        own(alone)
        process = threads_asleep(context, "asleep", threads)
        try:
            own(beside)
        finally:
            process.kill()
            process.wait()

    def difference(value):
        return (tables.median(map(value, beside))
                - tables.median(map(value, alone)))
    return [Row(f"ns of a switch more beside {threads} threads asleep", "",
                difference(lambda figure: figure[0][1]), decimals=0),
            Row("% of a CPU more that the profiler takes there", "< 0.5",
                100 * difference(lambda figure: figure[1]) / wanted.seconds,
                decimals=2)]


def memory(context, wanted):
    """Beside a capture of CPUs of the same rate and load."""
    modes = {"cpu": ["-F", "99", "-f"], **MODES}
    rss = {name: [] for name in modes}
    kernel = {}
    for _ in range(min(3, wanted.alternations)):
        for name, options in modes.items():
            run = programs.run_measured(
                context, waits_programs.own_command(context, *options,
                                                    int(wanted.seconds) or 1))
            rss[name].append(run.peak_rss_mib)
    for name, options in modes.items():
        with waits_programs.sampling(context, waits_programs.own_command(
                context, *options)) as running:
            kernel[name] = waits_programs.kernel_mib(running.pid)
    others = {}
    for name, command in waits_programs.peers(context).items():
        if name == "baseline":
            with waits_programs.sampling(context, command) as running:
                others[name] = waits_programs.kernel_mib(running.pid)
    rows = []
    for name in MODES:
        more = tables.median(rss[name]) - tables.median(rss["cpu"])
        rows.append(Row(f"peak RSS more than of `-F 99`, MiB, `{name}`", "< 2",
                        more, decimals=1))
        rows.append(Row(f"BPF memory more than of `-F 99`, MiB, `{name}`",
                        "< 8", kernel[name] - kernel["cpu"],
                        others.get("baseline"), decimals=1))
    return rows
