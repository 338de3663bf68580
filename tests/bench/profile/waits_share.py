# SPDX-License-Identifier: Apache-2.0
"""Which share of threads' time is in the report: of a whole machine, and of a
thread with a quota."""

import collections
import contextlib
import os
import subprocess
import time

import cgroups
import programs
import waits_programs
from waits_known import HZ, Baseline, Bpftrace, Own
from waits_programs import Row


def throttled_ns(cgroup):
    with open(os.path.join(cgroup, "cpu.stat"), encoding="ascii") as file:
        fields = dict(line.split() for line in file)
    return int(fields.get("throttled_time",
                          1000 * int(fields.get("throttled_usec", 0))))


@contextlib.contextmanager
def cpu_quota(share):
    """A cgroup whose threads have that share of one CPU."""
    quota_of = cgroups.quota_of(share)
    if quota_of is None:
        raise programs.Skipped("no cgroups bound CPU time here")
    mount, texts = quota_of
    with cgroups.made(os.path.join(mount, f"ksym-bench-{os.getpid()}")) as path:
        cgroups.set_files(path, texts)
        yield path


def quota(context, wanted):
    """A thread that spins and may for a fifth of the time."""
    program = context.built("tests", "e2e", "workloads", "spin")
    with cpu_quota(0.2) as cgroup:
        spinner = subprocess.Popen([program], stdout=subprocess.DEVNULL)
        try:
            with open(os.path.join(cgroup, "cgroup.procs"), "w",
                      encoding="ascii") as file:
                file.write(str(spinner.pid))
            with waits_programs.sampling(
                    context, waits_programs.own_command(
                        context, "--off-cpu", "-F", HZ, "--format", "json",
                        "-v", "--by", "tid", "-p", spinner.pid),
                    settle=0) as running:
                before = throttled_ns(cgroup)
                time.sleep(max(wanted.seconds, 2))
                throttled = throttled_ns(cgroup) - before
                found = Own(*running.finish())
        finally:
            spinner.kill()
            spinner.wait()
    quotas = sum(stack["value"] for stack in found.stacks
                 if stack["reason"] == "[runnable: quota]")
    waited = sum(stack["value"] for stack in found.stacks)
    return [Row("a quota: its share of the waits, %", "> 99" if
                os.getloadavg()[0] < 1 else "", 100 * quotas / max(waited, 1)),
            Row("a quota: samples against `cpu.stat`", "",
                quotas / max(throttled, 1), decimals=3)]


def thread_ids():
    """Of all threads, but those that die before they are looked at."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            found.update(map(int, os.listdir(f"/proc/{pid}/task")))
    return found


def ran_ns(tids):
    found = {}
    for tid in tids:
        with contextlib.suppress(OSError):
            with open(f"/proc/{tid}/schedstat", encoding="ascii") as file:
                found[tid] = int(file.read().split()[0])
    return found


def share(context, wanted):
    """What is in the report of a whole machine, most of which sleeps."""
    seconds = max(wanted.seconds, 1)
    commands = {"own": waits_programs.own_command(
        context, "--off-cpu", "-v", "--by", "tid", "--parked", "--format",
        "json"), **waits_programs.peers(context)}
    shares = {name: share_of(context, name, command, seconds)
              for name, command in commands.items()}
    # Where a kernel hides a process from BPF nothing can be said of it.
    hidden = set.intersection(*({pid for pid, times in of.items()
                                 if not any(there for there, _ in times)}
                                for of in shares.values()))
    hidden.discard(2)  # the kernel's own threads sleep for hours
    if hidden:
        print("  left out, as no program sees them:", sorted(hidden))
    result = {}
    for name, of in shares.items():
        times = [time for pid in of if pid not in hidden for time in of[pid]]
        result[name] = (100 * sum(there for there, _ in times)
                        / sum(life for _, life in times))
    return [Row("threads' time in the report, whole machine, %", "> 99.9",
                result["own"], result["baseline"], result.get("bpftrace"))]


def share_of(context, name, command, seconds):
    """{pid: [(what is in the report, life)]}, of threads that live on."""
    settle = waits_programs.SETTLE_SECONDS if name == "bpftrace" else 0
    with waits_programs.sampling(context, command, settle) as running:
        tids = thread_ids() - {running.pid}
        before = ran_ns(tids)
        begin = time.monotonic()
        time.sleep(seconds)
        after = ran_ns(tids)
        length = (time.monotonic() - begin) * 1e9
        out, err = running.finish()
    found = (Own(out, err) if name == "own" else Baseline(out, [])
             if name == "baseline" else Bpftrace(out))
    if name == "own":
        # Sampling lasted longer than what was looked at.
        length = max(map(sum, found.times.values()))
    result = collections.defaultdict(list)
    for tid in after:
        # The program's own threads, which are in no report, are gone.
        with contextlib.suppress(OSError):
            pid = process_of(tid)
            ran = after[tid] - before[tid] if found.waited[tid] else 0
            there = (sum(found.times[tid]) if name == "own" else
                     min(found.waited[tid] + ran, length))
            result[pid].append((there, length))
    return result


def process_of(tid):
    with open(f"/proc/{tid}/status", encoding="utf-8",
              errors="replace") as file:
        return next(int(line.split()[1]) for line in file
                    if line.startswith("Tgid:"))
