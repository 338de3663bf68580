# SPDX-License-Identifier: Apache-2.0
"""What one capture beside a load was worth: its stacks, its end, its memory.

Whoever measures runs before what is measured (see measuring), so that no figure
is of the measurer's own waiting, and gives every program a time after which it
is killed.
"""

import collections
import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import time

import known_calls
import programs

# Programs whose callers are known, and who judges a stack of them.
KNOWN = {"calls": known_calls.is_right_of_calls,
         "own_stack": known_calls.is_right_of_own_stack}
WHOLE_ENDS = ("outermost", "zero-frame-pointer")
READY_SECONDS = 60


@contextlib.contextmanager
def measuring():
    """This process gets a CPU whenever it wants one, which is rarely. What it
    starts is ordinary."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK,
                              os.sched_param(programs.LOAD_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def become_measured_group():
    """The runner, which only waits, runs as the measurer; its child does
    not."""
    os.setpgid(0, 0)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK,
                              os.sched_param(programs.LOAD_PRIORITY))


def kill_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@dataclasses.dataclass
class Bounded:
    """How a command ended; `late` is the time beyond what was asked for, in
    seconds, and at least that where it had to be killed."""
    late: float
    peak_rss_mib: float = None
    status: int = None  # None: it was killed
    said: str = ""


def run_bounded(context, command, seconds, late_limit, stdout=None):
    """Runs a command that should take `seconds`, and kills it `late_limit`
    seconds after that."""
    result = context.scratch_file("bounded.txt")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(result)
    said = open(context.scratch_file("said.txt"), "w+b")
    process = subprocess.Popen(
        [context.tool("bench_runner"), result, *command],
        stdin=subprocess.DEVNULL, stdout=stdout or subprocess.DEVNULL,
        stderr=said, env=context.environment(), cwd=context.scratch,
        preexec_fn=become_measured_group)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds + late_limit)
    finally:
        if process.poll() is None:
            kill_group(process)
    with said:
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    if process.returncode != 0:
        return Bounded(late_limit, said=text)
    with open(result, encoding="ascii") as file:
        start, end, rss, _, status = map(int, file.read().split())
    return Bounded((end - start) / 1e9 - seconds, rss / 1024,
                   os.waitstatus_to_exitcode(status), text)


@contextlib.contextmanager
def known_programs(context, nice):
    """{pid: judge} of one of each of KNOWN."""
    with contextlib.ExitStack() as stack:
        judges = {}
        for name, judge in KNOWN.items():
            process = subprocess.Popen(
                [context.built("tests", "e2e", "workloads", name)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, nice))
            stack.callback(process.stdout.close)
            stack.callback(process.wait)
            stack.callback(process.kill)
            if process.stdout.readline() != b"ready\n":
                raise programs.Failed(name + " did not start")
            judges[process.pid] = judge
        yield judges


class Stacks:
    """What reports say of user stacks, summed up."""

    def __init__(self):
        self.ends = collections.Counter()
        self.right = 0
        self.judged = 0
        self.taken = 0
        self.promised = 0

    def add(self, document, judges):
        samples = document["metadata"]["samples"]
        self.ends.update(samples["user_stack_ends"])
        self.taken += samples["taken"]
        self.promised += (document["metadata"]["frequency_hz"] *
                          samples["time_enabled_ns"] / 1e9)
        for stack in document["stacks"]:
            judge = judges.get(stack["pid"])
            if judge is None or stack["user_state"] == "none":
                continue
            names = [document["frames"][i]["name"] for i in stack["user"]]
            if names and known_calls.is_taken_over(names):
                continue
            self.judged += stack["count"]
            if stack["user_state"] == "whole" and judge(names):
                self.right += stack["count"]

    def whole_percent(self):
        total = sum(self.ends.values())
        whole = sum(self.ends[end] for end in WHOLE_ENDS)
        return 100 * whole / total if total else None

    def right_percent(self):
        return 100 * self.right / self.judged if self.judged else None

    def taken_percent(self):
        return 100 * self.taken / self.promised if self.promised else None

    def broken(self):
        """By cause, the most frequent first."""
        return ", ".join(f"{cause} {count}"
                         for cause, count in self.ends.most_common()
                         if count and cause not in WHOLE_ENDS) or "none"


def load_report(path):
    """A JSON report, or None where there is none that is whole."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, ValueError):
        return None


def capture(context, rate_hz, seconds, late_limit):
    """One run of ksym-profile; how it ended, and its report or None."""
    report = context.scratch_file("trouble.json")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(report)
    run = run_bounded(context, [
        context.profiler, "-F", str(rate_hz), "-o", report, str(seconds)],
                      seconds, late_limit)
    return run, load_report(report)


def status_field(pid, name):
    """Of /proc/PID/status, in MiB."""
    with open(f"/proc/{pid}/status", encoding="ascii",
              errors="replace") as file:
        found = re.search(rf"^{name}:\s+(\d+) kB", file.read(), re.M)
    return int(found.group(1)) / 1024 if found else None


def wait_until(condition, seconds=READY_SECONDS):
    """Whether it came true in that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
