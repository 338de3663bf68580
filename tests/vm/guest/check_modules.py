# SPDX-License-Identifier: Apache-2.0
"""Kernel modules that come and go while samples are taken."""

import collections
import os
import re
import signal
import subprocess
import threading
import time

from checks import QUICK, Skip, check, expect, read, run, wait_for
import check_service
import harness
import reports

ZRAM_MEGABYTES = 192


def need_module(name):
    if subprocess.run(["modinfo", name], capture_output=True,
                      check=False).returncode != 0:
        raise Skip("this kernel has no module " + name)


class ZramLoad:
    """Writes to a compressed RAM disk, so that its module is at work."""

    def __enter__(self):
        run("modprobe", "zram", "num_devices=1")
        wait_for(lambda: os.path.exists("/dev/zram0"), "/dev/zram0")
        with open("/sys/block/zram0/disksize", "w", encoding="ascii") as file:
            file.write("%dM" % ZRAM_MEGABYTES)
        self.going_on = True
        self.thread = threading.Thread(target=self._write)
        self.thread.start()
        return self

    def _write(self):
        while self.going_on:
            subprocess.run(
                ["dd", "if=/usr/bin/python3.11", "of=/dev/zram0", "bs=1M",
                 "oflag=direct", "conv=notrunc", "iflag=fullblock"],
                stderr=subprocess.DEVNULL, check=False)

    def __exit__(self, *_):
        self.going_on = False
        self.thread.join()
        run("rmmod", "zram")


def reading_seconds():
    """How long the kernel takes to write its table: 30 to 50 ms, but long in
    an emulated machine that has other work as well."""
    begin = time.monotonic()
    read("/proc/kallsyms")
    return time.monotonic() - begin


def writers_samples(document):
    """Of what writes to the disk: samples with a name in the module, and those
    with kernel frames that have none, by the reasons and what is around them."""
    named, unnamed = 0, collections.Counter()
    for stack in document.stacks:
        if stack["comm"] != "dd":
            continue
        frames = document.kernel(stack)
        if any("reason" in frame for frame in frames):
            unnamed[";".join(frame.get("reason", frame["name"])
                             for frame in frames)] += stack["count"]
        elif any(frame.get("module") == "[zram]" for frame in frames):
            named += stack["count"]
    return named, unnamed


class NewProfiles:
    """Counts writers_samples() in the profiles that are written from now on."""

    def __init__(self):
        self.seen = set(check_service.profiles())
        self.named = self.unnamed = 0

    def enough(self):
        for path in check_service.profiles():
            if path in self.seen:
                continue
            self.seen.add(path)
            document = check_service.document(path)
            named, unnamed = writers_samples(document)
            print(path, named, dict(unnamed), flush=True)
            self.named += named
            self.unnamed += unnamed.total()
        return self.named + self.unnamed >= 100


@check("module symbols within 1 s")
def within_a_second():
    # Samples in a module that has just come wait for the kernel's table, at most
    # a second and as long as reading it takes: all of them have names.
    need_module("zram")
    check_service.configure()
    run("systemctl", "restart", check_service.UNIT)
    check_service.wait_profiles(1)
    before = check_service.metrics()
    new = NewProfiles()
    with ZramLoad():
        wait_for(lambda: check_service.metrics()["ksym_kernel_snapshots"] >
                 before["ksym_kernel_snapshots"], "the table to be read")
        after = check_service.metrics()
        reading = (after["ksym_kernel_reading_seconds"] -
                   before["ksym_kernel_reading_seconds"]) / (
                       after["ksym_kernel_snapshots"] -
                       before["ksym_kernel_snapshots"])
        plain = reading_seconds()
        wait_for(new.enough, "samples in the module")
    said = "%d samples have names, %d not; the table took %.2f s, cat %.2f s" % (
        new.named, new.unnamed, reading, plain)
    expect(new.unnamed <= new.named / 50, said)
    return said


@check("names of an unloaded module")
def unloaded():
    # Samples in a module that is gone when the capture ends have its names. What
    # its first functions do before the kernel shows the module, and what follows
    # when it has gone from the table, may have none.
    need_module("zram")
    running = harness.Background(["-F", "199", "--format", "json"])
    running.wait_started()
    try:
        time.sleep(1)
        with ZramLoad():
            time.sleep(2 + 4 * reading_seconds())
        time.sleep(1)
    finally:
        running.signal(signal.SIGINT)
    done = running.finish()
    expect(done.status == 0, done.stderr)
    document = reports.Document(done.stdout)
    named, unnamed = writers_samples(document)
    table = document.metadata["kernel_table"]
    print("\n".join("%d %s" % (count, stack)
                    for stack, count in unnamed.items()), flush=True)
    said = "%d samples have names, %d not; read %d times in %.1f s" % (
        named, unnamed.total(), table["snapshots"], table["reading_ns"] / 1e9)
    expect(named > 50 and unnamed.total() <= named / 50, said)
    reasons = {frame["reason"] for frame in document.of_kind("kernel")
               if "reason" in frame}
    expect(reasons <= {"ambiguous", "no-symbol"}, reasons)
    return said


def resident_kb(process):
    return int(re.search(r"VmRSS:\s+(\d+)",
                         read("/proc/%d/status" % process))[1])


class Cycles:
    """Loads and unloads a module, and looks at the service's memory."""

    def __init__(self, process):
        self.process = process
        self.sizes = []  # KiB, after each turn

    def turn(self):
        for command in (["modprobe", "dummy", "numdummies=0"],
                        ["rmmod", "dummy"]):
            subprocess.run(command, check=True)
        self.sizes.append(resident_kb(self.process))

    def growth_kb(self):
        """From the second quarter to the last: the first fills caches. While
        the table is read it takes up to 11 MiB more, so the least counts."""
        quarter = len(self.sizes) // 4
        return (min(self.sizes[-quarter:]) -
                min(self.sizes[quarter:2 * quarter]))


@check("module load and unload cycles")
def cycles():
    # Memory stays flat, and every sample is in a profile or counted as lost.
    need_module("dummy")
    turns = 20 if QUICK else 200
    run("systemctl", "restart", check_service.UNIT)
    begin = len(check_service.own_messages())
    done = Cycles(int(check_service.show("MainPID")))

    def snapshots():
        return check_service.metrics()["ksym_kernel_snapshots"]

    def enough():
        done.turn()
        # The first reading is the one at the start; a slow machine takes
        # seconds for each, and there is a pause in between.
        return (len(done.sizes) >= turns and len(done.sizes) % 5 == 0
                and snapshots() > 2)

    wait_for(enough, "%d cycles and two readings of the table" % turns, 600)
    # What waits for the last reading is ten profiles where that takes seconds:
    # more than such a machine can name in the two seconds that a stop has.
    check_service.wait_profiles(3)
    readings = snapshots()
    begin_stop = time.monotonic()
    run("systemctl", "stop", check_service.UNIT)
    seconds = time.monotonic() - begin_stop
    expect(check_service.show("Result") == "success",
           check_service.show("Result"))
    said = [text for _, text in check_service.own_messages()[begin:]]
    found = [m for m in map(check_service.ENDED.search, said) if m]
    expect(len(found) == 1, said)
    taken, named, lost, dropped, _, failed = map(int, found[0].groups())
    expect(taken == named + lost + dropped, found[0][0])
    expect((lost, dropped, failed) == (0, 0, 0), found[0][0])
    grown = done.growth_kb()
    print(done.sizes, flush=True)
    expect(grown < (4096 if QUICK else 2048),
           "grew by %d KiB: %s" % (grown, done.sizes))
    return ("%d cycles, %d snapshots, %d samples, %+d KiB, stopped in %.1f s" %
            (len(done.sizes), readings, taken, grown, seconds))
