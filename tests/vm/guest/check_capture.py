# SPDX-License-Identifier: Apache-2.0
"""ksym-profile's one-shot captures on this kernel."""

import collections
import os
import re
import signal
import subprocess

from checks import (HERE, KERNEL, PROFILER, QUICK, Skip, check, expect, read,
                    test, write)
import harness
import reports
import test_unwind

# Samples of a capture that is judged.
ENOUGH = 200


def capture(*arguments, name="spin"):
    """A document of that workload with enough samples, and what the run said on
    stderr."""
    for seconds in (2, 6, 18, 54):  # a busy host gives the guest little time
        document, stderr = capture_for(seconds, name, *arguments)
        samples = document.samples
        if samples["taken"] - samples["user_stack_ends"]["not-yet"] > ENOUGH:
            break
    return document, stderr


def capture_for(seconds, name, *arguments):
    workload = harness.Workload([HERE + "/workloads/" + name], ready=True)
    try:
        done = subprocess.run(
            [PROFILER, "-F", "499", "--format", "json", "-p",
             str(workload.pid), *arguments, str(seconds)],
            stdin=subprocess.DEVNULL, capture_output=True, check=False)
    finally:
        workload.stop()
    stderr = done.stderr.decode()
    print(stderr, flush=True)
    expect(done.returncode == 0, stderr)
    return reports.Document(done.stdout), stderr


def expect_whole(document):
    samples = document.samples
    expect(sum(samples["lost"].values()) == 0, samples)
    expect(samples["emitted"] > ENOUGH, samples)
    share = document.share(
        lambda s: "main;Outer;Middle;Hot" in ";".join(document.names(s)))
    expect(share > 0.95, "only %.3f of the stacks are as they should be" %
           share)


@check("exact store")
def exact():
    document, _ = capture("--stack-map", "exact")
    expect_whole(document)
    ends = document.samples["user_stack_ends"]
    expect(ends["outermost"] > 0.95 * sum(ends.values()), ends)
    return "%d of %d stacks whole" % (ends["outermost"], sum(ends.values()))


@check("stackid store")
def stackid():
    document, _ = capture("--stack-map", "stackid")
    expect_whole(document)


def callers(walk):
    def body():
        if walk == "loop" and KERNEL < (5, 17):
            raise Skip("the kernel has no bpf_loop")
        if walk == "steps" and test_unwind.pads_kernel_stacks():
            raise Skip("finds registers only where kernel stacks have no "
                       "padding; such kernels have bpf_loop")
        document, stderr = capture("--unwind-program", walk, name="calls")
        ends = document.samples["user_stack_ends"]
        judged = sum(ends.values()) - ends["not-yet"]
        expect(judged > ENOUGH * 3 // 4, ends)
        expect(ends["outermost"] >= 0.95 * judged, ends)
        expect("warning" not in stderr, stderr)
        return "%d of %d stacks whole" % (ends["outermost"], judged)
    return body


check("whole stacks by bpf_loop")(callers("loop"))
check("whole stacks by steps")(callers("steps"))


@check("threads that wait")
def waits():
    workload = harness.Workload([HERE + "/workloads/waits", "600", "/tmp"],
                                ready=True)
    try:
        os.kill(workload.pid, signal.SIGUSR1)
        # The profiler's own start takes the guest longer than the capture.
        done = subprocess.run(
            [PROFILER, "--off-cpu", "-F", "99", "--format", "json", "-p",
             str(workload.pid), "5"],
            stdin=subprocess.DEVNULL, capture_output=True, check=False)
    finally:
        workload.stop()
    stderr = done.stderr.decode()
    print(stderr, flush=True)
    expect(done.returncode == 0, stderr)
    document = reports.Document(done.stdout)
    expect({kind["event"] for kind in document.metadata["kinds"]} ==
           {"irq_work_entry"}, document.metadata["kinds"])
    expect("in no sample" not in stderr, stderr)
    share = float(re.search(r"come to ([\d.]+) % of what", stderr)[1])
    expect(95 < share < 105, stderr)
    for comm, reason in [("sleep", "clock_nanosleep"), ("pipe", "read"),
                         ("poll", "poll"), ("condvar", "futex"),
                         ("sleeper", "pause")]:
        blocked = collections.Counter()
        for stack in document.stacks:
            if stack["comm"] == comm and stack["sample_kind"] == "blocked":
                blocked.update({frame["name"]: stack["value"]
                                for frame in document.kernel(stack)
                                if frame["kind"] == "wait"})
        expect(blocked["[blocked: %s]" % reason] >
               0.9 * sum(blocked.values()) > 0, "%s: %s" % (comm, blocked))
    ends = document.samples["user_stack_ends"]
    judged = sum(ends.values()) - ends["not-yet"]
    expect(judged > ENOUGH and ends["outermost"] > 0.9 * judged, ends)
    return "samples come to %.1f %% of what threads waited; %d of %d stacks " \
        "whole" % (share, ends["outermost"], judged)


@check("callers")
def known_callers():
    if QUICK:
        raise Skip("takes long")
    test("test_unwind", "CallsTest.test_callers")


@check("CPU offline and online")
def hotplug():
    return test("test_cpu_hotplug",
                "CpuHotplugTest.test_goes_and_comes" if QUICK else None)


@check("BPF programs come and go")
def bpf_programs():
    test("test_kernel_symbols",
         "KernelSymbolsTest.test_program_loaded_and_unloaded_within")


@check("kptr_restrict=2")
def hidden_addresses():
    test("test_names", "KernelNameTest.test_hidden_addresses")


PARANOID = "/proc/sys/kernel/perf_event_paranoid"


@check("perf_event_paranoid=3")
def paranoid():
    # Debian's kernels have a third step, which asks for more than others do.
    # root is not concerned, and others are told in one line.
    before = read(PARANOID)
    write(PARANOID, "3")
    try:
        document, _ = capture()
        expect_whole(document)
        capabilities = ("bpf", "perfmon", "syslog", "sys_ptrace",
                        "dac_read_search")
        done = subprocess.run(
            [*harness.as_nobody(*capabilities), PROFILER, "-F", "99", "1"],
            stdin=subprocess.DEVNULL, capture_output=True, check=False)
        said = done.stderr.decode().splitlines()
        print("\n".join(said), flush=True)
        if done.returncode != 0:
            expect(len(said) == 1 and "perf_event_paranoid" in said[0], said)
            return "root only: " + said[0]
        return "with capabilities as well"
    finally:
        write(PARANOID, before)


@check("capabilities instead of root")
def privileges():
    before = read(PARANOID)
    write(PARANOID, "2")
    try:
        test("test_privileges", "PrivilegeTest.test_two_capabilities")
    finally:
        write(PARANOID, before)


@check("nothing stays open")
def nothing_left():
    import machine_state
    expect(not [name for name in machine_state.program_names()
                if name.startswith("sample_")],
           machine_state.program_names())
    expect(not os.path.exists("/sys/fs/bpf/ksym"), "something is pinned")
