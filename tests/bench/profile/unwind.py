# SPDX-License-Identifier: Apache-2.0
"""How many user stacks are whole, beside perf and bpftrace, and what it costs.

A stack counts as whole if its root is where programs and threads begin. The
share is of the samples that have a user stack at all.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time

import cost
import programs
import tables
import unwind_loads

RATE_HZ = 199
ROOT = re.compile(r"^(_start|_dl_start_user|_dl_start|(__)?clone3?|"
                  r"(\[?ld-linux[^;]*)|thread_native_entry|__libc_start_main.*"
                  r"|__libc_start_call_main|__GI___clone3?"
                  r"|runtime\.(goexit|mstart|rt0_go)(\.abi0)?)(\+0x[0-9a-f]+)?$")
READY = re.compile(r"ready (\d+) ms after the first sample, at the latest "
                   r"(\d+)")
DEPTHS = [(9, "depth", 7), (28, "depth", 26), (106, "depth", 104)]
IDLE_PROCESSES = 200
IDLE_FILES = 300


def limited(command, seconds):
    return ["timeout", str(seconds)] + command


def share(stacks):
    """Of (frames from the root on, count)s. A stripped program's first frame
    has no name: the C library's, which it called, will do."""
    total = sum(count for _, count in stacks)
    whole = sum(count for roots, count in stacks
                if any(ROOT.match(root) for root in roots[:3]))
    return 100 * whole / total if total else None


def run_quietly(command, **options):
    return subprocess.run(command, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False, **options)


def ours(context, command, *options):
    """(% by root names, % as the sampler says, ends, milliseconds until the
    tables were there) of the same run."""
    report = context.scratch_file("out.json")
    run = subprocess.run(
        [context.profiler, "-v", "-F", str(RATE_HZ), "-o", report,
         "--max-stack-depth", "512", *options, "--"] + command,
        env=context.environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, encoding="utf-8", errors="replace", check=False)
    delay = READY.search(run.stderr)
    with open(report, encoding="utf-8") as file:
        document = json.load(file)
    stacks = []
    for stack in document["stacks"]:
        if not stack["user"]:
            continue
        roots = [document["frames"][i]["name"] for i in stack["user"][:3]]
        if stack["user_state"] in ("broken", "truncated"):
            roots = ["[truncated]"]
        stacks.append((roots, stack["count"]))
    ends = document["metadata"]["samples"]["user_stack_ends"]
    total = sum(ends.values())
    whole = ends["outermost"] + ends["zero-frame-pointer"]
    rest = ", ".join(f"{name} {count}" for name, count in ends.items()
                     if count and name not in ("outermost",
                                               "zero-frame-pointer"))
    return (share(stacks), 100 * whole / total if total else None, rest,
            " to ".join(delay.groups()) if delay else "-")


def perf(context, command, mode):
    data = context.scratch_file("perf.data")
    run_quietly(["perf", "record", "-q", "-F", str(RATE_HZ), "--call-graph",
                 mode, "-o", data, "--"] + command,
                env=context.environment(), cwd=context.scratch)
    script = subprocess.run(
        ["perf", "script", "-i", data, "--max-stack", "512", "-F", "ip,sym",
         "--no-inline"],
        capture_output=True, text=True, errors="replace", check=False,
        env=context.environment(), timeout=300)
    stacks = []
    for block in script.stdout.split("\n\n"):
        frames = [line.split(None, 1) for line in block.splitlines()
                  if line.strip()]
        user = [frame[1] if len(frame) > 1 else "" for frame in frames
                if not frame[0].startswith("ffff")]
        if user:
            stacks.append((user[:-4:-1], 1))
    return share(stacks)


def bpftrace(context, command, seconds):
    if not programs.has_program("bpftrace"):
        return None
    output = context.scratch_file("bpftrace.txt")
    run_quietly(["bpftrace", "-o", output, "-c", " ".join(command), "-e",
                 f"profile:hz:{RATE_HZ} /pid == cpid/ "
                 "{ @[ustack(127)] = count(); } "
                 f"interval:ms:{int(seconds * 1000)} {{ exit(); }}"], env=context.environment())
    with open(output, encoding="utf-8", errors="replace") as file:
        text = file.read()
    stacks = []
    for block in re.findall(r"@\[\n(.*?)\]: (\d+)", text, re.S):
        lines = [line.strip() for line in block[0].splitlines()
                 if line.strip()]
        if lines:
            roots = [line.split("+")[0] for line in lines[:-4:-1]]
            stacks.append((roots, int(block[1])))
    return share(stacks)


def print_completeness(context, seconds):
    rows = []
    for name, command in itertools.islice(unwind_loads.loads(context),
                                          1 if context.quick else None):
        command = limited(command, seconds)
        by_root, by_end, rest, delay = ours(context, command)
        rows.append([name, tables.number(by_end, 1),
                     tables.number(by_root, 1),
                     tables.number(perf(context, command, "dwarf"), 1),
                     tables.number(None if context.quick else
                                   perf(context, command, "fp"), 1),
                     # It follows one process only.
                     tables.number(bpftrace(context, command[2:],
                                            seconds)
                                   if name.startswith("C++") else None, 1),
                     delay, rest])
        print("  " + " | ".join(rows[-1]), flush=True)
    print("\nPer cent of user stacks that reach their outermost frame, at "
          f"{RATE_HZ} Hz for {seconds} s or until the load ends; ms from a "
          "process's first sample to its tables, median to longest")
    tables.print_table(["load", "ksym", "by name", "perf dwarf", "perf fp",
                        "bpftrace", "tables, ms", "ours that do not"], rows)


def print_cost(context, rate_hz, runs, seconds):
    rows = []
    for frames, *workload in DEPTHS[:1 if context.quick else None]:
        figures = {"auto": [], "fp": []}
        cpus = programs.online_cpus()[-1:]
        with programs.load(context, cpus, *workload, programs.LOAD_PRIORITY):
            for _ in range(runs):
                for how, values in figures.items():
                    values.append(cost.ns_per_sample(
                        context, cost.our_command(context, "exact", rate_hz) +
                        ["--unwind", how], seconds))
        auto, fp = (tables.median(figures[how]) for how in ("auto", "fp"))
        rows.append([f"{frames} user frames", tables.number(auto, 0),
                     tables.number(fp, 0),
                     tables.number(tables.ratio(auto, fp), 2)])
    print(f"BPF nanoseconds per sample at {rate_hz} Hz, by tables and by frame "
          f"pointers, median of {runs} alternating runs of {seconds} s")
    tables.print_table(["load", "auto", "fp", "ratio"], rows)


@contextlib.contextmanager
def many_processes(context, count, files):
    """Processes that run now and then, with that many different libraries."""
    library = next(path for path in (
        "/usr/lib/x86_64-linux-gnu/libz.so.1", "/lib64/libz.so.1")
        if os.path.exists(path))
    names = []
    for i in range(files):
        names.append(context.scratch_file(f"lib{i}.so"))
        shutil.copy(library, names[-1])
    program = ("import ctypes, sys, time\n"
               "for f in sys.argv[1:]: ctypes.CDLL(f)\n"
               "while True:\n"
               "  end = time.monotonic() + 0.003\n"
               "  while time.monotonic() < end: pass\n"
               "  time.sleep(0.5)\n")
    with contextlib.ExitStack() as stack:
        for i in range(count):
            mine = names[i * files // count:(i + 1) * files // count]
            stack.enter_context(programs.running(
                context, [sys.executable, "-S", "-E", "-c", program, *mine]))
        time.sleep(0.5 if context.quick else 5)
        yield


def cpu_seconds(pid):
    """Of all threads of a process, also of those that have ended."""
    return time.clock_gettime((~pid << 3) | 2)


def watch_capture(context, how, begin, seconds):
    """One capture: what its first `begin` seconds took, the next `seconds`,
    and the rest with its end; and its peak memory in MiB."""
    process = subprocess.Popen(
        [context.profiler, "-v", "-F", "99", "--unwind", how, "-o",
         context.scratch_file("out.folded"), str(begin + seconds + 0.5)],
        env=context.environment(), stderr=subprocess.PIPE, encoding="utf-8",
        errors="replace")
    # What libbpf says before that is more than a pipe holds.
    if not any(": Sampling at " in line for line in process.stderr):
        raise programs.Failed("ksym-profile did not start")
    clocks = []
    for wait in (begin, seconds):
        time.sleep(wait)
        clocks.append((cpu_seconds(process.pid), time.monotonic()))
    lines = process.stderr.read().splitlines()
    status, usage = os.wait4(process.pid, 0)[1:]
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise programs.Failed("ksym-profile: " + " | ".join(lines[-3:]))
    (first, begun), (second, ended) = clocks
    return {"first": first,
            "percent": 100 * (second - first) / (ended - begun),
            "rest": usage.ru_utime + usage.ru_stime - second,
            "rss": usage.ru_maxrss / 1024,
            "line": next((line for line in lines if "unwind tables:" in line),
                         "")}


def print_idle(context):
    count, files = (2, 4) if context.quick else (IDLE_PROCESSES, IDLE_FILES)
    begin, seconds = (0.3, 0.3) if context.quick else (1, 5)
    runs = {"auto": [], "fp": []}
    with many_processes(context, count, files):
        # Tables are kept on disk for the next run.
        watch_capture(context, "auto", begin, begin)
        for _ in range(context.runs(3)):
            for how, results in runs.items():
                results.append(watch_capture(context, how, begin, seconds))
    print("  " + runs["auto"][-1]["line"])
    rows = []
    for how, results in runs.items():
        def median(what, results=results):
            return tables.median([result[what] for result in results])
        rows.append([how, tables.number(median("percent"), 2),
                     " to ".join(tables.number(pick(
                         result["percent"] for result in results), 2)
                         for pick in (min, max)),
                     tables.number(median("first"), 3),
                     tables.number(median("rest"), 3),
                     tables.number(max(r["rss"] for r in results), 1)])
    print(f"\nA capture at 99 Hz with {count} processes and {files} more "
          f"files: CPU time of its threads in the {seconds} s after the first "
          f"{begin} s, % of one CPU, median and range of "
          f"{len(runs['auto'])} alternating runs; seconds of CPU before that, "
          "and after it until the report is written; peak memory, MiB")
    tables.print_table(["--unwind", "CPU %", "from, to", "before, s",
                        "after, s", "RSS"], rows)


def run(context):
    if not programs.has_program("perf"):
        raise programs.Skipped("needs perf")
    print_completeness(context, 0.4 if context.quick else 3)
    with cost.bpf_statistics():
        if context.quick:
            print_cost(context, 10000, context.runs(5), 0.2)
        else:
            print_cost(context, 10000, context.runs(5), 0.6)
            print_cost(context, 99, context.runs(3), 1.5)
    print_idle(context)
