# SPDX-License-Identifier: Apache-2.0
"""What dump costs and shows, and how late captures end beside many threads."""

import contextlib
import json
import os
import signal
import subprocess
import time

import programs
import tables
import waits_cost
import waits_programs
from waits_programs import Row

DUMPED_THREADS = 10000
RUNNABLE_THREADS = 5000


def dump_once(context, *options):
    """(run, document) of a dump as JSON."""
    path = context.scratch_file("dump.json")
    run = programs.run_measured(
        context, [context.profiler, "dump", "-o", path, *map(str, options)])
    with open(path, encoding="utf-8") as file:
        return run, json.load(file)


def whole_share(document):
    """% of those that have a user stack and did not run."""
    states = [thread["user_state"] for thread in document["threads"]
              if thread.get("user_state", "none") != "none"]
    return 100 * states.count("whole") / max(len(states), 1)


@contextlib.contextmanager
def hanging(context):
    """The threads of tests/e2e/workloads/hang.c, once they hang."""
    program = context.built("tests", "e2e", "workloads", "hang")
    # It has children, which are ended with it.
    process = subprocess.Popen([program, str(os.getpid())],
                               stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        for line in process.stdout:
            if line == "ready\n":
                break
        time.sleep(0.5)
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def dump(context, wanted):
    """A dump of many threads, of a deadlock, and of one that is stuck."""
    threads = 1000 if context.quick else DUMPED_THREADS
    process = waits_cost.threads_asleep(context, "asleep", threads)
    try:
        dump_once(context, "-p", process.pid)  # its tables are made
        runs = [dump_once(context) for _ in range(min(5,
                                                      wanted.alternations))]
    finally:
        process.kill()
        process.wait()
    with hanging(context) as pid:
        _, hung = dump_once(context, "-p", pid)
    stuck = [thread for thread in hung["threads"]
             if thread.get("reason") == "vfork, D" and thread.get("kernel")]
    return [
        Row(f"dump of {threads} threads, s of CPU", "< 0.3",
            tables.median([run.cpu_seconds for run, _ in runs])),
        Row("same, s until it is written", "",
            tables.median([run.wall for run, _ in runs])),
        Row("whole stacks there, %", "> 99",
            min(whole_share(document) for _, document in runs)),
        Row("a deadlock of three threads named (1: yes)", "> 1",
            int(3 in map(len, hung["deadlocks"])), decimals=0),
        Row("one in D shown with the kernel's stack (1: yes)", "> 1",
            int(bool(stuck)), decimals=0)]


def beat_once(context, seconds, priority, command):
    """(median, 99.9 %, maximum) in ms of how late each millisecond was; the
    command runs meanwhile again and again."""
    process = subprocess.Popen(
        [context.tool("bench_waiters"), "beat", str(seconds), str(priority)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.stdin.write("\n")
    process.stdin.flush()
    while command and process.poll() is None:
        programs.run_measured(context, command)
    out, _ = process.communicate()
    return [int(figure) / 1e6 for figure in out.split()[:3]]


def beat(context, wanted):
    """A loop that wakes up each millisecond, beside dumps of many threads."""
    threads = 1000 if context.quick else DUMPED_THREADS
    command = [context.profiler, "dump", "-o",
               context.scratch_file("dump.txt")]
    rows = []
    sleepers = waits_cost.threads_asleep(context, "asleep", threads)
    try:
        for priority, name in ((0, "ordinary"), (1, "SCHED_FIFO")):
            alone, beside = [], []
            for _ in range(wanted.alternations):
                alone.append(beat_once(context, wanted.seconds, priority,
                                       None))
                beside.append(beat_once(context, wanted.seconds, priority,
                                        command))
            for i, figure in enumerate(("median", "99.9 %", "maximum")):
                without = [run[i] for run in alone]
                figures = [run[i] for run in beside]
                print(f"  {name}, {figure}: alone median "
                      f"{tables.median(without):.3f}, worst "
                      f"{max(without):.3f} ms; beside dumps "
                      f"{tables.median(figures):.3f}, worst "
                      f"{max(figures):.3f} ms")
            rows.append(Row(
                f"a 1 kHz loop beside dumps ({name}): ms later, median of "
                "maxima", "< 1",
                tables.median([run[2] for run in beside])
                - tables.median([run[2] for run in alone]), decimals=3))
    finally:
        sleepers.kill()
        sleepers.wait()
    return rows


def late(context, wanted):
    """How late a capture of 1 s ends beside many that want a CPU."""
    threads = 500 if context.quick else RUNNABLE_THREADS
    process = waits_cost.threads_asleep(context, "runnable", threads)
    try:
        runs = [programs.run_measured(
            context, waits_programs.own_command(context, "--off-cpu", "-f",
                                                "1"))
                for _ in range(min(3, wanted.alternations))]
    finally:
        process.kill()
        process.wait()
    return [Row(f"a capture of 1 s beside {threads} runnable threads: s late",
                "", tables.median([run.wall - 1 for run in runs])),
            Row("same, s of CPU", "",
                tables.median([run.cpu_seconds for run in runs]))]
