# SPDX-License-Identifier: Apache-2.0
"""Starts the programs that are measured, and the loads they are measured on."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import subprocess
import time


class Skipped(Exception):
    """Why a section, or a part of it, cannot be measured here."""


class Failed(Exception):
    """A measured program did not do what it should."""


@dataclasses.dataclass
class Context:
    """What every section gets."""
    build: str  # the build directory
    scratch: str  # a directory that is removed at the end
    quick: bool  # one short run of everything: proves that it works
    program: str = None  # with debug data, for the section gsym
    trouble: object = None  # trouble.Wanted, for the section trouble
    waits: object = None  # waits.Wanted, for the sections waits and paired
    against: str = None  # another build directory, for the section paired
    history: str = None  # a directory of services, for history and days
    minutes: float = 0  # of a varied load, for the section history

    def scratch_file(self, name):
        return os.path.join(self.scratch, name)

    @property
    def profiler(self):
        return self.built("daemon", "ksym-profile")

    def tool(self, name):
        return self.built("tests", "bench", "profile", name)

    def built(self, *path):
        path = os.path.join(self.build, *path)
        if not os.access(path, os.X_OK):
            raise Skipped(f"{path} is not built")
        return path

    def runs(self, count):
        return 1 if self.quick else count

    def environment(self):
        """perf keeps copies of binaries under HOME."""
        return dict(os.environ, HOME=self.scratch, LC_ALL="C")


def has_program(name):
    return shutil.which(name) is not None


def online_cpus():
    return sorted(os.sched_getaffinity(0))


# Real-time priorities; a profiler must get in when its load fills the CPU.
LOAD_PRIORITY = 1
PROFILER_PRIORITY = 2


def becoming(priority, cpu=None):
    """What a child process does before its exec; 0: an ordinary priority.

    Niceness would not do: autogroups share the CPU by session first. Where
    the priority is not allowed the figures are merely less steady.
    """
    def become():
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        if priority != 0:
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(0, os.SCHED_FIFO,
                                      os.sched_param(priority))
    return become


@dataclasses.dataclass
class Run:
    """What one command cost; clock times are CLOCK_MONOTONIC, in seconds."""
    start: float
    end: float
    peak_rss_mib: float
    cpu_seconds: float
    lines: list  # (time it was read, text) of stderr

    @property
    def wall(self):
        return self.end - self.start

    def line_with(self, text):
        return next((line for line in self.lines if text in line[1]), None)


def run_measured(context, command, stdin=None, stdout=subprocess.DEVNULL,
                 priority=0):
    """Runs `command` to its end; Failed unless it exits with 0."""
    result = context.scratch_file("runner.txt")
    process = subprocess.Popen(
        [context.tool("bench_runner"), result] + command, stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE, text=True, errors="replace",
        env=context.environment(), cwd=context.scratch,
        preexec_fn=becoming(priority))
    lines = [(time.monotonic(), line.rstrip()) for line in process.stderr]
    if process.wait() == 0:
        with open(result, encoding="ascii") as file:
            start, end, rss, cpu, status = map(int, file.read().split())
        if status == 0:
            return Run(start / 1e9, end / 1e9, rss / 1024, cpu / 1e9, lines)
    raise Failed(" ".join(command[:4]) + " ... failed: " +
                 " | ".join(text for _, text in lines[-3:]))


@contextlib.contextmanager
def running(context, command, priority=0, cpu=None):
    """A process that is killed at the end of the block if still there."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=context.environment(), cwd=context.scratch,
        preexec_fn=becoming(priority, cpu))
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextlib.contextmanager
def load(context, cpus, mode, argument=0, priority=0):
    """bench_workload on each of the CPUs; see workload.cc for the modes."""
    with contextlib.ExitStack() as stack:
        for cpu in cpus:
            stack.enter_context(running(
                context, [context.tool("bench_workload"), str(cpu), mode,
                          str(argument)], priority))
        time.sleep(0.2)
        yield


def profile_to_json(context, arguments):
    """Runs ksym-profile and returns the metadata of its JSON report."""
    report = context.scratch_file("report.json")
    run_measured(context, [context.profiler, "-q", "-o", report] + arguments,
                 priority=PROFILER_PRIORITY)
    with open(report, encoding="utf-8") as file:
        return json.load(file)["metadata"]


def bpftrace_counts(text):
    """{map name: sum of its counts} of what bpftrace printed at its end.

    Lines are `@name: 5`, and `@name[key, ...` ... `]: 5` over several lines.
    """
    sums = {}
    name = None
    for line in text.splitlines():
        begin = re.match(r"(@\w*)[\[:]", line)
        if begin:
            name = begin.group(1)
        count = re.search(r"(?:^@\w*|\]): (\d+)$", line)
        if count and name:
            sums[name] = sums.get(name, 0) + int(count.group(1))
    return sums


def run_bpftrace(context, program):
    """Runs a program that ends by itself; returns what it printed."""
    output = context.scratch_file("bpftrace.txt")
    run_measured(context, ["bpftrace", "-o", output, "-e", program],
                 priority=PROFILER_PRIORITY)
    with open(output, encoding="utf-8", errors="replace") as file:
        return file.read()
