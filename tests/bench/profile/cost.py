# SPDX-License-Identifier: Apache-2.0
"""What one sample costs in the kernel, with each store of stacks."""

import contextlib
import ctypes
import glob
import os
import platform
import time

import programs
import tables

BPF_ENABLE_STATS = 32
BPF_STATS_RUN_TIME = 0
BPF_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
PERF_EVENT_PROGRAM = 7  # BPF_PROG_TYPE_PERF_EVENT
RAW_TRACEPOINT_PROGRAM = 17  # BPF_PROG_TYPE_RAW_TRACEPOINT

# (what is printed, bench_workload's mode, its argument)
WORKLOADS = [("7 user frames", "depth", 7), ("26 user frames", "depth", 26),
             ("105 user frames", "depth", 105),
             ("read of /dev/urandom", "urandom", 0)]
BPFTRACE = "profile:hz:{} {{ @[kstack, ustack, comm] = count(); }}"


@contextlib.contextmanager
def bpf_statistics():
    """The kernel times BPF programs while this is open.

    BPF_ENABLE_STATS does what sysctl kernel.bpf_stats_enabled does, and ends
    with the file descriptor, however this process ends.
    """
    number = BPF_SYSCALL.get(platform.machine())
    if number is None:
        raise programs.Skipped("no bpf(2) number for " + platform.machine())
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = ctypes.create_string_buffer(4)  # .type
    fd = libc.syscall(number, BPF_ENABLE_STATS, attributes, 4)
    if fd < 0:
        raise programs.Skipped("BPF_ENABLE_STATS: " +
                               os.strerror(ctypes.get_errno()))
    try:
        yield
    finally:
        os.close(fd)


def program_statistics(pid, program_type):
    """(run_time_ns, run_cnt) of the program of a type that runs most, of those
    that a process holds.

    As bpftool prog show prints them, but of this process for certain: other
    profilers may run.
    """
    best = (0, 0)
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="ascii") as file:
                fields = dict(line.split(":", 1) for line in file)
        except (OSError, ValueError):
            continue  # closed meanwhile, or another kind of file
        if int(fields.get("prog_type", -1)) != program_type:
            continue
        figures = int(fields["run_time_ns"]), int(fields["run_cnt"])
        best = max(best, figures, key=lambda pair: pair[1])
    return best


def sampler_statistics(pid):
    return program_statistics(pid, PERF_EVENT_PROGRAM)


def wait_for_samples(process, seconds=20):
    deadline = time.monotonic() + seconds
    while sampler_statistics(process.pid)[1] == 0:
        if process.poll() is not None or time.monotonic() > deadline:
            raise programs.Failed("the profiler did not start to sample")
        time.sleep(0.02)


def ns_per_sample(context, command, seconds):
    """Starts a profiler, lets it settle and takes its cost for `seconds`."""
    with programs.running(context, command, programs.PROFILER_PRIORITY,
                          cpu=programs.online_cpus()[0]) as process:
        wait_for_samples(process)
        time.sleep(0.1 if context.quick else 0.3)
        time_before, count_before = sampler_statistics(process.pid)
        time.sleep(seconds)
        time_after, count_after = sampler_statistics(process.pid)
        if count_after == count_before:
            raise programs.Failed("no samples from " + command[0])
        # Killed, as nobody reads the report: bpftrace's takes minutes.
    return (time_after - time_before) / (count_after - count_before)


def our_command(context, store, rate_hz):
    # Only the last CPU: the profiler is on the first, and its own samples
    # are none of the load.
    return [context.profiler, "-q", "-F", str(rate_hz), "-C",
            str(programs.online_cpus()[-1]), "--stack-map", store, "-o",
            context.scratch_file("out.folded")]


def measure_ours(context, workload, rate_hz, runs, seconds):
    """{store: [ns per sample]}, the stores in turns."""
    figures = {"exact": [], "stackid": []}
    cpus = programs.online_cpus()[-1:]
    with programs.load(context, cpus, *workload, programs.LOAD_PRIORITY):
        for _ in range(runs):
            for store, values in figures.items():
                values.append(ns_per_sample(
                    context, our_command(context, store, rate_hz), seconds))
    return figures


def measure_bpftrace(context, workload, rate_hz, seconds):
    """It samples all CPUs, so the load is on all."""
    if not programs.has_program("bpftrace"):
        return None
    cpus = programs.online_cpus()
    with programs.load(context, cpus, *workload, programs.LOAD_PRIORITY):
        return ns_per_sample(context, ["bpftrace", "-o", os.devnull, "-e",
                                       BPFTRACE.format(rate_hz)], seconds)


def print_costs(context, rate_hz, runs, seconds):
    rows = []
    for name, *workload in WORKLOADS[-2 if context.quick else 0:]:
        ours = measure_ours(context, workload, rate_hz, runs, seconds)
        exact = tables.median(ours["exact"])
        stackid = tables.median(ours["stackid"])
        bpftrace = measure_bpftrace(context, workload, rate_hz, seconds)
        rows.append([name, tables.number(exact, 0),
                     tables.number(stackid, 0),
                     tables.number(tables.ratio(exact, stackid), 3),
                     tables.number(bpftrace, 0),
                     tables.number(tables.ratio(exact, bpftrace), 3)])
    print(f"BPF nanoseconds per sample at {rate_hz} Hz, median of {runs} "
          f"alternating runs of {seconds} s (bpftrace: 1 run)")
    tables.print_table(
        ["load", "exact", "stackid", "ratio", "bpftrace", "ratio"], rows)


def run(context):
    with bpf_statistics():
        if context.quick:
            print_costs(context, 10000, 1, 0.2)
        else:
            print_costs(context, 10000, 5, 0.6)
            print_costs(context, 99, 2, 1.5)
