# SPDX-License-Identifier: Apache-2.0
"""This build beside another one of ksym, in turns: what a change costs."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import time

import cost
import programs
import tables

RUNS = 9
# What takes a moment is measured more often: such figures are noisier.
SHORT_RUNS = 3
RATE_HZ = 999
SECONDS = 0.6
DEPTHS = (7, 26, 105)
PATHS = 160_000
RECORD_RATE_HZ = 9999
RECORD_SECONDS = 20
SETTLE_SECONDS = 20
SERVICE_SECONDS = 60
QUICK_SECONDS = 0.5
SERVICE_RATE_HZ = 19
INTERVAL_SECONDS = 5
START_LIMIT = 20
STOP_LIMIT = 20


@dataclasses.dataclass
class Build:
    """One of the two builds, with what was measured of it."""
    profiler: str
    service: str
    figures: dict = dataclasses.field(default_factory=dict)

    def add(self, name, value):
        self.figures.setdefault(name, []).append(value)


def measure_samples(context, builds, runs):
    """BPF nanoseconds of a sample, of a stack of each depth."""
    seconds = QUICK_SECONDS if context.quick else SECONDS
    cpu = programs.online_cpus()[-1]
    for depth in DEPTHS:
        with programs.load(context, [cpu], "depth", depth,
                           programs.LOAD_PRIORITY):
            for _ in range(SHORT_RUNS * runs):
                for build in builds:
                    command = [build.profiler, "-q", "-F", str(RATE_HZ), "-C",
                               str(cpu), "-o", context.scratch_file("folded")]
                    build.add(f"ns a sample, {depth + 2} frames",
                              cost.ns_per_sample(context, command, seconds))


def measure_captures(context, builds, runs):
    """What -F 99 1 takes, of the machine and of one process."""
    output = context.scratch_file("out.folded")
    cpus = programs.online_cpus()
    with programs.load(context, cpus, "depth", 26), \
            programs.running(context, ["sleep", "600"]) as sleeper:
        for name, choice in (("", []), (", -p", ["-p", str(sleeper.pid)])):
            for _ in range(runs):
                for build in builds:
                    run = programs.run_measured(context, [
                        build.profiler, "-q", "-F", "99", *choice, "-o",
                        output, "1"])
                    build.add(f"-F 99 1{name}: wall, s", run.wall)
                    build.add(f"-F 99 1{name}: peak, MiB", run.peak_rss_mib)


def measure_report(context, builds, runs):
    """Naming and folding a raw capture with many stacks, which the other
    build recorded, so that both can read it."""
    raw = context.scratch_file("many.raw")
    paths, seconds = (1000, 1) if context.quick else (PATHS, RECORD_SECONDS)
    with programs.load(context, programs.online_cpus(), "paths", paths):
        programs.run_measured(context, [
            builds[0].profiler, "-q", "-F", str(RECORD_RATE_HZ), "--raw", raw,
            "-o", os.devnull, str(seconds)],
            priority=programs.PROFILER_PRIORITY)
    for _ in range(SHORT_RUNS * runs):
        for build in builds:
            folded = context.scratch_file("out.folded")
            run = programs.run_measured(
                context, [build.profiler, "-q", "--replay", raw, "-o", folded])
            build.add("raw capture to folded: CPU, s", run.cpu_seconds)
            build.add("raw capture to folded: peak, MiB", run.peak_rss_mib)
    with open(folded, "rb") as file:
        return sum(1 for _ in file)


def cpu_seconds(pid):
    """Of a process, of its threads that ended as well, and of its children,
    to the nanosecond: the clock of clock_getcpuclockid(3)."""
    children = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), \
                open(f"/proc/{pid}/task/{thread}/children",
                     encoding="ascii") as file:
            children += map(int, file.read().split())
    return sum(time.clock_gettime(~one << 3 | 2) for one in [pid, *children])


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def knows_history(build):
    return b"--history-enabled" in subprocess.run(
        [build.service, "--help"], stdout=subprocess.PIPE, check=True).stdout


@contextlib.contextmanager
def service(context, build, name):
    """A service from its start on that writes files, as each build can, and
    nothing else."""
    directory = context.scratch_file(f"service-{name}")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "config.json")
    with open(path, "w", encoding="ascii") as file:
        json.dump({
            **({"history": {"enabled": False}} if knows_history(build)
               else {}),
            "frequency_hz": SERVICE_RATE_HZ,
            "interval_seconds": 1 if context.quick else INTERVAL_SECONDS,
            "stacks": {"cache_directory": directory + "/cache"},
            "files": {"directory": directory + "/files", "format": "pprof"},
            "push_spool": {"directory": directory + "/spool"},
            "http": {"listen": []}}, file)
    with open(directory + "/log", "w+b") as log:
        process = subprocess.Popen(
            [build.service, "--config", path], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=log, env=context.environment())
        try:
            wait_started(process, log)
            yield process.pid
        finally:
            end(process)


def wait_started(process, log):
    deadline = time.monotonic() + START_LIMIT
    while b"a profile every" not in os.pread(log.fileno(), 1 << 16, 0):
        if process.poll() is not None or time.monotonic() > deadline:
            raise programs.Failed("ksym-profiled did not start")
        time.sleep(0.02)


def end(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def measure_service(context, builds, runs):
    """Both services at once, so that processes that come and go, which cost
    most of the time, are the same for both."""
    settle, seconds = (2, 3) if context.quick else (SETTLE_SECONDS,
                                                    SERVICE_SECONDS)
    with programs.load(context, programs.online_cpus(), "paths", 100):
        for i in range(runs):
            with contextlib.ExitStack() as stack:
                pids = {}
                for number in (0, 1) if i % 2 == 0 else (1, 0):
                    pids[number] = stack.enter_context(
                        service(context, builds[number], number))
                # Reading each file's tables for the first time is no part of
                # what a service costs for days.
                time.sleep(settle)
                before = {number: cpu_seconds(pids[number]) for number in pids}
                time.sleep(seconds)
                for number, build in enumerate(builds):
                    build.add(
                        f"service at {SERVICE_RATE_HZ} Hz: CPU, ms a second",
                        (cpu_seconds(pids[number]) - before[number]) * 1000 /
                        seconds)
                    build.add(f"service at {SERVICE_RATE_HZ} Hz: peak, MiB",
                              peak_mib(pids[number]))


def run(context):
    if context.against is None:
        raise programs.Skipped("no other build was named (--against)")
    builds = [Build(*(os.path.join(context.against, "daemon", name)
                      for name in ("ksym-profile", "ksym-profiled"))),
              Build(context.profiler, context.built("daemon", "ksym-profiled"))]
    for path in (builds[0].profiler, builds[0].service):
        if not os.access(path, os.X_OK):
            raise programs.Failed(f"{path} is not built")
    runs = context.waits.alternations or context.runs(RUNS)
    with cost.bpf_statistics():
        measure_samples(context, builds, runs)
    measure_captures(context, builds, runs)
    stacks = measure_report(context, builds, runs)
    measure_service(context, builds, runs)
    before, now = (build.figures for build in builds)
    print(f"Medians of {runs} runs of each in turns, of samples and reports of "
          f"{SHORT_RUNS * runs}; the raw capture has {stacks} stacks")
    tables.print_table(
        ["figure", "that build", "this one", "ratio"],
        [[name, *(tables.number(value, 3) for value in (
            tables.median(before[name]), tables.median(now[name]),
            tables.ratio(tables.median(now[name]),
                         tables.median(before[name]))))]
         for name in now])
