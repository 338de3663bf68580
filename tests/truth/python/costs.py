# SPDX-License-Identifier: Apache-2.0
"""What reading Python's frames costs, in the kernel, in the program that is
sampled, and in memory."""

import glob
import os
import statistics
import subprocess
import sys
import time

import builds
import captures
from cases import Figure

sys.path.insert(0, os.path.join(builds.SOURCE, "tests", "bench", "profile"))

import cost  # noqa: E402

HERTZ = 4999
WITH, WITHOUT = "auto", "none"
SHALLOW, DEEP = 100, 300  # frames
MOST_NS_A_FRAME = 40
MOST_US = 15  # of 100 frames
DEPTH_GOAL = 1024
MOST_MIB = 20
FUNCTIONS = 10000


def start(context, pid, runtimes, seconds, hertz=HERTZ):
    return subprocess.Popen(
        [context.profiler, "-q", "-F", str(hertz), "-p", str(pid),
         "--runtimes", runtimes, "-o", os.devnull, str(seconds)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


def end(process):
    process.kill()
    process.wait()


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ns_per_sample(context, pid, runtimes):
    """BPF time by the process's CPU time: the sampler also runs, for next to
    nothing, when others are interrupted."""
    process = start(context, pid, runtimes, 60)
    try:
        cost.wait_for_samples(process)
        time.sleep(0.6)  # what is read once, and until the files are known
        before, cpu = cost.sampler_statistics(process.pid), cpu_seconds(pid)
        time.sleep(context.cost_seconds)
        after, spent = cost.sampler_statistics(process.pid), cpu_seconds(pid)
    finally:
        end(process)
    if after[1] == before[1] or spent == cpu:
        raise captures.Failure("no samples")
    return (after[0] - before[0]) / ((spent - cpu) * HERTZ)


def of_depth(context, build, depth):
    """ns of a sample with the frames, and of one without."""
    figures = {WITH: [], WITHOUT: []}
    with captures.running(build.command("depth.py", 3600, depth)) as process:
        for _ in range(context.cost_runs):
            for runtimes, values in figures.items():
                values.append(ns_per_sample(context, process.pid, runtimes))
    return [statistics.median(values) for values in figures.values()]


def walk(context, build):
    """Per frame, and of 100 frames with all that is sampled."""
    captures.allow_rate(HERTZ)
    with cost.bpf_statistics():
        shallow = of_depth(context, build, SHALLOW)
        deep = of_depth(context, build, DEEP)
    # Native frames cost the same with and without.
    frame = ((deep[0] - deep[1]) - (shallow[0] - shallow[1])) / (DEEP - SHALLOW)
    whole = shallow[0] / 1000
    return [
        Figure("ns/frame", frame, "%.0f" % frame, frame <= MOST_NS_A_FRAME),
        Figure("us/100", whole, "%.1f" % whole, whole <= MOST_US, [
            "us of 100 frames without Python's: %.1f" % (shallow[1] / 1000)])]


def depth(context, build):
    """The most frames in a stack, of a deep recursion."""
    capture = captures.attached(
        context.profiler, build.command("depth.py", 3600, 1500), 1, 997,
        *context.options)
    deepest = max((len(stack.python) for stack in capture.stacks), default=0)
    return [Figure("depth", deepest, str(deepest), deepest >= DEPTH_GOAL)]


def slow_down(context, build):
    """CPU time of the same work, sampled and not, in turns."""
    command = build.command("work.py")
    ratios = []
    for _ in range(context.pairs):
        plain = work_seconds(command)
        sampled = work_seconds([
            context.profiler, "-q", "-F", "99", "-o", os.devnull,
            *context.options, "--", *command])
        ratios.append(sampled / plain)
    middle = statistics.median(ratios)
    spread = statistics.stdev(ratios) / len(ratios) ** 0.5
    return [Figure(
        "slower %", middle, "%+.1f±%.1f" % (100 * (middle - 1), 100 * spread),
        middle - 1 <= max(0.005, 2 * spread))]


def work_seconds(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    return float(done.stdout.split()[-1])


def map_bytes(pid):
    """Of the BPF maps that a process holds."""
    total = 0
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        try:
            with open(path, encoding="ascii") as file:
                fields = dict(line.split(":", 1) for line in file)
        except (OSError, ValueError):
            continue  # closed meanwhile, or another kind of file
        if "map_type" in fields:
            total += int(fields["memlock"])
    return total


def peak_mib(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        return int(file.read().partition("VmHWM:")[2].split()[0]) / 1024


def peak(context, pid, runtimes):
    """MiB of the profiler, and of its maps, near the end of a capture."""
    process = start(context, pid, runtimes, context.memory_seconds)
    try:
        cost.wait_for_samples(process)
        time.sleep(0.9 * context.memory_seconds)
        return peak_mib(process.pid), map_bytes(process.pid) / 2**20
    finally:
        end(process)


def memory(context, build):
    """What 10,000 functions take."""
    captures.allow_rate(HERTZ)
    with captures.running(build.command(
            "functions.py", 3600, FUNCTIONS)) as process, cost.bpf_statistics():
        mine, maps = peak(context, process.pid, WITH)
        plain, plain_maps = peak(context, process.pid, WITHOUT)
    return [Figure("MiB/10k", mine - plain, "%.1f" % (mine - plain),
                   mine - plain <= MOST_MIB,
                   ["maps: %.1f MiB more" % (maps - plain_maps)])]
