# SPDX-License-Identifier: Apache-2.0
"""The profilers: each runs a load and gives its user frames."""

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import symbols

RATE = 999
SECONDS = 2
NO_SYMBOL = {"no-symbol", "no-symbols"}


class Frames:
    """Counts of user frames, each once per sample that it is in."""

    def __init__(self):
        self.named = 0
        self.no_file = 0  # in no file, as far as the tool knows
        self.no_symbol = 0  # readelf has no symbol there either
        self.missed = 0
        self.reasons = collections.Counter()

    @property
    def total(self):
        return self.named + self.no_file + self.no_symbol + self.missed

    def add_in_file(self, path, offset, count):
        """A frame without a name."""
        if symbols.covers(path, offset) is False:
            self.no_symbol += count
        else:
            self.missed += count


class Running:
    """The load: a command for the profiler, or a process to attach to."""

    def __init__(self, load):
        self.load = load
        self.process = None

    def __enter__(self):
        if self.load.attach:
            self.process = subprocess.Popen(self.load.command,
                                            stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL)
            self.load.attach(self.process.pid)
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()

    @property
    def pid(self):
        return self.process.pid if self.process else None


def run(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True,
                          stdin=subprocess.DEVNULL, check=False, timeout=300)
    return done.stdout.decode("utf-8", "replace")


def ksym(profiler, load, directory):
    """ksym-profile"""
    frames = Frames()
    path = os.path.join(directory, "ksym.json")
    with Running(load) as running:
        target = (["-p", str(running.pid), str(SECONDS)] if running.pid
                  else ["--", *load.command])
        run([profiler, "-q", "-F", str(RATE), "-o", path, *target], directory)
    with open(path) as file:
        document = json.load(file)
    table = document["frames"]
    for stack in document["stacks"]:
        user = [table[index] for index in stack["user"]]
        for frame in user:
            add_ours(frames, frame, frame is user[-1], stack["count"])
    return frames


def add_ours(frames, frame, is_leaf, count):
    reason = frame.get("reason")
    if reason is None:
        frames.named += count
        return
    frames.reasons[reason] += count
    module = frame.get("module", "")
    if reason == "anonymous" or reason == "unmapped" and not is_leaf:
        # Code without a perf map; or what frame pointers led to in code that
        # has none, which is no address of code at all.
        frames.no_file += count
    elif reason in NO_SYMBOL and module.startswith("/"):
        frames.add_in_file(module, int(frame["file_offset"], 16), count)
    elif reason in NO_SYMBOL:
        frames.no_symbol += count  # [vsyscall]
    else:
        frames.missed += count


PERF_FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((.*)\)$")


def perf(_, load, directory):
    """perf record, perf script"""
    frames = Frames()
    data = os.path.join(directory, "perf.data")
    command = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", str(RATE),
               "-g", "-o", data]
    with Running(load) as running:
        if running.pid:
            command += ["-p", str(running.pid), "--", "sleep", str(SECONDS)]
        else:
            command += ["--", *load.command]
        run(command, directory)
        text = run(["perf", "script", "-i", data, "-F", "ip,sym,dso"], directory)
    for line in text.splitlines():
        found = PERF_FRAME.match(line)
        if not found:
            continue
        address, name, path = found.groups()
        if name != "[unknown]":
            frames.named += 1
        elif path.startswith("/") and os.path.exists(path):
            frames.add_in_file(path, int(address, 16), 1)
        else:
            frames.no_file += 1
    return frames


BPFTRACE = """profile:hz:%d /cgroup == cgroupid("%s")/ {
  @[pid, ustack(perf, 127)] = count();
}"""
BPFTRACE_FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((.*)\)$")
BPFTRACE_COUNT = re.compile(r"\]: (\d+)$")


@contextlib.contextmanager
def cgroup():
    for line in open("/proc/mounts"):
        _, mount, kind = line.split()[:3]
        if kind == "cgroup2":
            break
    else:
        raise OSError("no cgroup v2 hierarchy is mounted")
    path = os.path.join(mount, "ksym-truth-%d" % os.getpid())
    os.mkdir(path)
    try:
        yield path
    finally:
        for _ in range(100):
            try:
                os.rmdir(path)
                break
            except OSError:
                time.sleep(0.05)


def run_bpftrace(load, directory):
    with cgroup() as path, Running(load) as running:
        with open(os.path.join(directory, "bpftrace.out"), "w+") as out:
            tracer = subprocess.Popen(
                ["bpftrace", "-e", BPFTRACE % (RATE, path)], stdout=out,
                stderr=subprocess.DEVNULL,
                env=dict(os.environ, BPFTRACE_MAP_KEYS_MAX="100000"))
            while "Attaching" not in open(out.name).read():
                if tracer.poll() is not None:
                    raise OSError("bpftrace does not start")
                time.sleep(0.05)
            time.sleep(0.5)
            join = "echo %d > " + path + "/cgroup.procs"
            if running.pid:
                subprocess.run(["sh", "-c", join % running.pid], check=True)
                time.sleep(SECONDS)
            else:
                subprocess.run(
                    ["sh", "-c", "echo $$ > %s/cgroup.procs; exec \"$@\"" %
                     path, "sh", *load.command], cwd=directory, check=False,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            tracer.send_signal(signal.SIGINT)
            tracer.wait(120)
            out.seek(0)
            return out.read()


def bpftrace(_, load, directory):
    """bpftrace"""
    frames = Frames()
    stack = []
    for line in run_bpftrace(load, directory).splitlines():
        found = BPFTRACE_FRAME.match(line)
        count = BPFTRACE_COUNT.search(line)
        if found:
            stack.append(found.groups())
        elif count:
            for _, name, _ in stack:
                # It says [unknown] of the file, too, so why cannot be told.
                if name.startswith(("[unknown]", "0x")):
                    frames.no_file += int(count.group(1))
                else:
                    frames.named += int(count.group(1))
            stack = []
    return frames


ALL = [ksym, perf, bpftrace]


def installed(tool):
    return tool is ksym or shutil.which(tool.__name__) is not None
