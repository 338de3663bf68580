"""Kernel modules that come and go while samples are taken."""

import os
import re
import signal
import subprocess
import threading
import time

from checks import QUICK, Skip, check, expect, read, run, wait_for
import check_service
import checks
import harness

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
    an emulated machine."""
    begin = time.monotonic()
    read("/proc/kallsyms")
    return time.monotonic() - begin


def module_samples(document, module):
    """Named ones in the module, and all with kernel frames without names."""
    wanted = "[%s]" % module
    named = document.total(lambda s: any(
        f.get("module") == wanted and "reason" not in f
        for f in document.kernel(s)))
    unnamed = document.total(lambda s: any(
        "reason" in f for f in document.kernel(s)))
    return named, unnamed


@check("module symbols within 1 s")
def within_a_second():
    # Profiles that begin a second after the module came have all its names.
    need_module("zram")
    check_service.configure()
    run("systemctl", "restart", check_service.UNIT)
    check_service.wait_profiles(1)
    reading = reading_seconds()
    with ZramLoad():
        loaded_ns = time.time_ns()
        time.sleep(5 + 3 * reading)
        unloaded_ns = time.time_ns()
    check_service.wait_profiles(2)
    documents = [check_service.document(path)
                 for path in check_service.profiles()[-20:]]
    late = [document for document in documents if
            document.metadata["start_unix_ns"] >=
            loaded_ns + (1 + 2 * reading) * 1e9 and
            document.metadata["start_unix_ns"] +
            document.metadata["duration_ns"] <= unloaded_ns]
    counts = [module_samples(document, "zram") for document in late]
    print(counts, flush=True)
    named = sum(n for n, _ in counts)
    expect(named > 20, "only %d samples in the module" % named)
    unnamed = sum(u for _, u in counts)
    # A frame of something else may have none.
    expect(unnamed <= named / 50, "%d samples without names: %s" % (
        unnamed, counts))
    return "%d samples; reading the table takes %.2f s" % (
        named, reading)


@check("names of an unloaded module")
def unloaded():
    # Samples in a module that is gone when the capture ends have its names,
    # but for those before the table was read again.
    need_module("zram")
    running = harness.Background(["-F", "499", "--format", "json"])
    running.wait_started()
    try:
        time.sleep(1)
        with ZramLoad():
            time.sleep(4 + 4 * reading_seconds())
        time.sleep(1)
    finally:
        running.signal(signal.SIGINT)
    done = running.finish()
    expect(done.status == 0, done.stderr)
    document = checks.document(done.stdout)
    named, unnamed = module_samples(document, "zram")
    print(document.metadata["kernel_table"], flush=True)
    expect(named > 100 and named > unnamed,
           "%d samples named, %d not" % (named, unnamed))
    reasons = {frame["reason"] for frame in document.of_kind("kernel")
               if "reason" in frame}
    expect(reasons <= {"ambiguous", "no-symbol"}, reasons)
    return "%d samples named, %d not" % (named, unnamed)


def resident_kb(process):
    return int(re.search(r"VmRSS:\s+(\d+)",
                         read("/proc/%d/status" % process))[1])


@check("module load and unload cycles")
def cycles():
    # Memory stays flat, and every sample is in a profile or counted as lost.
    need_module("dummy")
    turns = 20 if QUICK else 200
    run("systemctl", "restart", check_service.UNIT)
    begin = len(check_service.own_messages())
    process = int(check_service.show("MainPID"))
    sizes = []
    for turn in range(turns + turns // 5):
        if turn == turns // 5:  # until here it fills its caches
            sizes.append(resident_kb(process))
        for command in (["modprobe", "dummy", "numdummies=0"],
                        ["rmmod", "dummy"]):
            subprocess.run(command, check=True)
    sizes.append(resident_kb(process))
    snapshots = check_service.metrics()["ksym_kernel_snapshots"]
    run("systemctl", "stop", check_service.UNIT)
    said = [text for _, text in check_service.own_messages()[begin:]]
    found = [m for m in map(check_service.ENDED.search, said) if m]
    expect(len(found) == 1, said)
    taken, named, lost, dropped, _, failed = map(int, found[0].groups())
    expect(taken == named + lost + dropped, found[0][0])
    expect((lost, dropped, failed) == (0, 0, 0), found[0][0])
    expect(snapshots > 2, "the table was read %d times" % snapshots)
    grown = sizes[1] - sizes[0]
    expect(grown < 4096, "grew by %d KiB" % grown)
    return "%d cycles, %d snapshots, %d samples, %+d KiB" % (
        turns, snapshots, taken, grown)
