# SPDX-License-Identifier: Apache-2.0
"""Loads that tests and benchmarks run beside: a machine in trouble.

    with loads.running("mixed", programs, directory) as load:
        ...

`programs` is the directory of the built programs of this directory. A load runs when
the block begins (each of its processes has done some of its work), and is gone
when the block ends, whatever happened in it. Loads are process groups in the
session of the caller, so that they and what is measured beside them share the
CPUs as equals where the kernel groups processes by session
(kernel.sched_autogroup_enabled).
"""

import contextlib
import ctypes
import glob
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from loads import hostile

READY_SECONDS = 120
COUNTER_BYTES = 64  # of each process, see load.h
PLUGINS = 64  # files that are mapped by turns
BUILD_FILES = 8

C_SOURCE = "".join(f"int f{i}(int x) {{ return x * {i} ^ x; }}\n"
                   for i in range(100))
CXX_SOURCE = ("#include <algorithm>\n#include <map>\n#include <string>\n"
              "#include <vector>\n" + "".join(
                  f"int f{i}(std::vector<std::string>& v) {{ std::map<int, "
                  "std::string> m; for (auto& s : v) m[s.size()] = s; "
                  "std::sort(v.begin(), v.end()); return m.size(); }\n"
                  for i in range(8)))
PYTHON = ("import json; [json.dumps(list(range(2000)), indent=1) "
          "for _ in range(20)]")
PERL = "my %h; for my $i (1..40000) { $h{$i % 997} .= $i } print length $h{5}"


class Failed(Exception):
    """A load did not start, or ended before it should."""


class Generator:
    """A running program of this directory."""

    def __init__(self, directory, program, processes, *arguments):
        self.counters_path = tempfile.mktemp(prefix="counters-", dir=directory)
        self.processes = processes
        self.command = [program, self.counters_path, str(processes),
                        *map(str, arguments)]
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.said, cwd=directory, preexec_fn=become_ordinary)
        self.counters = None

    def turns_of_each(self):
        """How much work each process has done; [] until they can count."""
        return self.words_of_each(0)

    def words_of_each(self, index):
        """A member of Counter, see load.h."""
        size = self.processes * COUNTER_BYTES
        if self.counters is None:
            try:
                with open(self.counters_path, "rb") as file:
                    if os.fstat(file.fileno()).st_size < size:
                        return []
                    self.counters = mmap.mmap(file.fileno(), size,
                                              access=mmap.ACCESS_READ)
            except FileNotFoundError:
                return []
        words = memoryview(self.counters).cast("Q")
        return words[index::COUNTER_BYTES // 8].tolist()

    def check(self):
        if self.process.poll() is not None:
            self.said.seek(0)
            raise Failed("%s ended: %s" % (
                " ".join(self.command)[:200],
                self.said.read().decode(errors="replace").strip()[-500:]))

    def wait_ready(self, deadline):
        while True:
            self.check()
            turns = self.turns_of_each()
            if turns and min(turns) > 0:
                return
            if time.monotonic() > deadline:
                raise Failed("%s: %d of %d processes run" % (
                    " ".join(self.command)[:200],
                    sum(count > 0 for count in turns), self.processes))
            time.sleep(0.02)

    def stop(self):
        """Its first process ends the others with itself."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.said.close()


def become_ordinary():
    """In a child before exec: a group of its own, and none of the priority
    that its starter may have given itself."""
    os.setpgid(0, 0)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Load:
    """What runs; each part is a Generator."""

    def __init__(self, programs, directory):
        self.programs = programs
        self.directory = directory
        self.generators = []

    def start(self, program, processes, *arguments):
        """Returns when each process has done some of its work."""
        path = program if "/" in program else os.path.join(self.programs,
                                                           program)
        if not os.access(path, os.X_OK):
            raise Failed(path + " is not built")
        generator = Generator(self.directory, path, processes, *arguments)
        self.generators.append(generator)
        generator.wait_ready(time.monotonic() + READY_SECONDS)

    def turns(self):
        """The work that all parts have done."""
        return sum(sum(generator.turns_of_each())
                   for generator in self.generators)

    def own_seconds(self):
        """CPU time that spinners really had, without what took it from them
        meanwhile, as interrupts do."""
        return sum(sum(generator.words_of_each(1))
                   for generator in self.generators) / 1e9

    def check(self):
        """Failed unless all parts still run."""
        for generator in self.generators:
            generator.check()

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path


def start_spinners(load, count=16, nice=0):
    load.start("spinners", count, nice)


def start_short_runs(load, loops=12):
    """Loops of short runs of what is installed of compilers and scripts."""
    source = load.write("short.c", C_SOURCE)
    repository = os.path.join(load.directory, "repository")
    commands = [
        ("gcc", f"gcc -O1 -c -o /dev/null {source}"),
        (sys.executable, f"{sys.executable} -S -E -c '{PYTHON}'"),
        ("perl", f"perl -e '{PERL}'"),
        ("git", f"git --no-optional-locks -C {repository} status --short")]
    if shutil.which("git"):
        subprocess.run(["git", "init", "-q", repository], check=True,
                       capture_output=True)
    found = [command for name, command in commands if shutil.which(name)]
    load.start("rounds", loops, 0, *found)


def start_mixed(load):
    start_short_runs(load)
    start_spinners(load, 24)
    start_spinners(load, 8, nice=-10)


def start_forks(load, per_second=0):
    """As fast as it goes, of 8 processes; else a number a second."""
    load.start("rounds", 8, per_second, "exec /bin/true")


def start_threads(load):
    load.start("thread_storm", 4)


def plugins(load):
    """Files that can be mapped executable, each its own."""
    library = max(glob.glob("/lib*/*-linux-gnu/libz.so.1") +
                  glob.glob("/lib64/libz.so.1"), default=sys.executable)
    paths = []
    for i in range(PLUGINS):
        paths.append(os.path.join(load.directory, f"libplugin{i}.so"))
        shutil.copy(library, paths[-1])
    return paths


def start_mappings(load):
    load.start("mapping_storm", 4, 2000, 0, *plugins(load))


def start_storm(load):
    start_threads(load)
    start_mappings(load)
    start_forks(load)


def start_build(load, jobs=8):
    """A parallel build: so many compilers at once."""
    source = load.write("build.cc", CXX_SOURCE)
    load.start("rounds", jobs, 0, f"g++ -O2 -c -o /dev/null {source}")


# By name; None: nothing.
KINDS = {
    "calm": lambda load: None,
    "spin16": start_spinners,
    "spin32": lambda load: start_spinners(load, 32),
    "mixed": start_mixed,
    "storm": start_storm,
    "threads": start_threads,
    "mappings": start_mappings,
    "forks": start_forks,
    "churn": lambda load: start_forks(load, 50),
    "build": start_build,
    "names": hostile.start_names,
    "hostile": hostile.start,
}


@contextlib.contextmanager
def running(kind, programs, directory=None):
    """Runs a load of KINDS; yields it. `directory` is for what it needs."""
    with contextlib.ExitStack() as stack:
        scratch = tempfile.mkdtemp(prefix="ksym-load-", dir=directory)
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        load = Load(programs, scratch)

        def stop():
            for generator in load.generators:
                generator.stop()
        stack.callback(stop)
        KINDS[kind](load)
        yield load
        load.check()
