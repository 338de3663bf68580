# SPDX-License-Identifier: Apache-2.0
"""Questions to a service that has a week of history, and what it takes."""

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse

import history
import programs
import tables
import trouble_captures

RATE_HZ = 19
HOUR, DAY, WEEK = 3600, 24 * 3600, 7 * 24 * 3600
FILLED_HOURS = 7 * 24
QUICK_FILLED_HOURS = 2
RUNS = 3
ANSWER_LIMIT = 60
# What the page asks for is as many steps as a screen has cells.
STEPS = 600


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=ANSWER_LIMIT)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Service:
    """A service with that history; one without has a new directory."""

    def __init__(self, context, directory):
        self.directory = context.scratch_file("days-service")
        shutil.rmtree(self.directory, ignore_errors=True)
        os.mkdir(self.directory)
        self.socket = os.path.join(self.directory, "http.sock")
        config = os.path.join(self.directory, "config.json")
        with open(config, "w", encoding="ascii") as file:
            json.dump({
                "frequency_hz": RATE_HZ,
                "history": {"directory": directory, "max_bytes": 4 << 30,
                            "thin_after_hours": 0},
                "push_spool": {"directory": self.directory + "/spool"},
                "http": {"listen": ["unix:" + self.socket]}}, file)
        self.log = open(self.directory + "/log", "w+b")
        begin = time.monotonic()
        self.process = subprocess.Popen(
            [context.built("daemon", "ksym-profiled"), "--config", config],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.log, env=context.environment())
        if not trouble_captures.wait_until(
                lambda: "a profile every" in self.said()):
            raise programs.Failed("ksym-profiled did not start: " +
                                  self.said()[-300:])
        self.start_seconds = time.monotonic() - begin
        self.start_cpu = self.cpu_seconds()

    def said(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(
            "utf-8", "replace")

    def cpu_seconds(self):
        # The process's CPU clock, as clock_getcpuclockid(3) makes it.
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def rss_mib(self, which):
        return trouble_captures.status_field(self.process.pid, which)

    def ask(self, path, **query):
        """The answer, its seconds of CPU and of wall; no answer where it would
        take too long."""
        connection = Connection(self.socket)
        with contextlib.closing(connection):
            cpu, begin = self.cpu_seconds(), time.monotonic()
            connection.request("GET", f"/api/history/{path}?" +
                               urllib.parse.urlencode(query))
            answer = connection.getresponse()
            body = answer.read()
            used = self.cpu_seconds() - cpu
            wall = time.monotonic() - begin
        if answer.status == http.client.REQUEST_ENTITY_TOO_LARGE:
            return None, used, wall
        if answer.status != http.client.OK:
            raise programs.Failed(f"{path}: {answer.status} {body[:200]}")
        return json.loads(body), used, wall

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def recorded(context, stack):
    """A directory with a history that was recorded now, or was brought."""
    if context.history:
        return context.history
    service = history.Service(context, RATE_HZ, "recorded")
    stack.callback(service.stop)
    service.start()
    seconds = history.QUICK_SECONDS if context.quick else history.SECONDS
    history.run_load(context, seconds, service.begin_file)
    time.sleep(history.INTERVAL_SECONDS)
    service.stop()
    history.seal(service)
    return service.path("history")


def fill(context, source, hours):
    directory = context.scratch_file(f"days-{hours}")
    done = subprocess.run(
        [context.built("tests", "bench", "profile", "bench_days"), source,
         directory, str(hours)], stdout=subprocess.PIPE, text=True, check=True,
        env=context.environment())
    return directory, json.loads(done.stdout)


def questions(service):
    """Names of questions and how to ask them."""
    def step_of(seconds):
        return max(1, seconds // STEPS)
    units, _, _ = service.ask("timeline", seconds=DAY, step=step_of(DAY),
                              by="unit", rows=5)
    functions, _, _ = service.ask("functions", seconds=DAY, top=5)
    named = [row["name"] for row in units["rows"]
             if row["name"] and not row.get("rest")]
    spans = (("1 h", HOUR), ("24 h", DAY), ("7 d", WEEK))
    for label, seconds in spans:
        yield f"heat map of {label}", "timeline", {
            "seconds": seconds, "step": step_of(seconds), "by": "unit"}
    for label, seconds in spans:
        yield f"flame graph of {label}", "flame", {"seconds": seconds}
    for label, seconds in spans:
        yield f"functions of {label}", "functions", {"seconds": seconds}
    if named:
        yield "one unit's flame graph of 24 h", "flame", {
            "seconds": DAY, "unit": named[0]}
    yield "one function's flame graph of 24 h", "flame", {
        "seconds": DAY, "function": functions["rows"][-1]["name"]}
    yield "one function's heat map of 24 h", "timeline", {
        "seconds": DAY, "step": step_of(DAY), "by": "unit",
        "function": functions["rows"][-1]["name"]}


def run(context):
    rows = []
    with contextlib.ExitStack() as stack:
        source = recorded(context, stack)
        hours = QUICK_FILLED_HOURS if context.quick else FILLED_HOURS
        directory, made = fill(context, source, hours)
        plain = Service(context, context.scratch_file("days-none"))
        with contextlib.closing(plain):
            time.sleep(1)
            base_mib = plain.rss_mib("VmHWM")
            base = plain.start_seconds, plain.start_cpu
        service = Service(context, directory)
        with contextlib.closing(service):
            for name, path, query in questions(service):
                answers, *taken = zip(*(service.ask(path, **query)
                                        for _ in range(context.runs(RUNS))))
                rows.append([name] + [tables.number(tables.median(column), 3)
                                      for column in taken] +
                            ["refused" if None in answers else ""])
            peak_mib = service.rss_mib("VmHWM")
    old_hours = made["old_hours"]
    a_day = (made["old_bytes"] / old_hours * 24 / 1e6) if old_hours else 0
    print(f"{made['recorded_seconds']} s of load at {RATE_HZ} Hz, again and "
          f"again until {hours} hours are full, with\nother processes each time: "
          f"{made['files']} files, {made['bytes'] / 1e6:.1f} MB, of which a "
          f"day is {a_day:.1f} MB when\nit is older than a day. A start takes "
          f"{service.start_seconds:.2f} s and {service.start_cpu:.2f} s of CPU "
          f"({base[0]:.2f} and {base[1]:.2f} with an\nempty history); memory "
          f"is {peak_mib:.0f} MiB at the peak of all this ({base_mib:.0f} MiB "
          "of a service that\nis asked nothing).\n")
    print("Seconds of CPU of the whole service, and of wall, until there is "
          "an answer")
    tables.print_table(["question", "CPU", "wall", ""], rows)
