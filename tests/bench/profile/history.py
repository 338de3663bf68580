# SPDX-License-Identifier: Apache-2.0
"""The history of a service on a varied load: bytes a sample, and queries."""

import contextlib
import glob
import gzip
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time

import loads
import programs
import tables
import varied_load

RATES_HZ = (19, 99)
# Of each part of the load.
SECONDS = 40
QUICK_SECONDS = 1
INTERVAL_SECONDS = 5
USUAL_INTERVAL_SECONDS = 10
STOP_LIMIT = 20
START_LIMIT = 60
# Until a new configuration is in force.
RELOAD_SECONDS = 0.5
RUNS = 3

PYTHON = """
import json, re, time
rows = [{"id": i, "text": "word %d " % i * 5} for i in range(2000)]
end = time.monotonic() + float(__import__("sys").argv[1])
while time.monotonic() < end:
    text = json.dumps(rows)
    json.loads(text)
    re.findall(r"w\\w+ (\\d+)", text)
"""
DATABASE = """
import random, sqlite3, time
base = sqlite3.connect(":memory:")
base.execute("create table t(a integer primary key, b text)")
end = time.monotonic() + float(__import__("sys").argv[1])
while time.monotonic() < end:
    base.executemany("insert or replace into t values(?, ?)",
                     [(random.randrange(1 << 20), "x" * random.randrange(99))
                      for _ in range(2000)])
    base.execute("select count(*), max(length(b)) from t where b like '%xyz%'"
                 ).fetchone()
"""


class Service:
    """A service with a history, and pprof files of the same profiles."""

    def __init__(self, context, rate_hz, name="history"):
        self.context = context
        self.rate_hz = rate_hz
        self.directory = context.scratch_file(f"{name}-{rate_hz}")
        os.mkdir(self.directory)
        self.configure(True)
        self.process = None
        self.journals = {}  # bytes of each that there was
        self.pprof_bytes = 0

    def configure(self, has_history):
        with open(self.path("config.json"), "w", encoding="ascii") as file:
            json.dump({
                "frequency_hz": self.rate_hz,
                "interval_seconds": USUAL_INTERVAL_SECONDS
                                    if self.context.minutes
                                    else INTERVAL_SECONDS,
                "history": {"enabled": has_history,
                            "directory": self.path("history")},
                "stacks": {"cache_directory": self.path("cache")},
                "files": {"directory": self.path("pprof"), "format": "pprof"},
                "push_spool": {"directory": self.path("spool")},
                "http": {"listen": []}}, file)

    def begin_file(self):
        """Ends a file of the history, as ten minutes do. Some samples are in
        none."""
        for has_history in (False, True):
            self.configure(has_history)
            self.process.send_signal(signal.SIGHUP)
            time.sleep(RELOAD_SECONDS)
            self.watch()

    def watch(self):
        """Looks how long journals are; they go when they are segments."""
        for path in glob.glob(self.path("history/*.journal")):
            with contextlib.suppress(FileNotFoundError):
                self.journals[path] = os.path.getsize(path)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def start(self):
        with open(self.path("log"), "ab") as log:
            said = self.log().count(": sampling ")
            self.process = subprocess.Popen(
                [self.context.built("daemon", "ksym-profiled"), "--config",
                 self.path("config.json")], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=log,
                env=self.context.environment())
        # A signal would end it before.
        deadline = time.monotonic() + START_LIMIT
        while (self.log().count(": sampling ") == said and
               self.process.poll() is None and time.monotonic() < deadline):
            time.sleep(0.05)

    def log(self):
        with open(self.path("log"), encoding="utf-8") as log:
            return log.read()

    def stop(self):
        """Ends it in order; CPU seconds that it took."""
        if self.process is None:
            return 0
        process, self.process = self.process, None
        process.terminate()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except ChildProcessError:
            raise programs.Failed("ksym-profiled is gone") from None
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise programs.Failed("ksym-profiled: " + self.log()[-300:])
        return used.ru_utime + used.ru_stime

    def bytes_of(self, pattern):
        return sum(os.path.getsize(path) for path in
                   glob.glob(self.path(pattern), recursive=True)
                   if os.path.isfile(path))

    def query(self, *arguments):
        """What ksym-profile history says of all of it, and its CPU seconds."""
        output = self.path("answer")
        run = programs.run_measured(self.context, [
            self.context.profiler, "history", self.path("history"), "--from",
            "-1d", *arguments, "-o", output])
        with open(output, "rb") as file:
            return file.read(), run.cpu_seconds


def run_load(context, seconds, end_part):
    """Builds, an interpreter, a database, compression, then nearly nothing."""
    with loads.running("build", context.built("tests", "e2e", "loads")):
        time.sleep(seconds)
    end_part()
    commands = [
        ["python3", "-c", PYTHON, str(seconds)],
        ["python3", "-c", DATABASE, str(seconds)],
        ["sh", "-c", f"timeout {seconds} xz -9 -c </dev/urandom; true"]]
    for command in commands[:1 if context.quick else None]:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True,
                       env=context.environment())
        end_part()
    time.sleep(seconds)


def sql_bytes(context, profile, name):
    """A row per stack and process of all the time, in the database's favour:
    without times."""
    path = context.scratch_file(name)
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute("create table frames(id integer primary key, name text)")
        base.execute("create table stacks(comm text, pid integer, kind text,"
                     " stack blob, count integer)")
        base.executemany("insert into frames values(?, ?)",
                         enumerate(frame["name"]
                                   for frame in profile["frames"]))
        base.executemany(
            "insert into stacks values(?, ?, ?, ?, ?)",
            [(stack["comm"], stack["pid"], stack.get("sample_kind", ""),
              ",".join(map(str, stack["user"] + stack["kernel"])),
              stack["count"]) for stack in profile["stacks"]])
        base.commit()
    size = os.path.getsize(path)
    os.unlink(path)
    return size


def seal(service):
    """Has the last journal made a segment, as the next start does."""
    service.pprof_bytes = service.bytes_of("pprof/**")
    left = glob.glob(service.path("history/*.journal"))
    service.watch()
    service.start()
    deadline = time.monotonic() + STOP_LIMIT
    while any(map(os.path.exists, left)) and time.monotonic() < deadline:
        time.sleep(0.1)
    service.stop()


def compact(context, service):
    """Has the segments made one, as in the next hour."""
    done = subprocess.run(
        [context.built("tests", "bench", "profile", "bench_compact"),
         service.path("history")], stdout=subprocess.PIPE, text=True,
        check=True, env=context.environment())
    return done.stdout.split()


def thin_row(context, service, rate_hz):
    """What a day later makes of the files."""
    done = subprocess.run(
        [context.built("tests", "bench", "profile", "bench_thin"),
         service.path("history")], stdout=subprocess.PIPE, text=True,
        check=True, env=context.environment())
    thin = json.loads(done.stdout)
    gone = [f"{100 * (1 - tables.ratio(after, before)):.0f} %"
            for before, after in (thin[key] for key in (
                "bytes", "nodes", "functions", "strings", "rows"))]
    each = [tables.number(tables.ratio(size, thin["samples"]), 2)
            for size in thin["bytes"]]
    folded = tables.ratio(100 * thin["folded_samples"], thin["samples"])
    return [f"{rate_hz} Hz", thin["samples"], *thin["bytes"], *each, *gone,
            f"{folded:.0f} %", thin["cpu_ms"], thin["peak_kib"] >> 10,
            "yes" if thin["same_sums"] else "NO"]


def size_row(context, service, rate_hz):
    profile = json.loads(service.query("--format", "json")[0])
    samples = profile["metadata"]["samples"]["emitted"]
    folded = len(gzip.compress(service.query("--format", "folded")[0]))
    rows = sql_bytes(context, profile, f"rows-{rate_hz}")
    sealed = service.bytes_of("history/*.segment")
    cpu_ms, peak_kib = compact(context, service)
    compacted = service.bytes_of("history/*.segment")
    pprof = service.pprof_bytes
    each = [tables.number(size / samples, 2)
            for size in (sum(service.journals.values()), sealed, compacted,
                         pprof, rows, folded)]
    return [f"{rate_hz} Hz", samples, *each,
            tables.number(tables.ratio(compacted, pprof), 3), cpu_ms,
            int(peak_kib) >> 10]


def query_row(context, service, rate_hz):
    cells = [f"{rate_hz} Hz"]
    for arguments in (["--format", "json"], ["--format", "flamegraph"],
                      ["--functions", "--format", "json"],
                      ["--series", "--by", "comm", "--format", "json"],
                      ["--command", "python3", "--format", "folded"]):
        taken = [service.query(*arguments)[1]
                 for _ in range(context.runs(RUNS))]
        cells.append(tables.number(tables.median(taken), 3))
    return cells


def run(context):
    seconds = QUICK_SECONDS if context.quick else SECONDS
    sizes, thin, queries, cpu = [], [], [], []
    with contextlib.ExitStack() as stack:
        services = {rate: Service(context, rate) for rate in RATES_HZ}
        for service in services.values():
            stack.callback(service.stop)
            service.start()
        begin = time.monotonic()

        def for_each(do):
            for service in services.values():
                do(service)
        if context.minutes:
            varied_load.run(context, 60 * context.minutes,
                            lambda: for_each(Service.watch))
        else:
            run_load(context, seconds, lambda: for_each(Service.begin_file))
        time.sleep(USUAL_INTERVAL_SECONDS)
        wall = time.monotonic() - begin
        for rate, service in services.items():
            cpu.append(f"{rate} Hz {100 * service.stop() / wall:.2f} %")
        # At once, so that nothing that fails then loses a long load.
        for rate, service in services.items():
            seal(service)
            if context.history:
                shutil.copytree(service.path("history"),
                                os.path.join(context.history, str(rate)))
        for rate, service in services.items():
            sizes.append(size_row(context, service, rate))
            thin.append(thin_row(context, service, rate))
            queries.append(query_row(context, service, rate))
    load = ("a varied load, a file of ten minutes each"
            if context.minutes else "builds, Python, a database, compression "
            "and nearly nothing, a file of each")
    print(f"Bytes a sample after {wall:.0f} s of {load}:\nas journals, sealed "
          "and in one file (compact), pprof files\nof each interval, rows of "
          "SQLite and gzipped folded stacks without times, compact /\npprof; "
          "what making one file took, in ms of CPU and MiB")
    tables.print_table(["rate", "samples", "journal", "sealed", "compact",
                        "pprof.gz", "SQLite", "folded.gz", "ratio", "CPU",
                        "peak"], sizes)
    print("The same files thinned out, as when they are a day old: bytes "
          "before and after, and a\nsample; how much of the bytes, stacks, "
          "functions, strings and rows goes, and how many\nsamples have a "
          "folded stack; ms of CPU and MiB; whether each sum is what it was")
    tables.print_table(["rate", "samples", "bytes", "thin", "B", "thin B",
                        "bytes -", "stacks -", "functions -", "strings -",
                        "rows -", "folded", "CPU", "peak", "same sums"], thin)
    print("CPU seconds of ksym-profile history for all of it: a profile as "
          "JSON, a flame\ngraph, functions, a curve of each command, one "
          "command's folded stacks")
    tables.print_table(["rate", "profile", "page", "functions", "series",
                        "one command"], queries)
    print("CPU of the services, in all: " + ", ".join(cpu) + "\n")
