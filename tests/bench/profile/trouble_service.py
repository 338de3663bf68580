# SPDX-License-Identifier: Apache-2.0
"""The service beside loads: its stacks, its memory, and its end."""

import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import time

import programs
import tables
import trouble_captures

SECONDS = 12
INTERVAL_SECONDS = 5
STORM_SECONDS = 20
AFTER_SECONDS = 60
STOP_LIMIT = 15  # seconds after which it is killed


class Service:
    """A running ksym-profiled with directories of its own."""

    def __init__(self, context, rate_hz):
        self.directory = context.scratch_file("service")
        shutil.rmtree(self.directory, ignore_errors=True)
        os.mkdir(self.directory)
        config = self.path("config.json")
        with open(config, "w", encoding="ascii") as file:
            json.dump({
                "frequency_hz": rate_hz, "interval_seconds": INTERVAL_SECONDS,
                "stacks": {"cache_directory": self.path("cache")},
                "files": {"directory": self.path("profiles"),
                          "format": "json"},
                "history": {"directory": self.path("history")},
                "push_spool": {"directory": self.path("spool")},
                "http": {"listen": ["unix:" + self.path("http.sock")]}}, file)
        self.log = open(self.path("log"), "w+b")
        self.process = subprocess.Popen(
            [context.built("daemon", "ksym-profiled"), "--config", config],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.log, env=context.environment())

    def path(self, name):
        return os.path.join(self.directory, name)

    def said(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(
            "utf-8", "replace")

    def wait_started(self):
        if not trouble_captures.wait_until(
                lambda: "a profile every" in self.said()):
            raise programs.Failed("ksym-profiled did not start: " +
                                  self.said()[-300:])

    def rss_mib(self, which="VmRSS"):
        return trouble_captures.status_field(self.process.pid, which)

    def stop(self):
        """Seconds from SIGTERM to its end; at most STOP_LIMIT, where it is
        killed."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            return STOP_LIMIT
        return time.monotonic() - begin

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()

    def add_profiles(self, stacks, judges):
        for path in glob.glob(self.path("profiles") + "/*/*/*/*.json"):
            report = trouble_captures.load_report(path)
            if report is not None:
                stacks.add(report, judges)


@contextlib.contextmanager
def service(context, rate_hz):
    running = Service(context, rate_hz)
    try:
        running.wait_started()
        yield running
    finally:
        running.kill()


def end_of(running, seconds):
    """How it ended, as a cell."""
    if seconds >= STOP_LIMIT:
        return f"> {STOP_LIMIT}"
    failed = ("" if running.process.returncode == 0
              and " 0 failed" in running.said() else ", failed")
    return tables.number(seconds, 2) + failed


def cells(context, rate_hz, known_nice):
    """Of the service beside the load that runs, and notes."""
    stacks = trouble_captures.Stacks()
    with trouble_captures.known_programs(context, known_nice) as judges:
        with service(context, rate_hz) as running:
            time.sleep(INTERVAL_SECONDS if context.quick else SECONDS)
            peak = running.rss_mib("VmHWM")
            ended = end_of(running, running.stop())
            running.add_profiles(stacks, judges)
            notes = [f"service, broken: {stacks.broken()}; {stacks.right} of "
                     f"{stacks.judged} right"]
            notes += [line for line in running.said().splitlines()
                      if "warning" in line or "error" in line][-3:]
    return [tables.number(peak, 1), tables.number(stacks.whole_percent(), 2),
            tables.number(stacks.right_percent(), 2),
            tables.number(stacks.taken_percent(), 1), ended], notes


def print_memory(context, kinds, running_load):
    """Within storms, and a minute after each."""
    rows = []
    within, after = (3, 3) if context.quick else (STORM_SECONDS, AFTER_SECONDS)
    for kind in kinds:
        with service(context, 99) as running:
            begin = running.rss_mib()
            with running_load(kind):
                time.sleep(within)
                peak = running.rss_mib("VmHWM")
            time.sleep(after)
            rows.append([kind, tables.number(begin, 1),
                         tables.number(peak, 1),
                         tables.number(running.rss_mib(), 1),
                         end_of(running, running.stop())])
    print(f"Resident memory of the service at 99 Hz in MiB: before a storm, "
          f"its peak within {within} s of it, {after} s after its end; seconds "
          "that its stop took")
    tables.print_table(["load", "before", "peak", "after", "stop"], rows)
