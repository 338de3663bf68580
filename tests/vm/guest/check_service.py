# SPDX-License-Identifier: Apache-2.0
"""ksym-profiled under systemd: started, reloaded, hung, stopped."""

import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import time

from checks import HERE, check, expect, read, run, wait_for, write
import checks
import harness
import reports

UNIT = "ksym-profiled.service"
CONFIG = "/etc/ksym/ksym-profiled.json"
PROFILES = "/var/lib/ksym-profiled"
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
_PARANOID_BEFORE = read(PARANOID)
DROP_IN = "/run/systemd/system/ksym-profiled.service.d/vm.conf"
ENDED = re.compile(r"ended: (\d+) samples taken, (\d+) in profiles, (\d+) lost,"
                   r" (\d+) dropped; (\d+) files written, (\d+) failed")


def configure(frequency_hz=99, interval_seconds=1):
    # An emulated machine is slow, so its limit of CPU time is off.
    write(CONFIG, "// changed by a check\n" + json.dumps({
        "frequency_hz": frequency_hz, "interval_seconds": interval_seconds,
        "files": {"format": "json"}, "limits": {"cpu_percent": 0},
        # So that memory is soon as large as it will be.
        "http": {"recent_bytes": 1 << 20}}))


def profiles():
    return sorted(glob.glob(PROFILES + "/2*/*/*/*Z*.json"))


def wait_profiles(more=2):
    before = len(profiles())
    return wait_for(lambda: len(profiles()) >= before + more
                    and profiles()[before:], "%d profiles" % more)


def document(path):
    with open(path, "rb") as file:
        return reports.Document(file.read())


def metrics():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(30)
        client.connect("/run/ksym-profiled/http.sock")
        connection = http.client.HTTPConnection("unix")
        connection.sock = client
        connection.request("GET", "/metrics")
        body = connection.getresponse().read().decode()
    return {name: float(value) for name, value in
            (line.rsplit(" ", 1) for line in body.splitlines()
             if not line.startswith("#"))}


def show(name):
    return run("systemctl", "show", "-p", name, "--value", UNIT).strip()


def journal():
    """Its messages with their priorities, oldest first."""
    lines = run("journalctl", "-b", "-u", UNIT, "-o", "json",
                "--output-fields=MESSAGE,PRIORITY,_COMM", "--no-pager")
    return [json.loads(line) for line in lines.splitlines()
            if line.startswith("{")]


def own_messages():
    return [(int(line["PRIORITY"]), line["MESSAGE"]) for line in journal()
            if line.get("_COMM") == "ksym-profiled"]


@check("systemctl start")
def start():
    # Profiles appear, and a unit's program has names and its label there.
    configure()
    run("systemctl", "start", UNIT)
    expect(show("ActiveState") == "active", "not active")
    run("systemd-run", "--unit=load", HERE + "/workloads/spin")
    try:
        wait_profiles(1)
        newest = document(wait_profiles(2)[-1])
    finally:
        run("systemctl", "stop", "load")
    checks.validate(newest.json)
    inside = [s for s in newest.stacks if s.get("unit") == "load.service"]
    expect(inside, "no samples of the unit")
    expect(newest.leaves(comm="spin")["Hot"] > 10,
           "no names: %s" % newest.leaves(comm="spin"))
    kernel = newest.of_kind("kernel")
    expect(all("reason" not in frame for frame in kernel),
           "kernel frames without names: %s" % [
               f for f in kernel if "reason" in f][:3])
    # It keeps a history without being asked to.
    expect("Hot" in run("ksym-profile", "history", "--from", "-10m", "--unit",
                        "load"), "no function of the unit in the history")
    expect(metrics()["ksym_frequency_hz"] == 99, "not 99 Hz")
    expect(int(read(PARANOID)) <= 2, "perf_event_paranoid is " + read(PARANOID))
    return "%s, %s" % (newest.metadata["event"], newest.metadata["unwind"])


@check("systemctl reload")
def reload():
    # A new file comes into force; of an invalid one the log says why.
    configure(frequency_hz=49)
    run("systemctl", "reload", UNIT)
    wait_for(lambda: metrics()["ksym_frequency_hz"] == 49, "49 Hz")
    write(CONFIG, '{"frequency_hz": "many"}')
    run("systemctl", "reload", UNIT)
    wait_for(lambda: any("not reloaded" in text and priority == 3
                         for priority, text in own_messages()),
             "the error in the journal")
    expect(metrics()["ksym_frequency_hz"] == 49, "the old one is not kept")
    expect(show("ActiveState") == "active", "not active")
    configure()
    run("systemctl", "reload", UNIT)
    wait_for(lambda: metrics()["ksym_frequency_hz"] == 99, "99 Hz")
    wait_profiles(1)


@check("watchdog")
def watchdog():
    # A stopped process is killed and started again, and goes on.
    write(DROP_IN, "[Service]\nWatchdogSec=4\nTimeoutStopSec=3\nRestartSec=1\n")
    try:
        run("systemctl", "daemon-reload")
        run("systemctl", "restart", UNIT)
        process = int(show("MainPID"))
        wait_profiles(1)
        os.kill(process, signal.SIGSTOP)
        wait_for(lambda: show("NRestarts") == "1", "a restart")
        wait_for(lambda: show("ActiveState") == "active", "it to be active")
        expect(int(show("MainPID")) != process, "the same process")
        wait_profiles(2)
        expect(any("atchdog" in line["MESSAGE"] for line in journal()),
               "the journal says nothing of the watchdog")
        for path in profiles()[-8:]:  # of before and after
            document(path)
    finally:
        os.unlink(DROP_IN)
        run("systemctl", "daemon-reload")


@check("systemctl stop loses nothing")
def stop():
    # taken = in profiles + lost, and the files have all that is in profiles.
    run("systemctl", "stop", UNIT)
    for directory in glob.glob(PROFILES + "/2*"):
        shutil.rmtree(directory)
    begin = len(own_messages())
    run("systemctl", "start", UNIT)
    spin = harness.Workload([HERE + "/workloads/spin"], ready=True)
    try:
        wait_profiles(2)
        before = time.monotonic()
        run("systemctl", "stop", UNIT)
        seconds = time.monotonic() - before
    finally:
        spin.stop()
    expect(show("Result") == "success", show("Result"))
    # What the unit has lowered is as before.
    expect(read(PARANOID) == _PARANOID_BEFORE, read(PARANOID))
    said = [text for _, text in own_messages()[begin:]]
    found = [m for m in map(ENDED.search, said) if m]
    expect(len(found) == 1, said)
    taken, named, lost, dropped, written, failed = map(int, found[0].groups())
    expect(taken == named + lost + dropped, found[0][0])
    expect((lost, dropped, failed) == (0, 0, 0), found[0][0])
    documents = [document(path) for path in profiles()]
    expect(len(documents) == written, found[0][0])
    expect(sum(d.samples["emitted"] for d in documents) == named, found[0][0])
    expect(named > 100, found[0][0])
    # Two seconds are promised; this machine is emulated. systemd kills after
    # ten.
    expect(seconds < 9, "it took %.1f s" % seconds)
    return "%d samples in %d files, stopped in %.1f s" % (named, written,
                                                          seconds)


@check("journal")
def priorities():
    # Each message has one, none has it in its text, and nothing is wrong but
    # what the checks before this have made wrong.
    messages = own_messages()
    expect({6, 3} <= {priority for priority, _ in messages}, messages)
    expect(not [text for _, text in messages if text.startswith("<")],
           messages)
    worse = [text for priority, text in messages if priority < 6
             and "frequency_hz" not in text and "reloaded" not in text]
    expect(worse == [], worse)
    expect(all(read(path) for path in profiles()), "an empty profile")
