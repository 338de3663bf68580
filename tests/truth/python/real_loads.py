# SPDX-License-Identifier: Apache-2.0
"""Real programs of Debian's Python: how many of their samples have all Python
frames, and what perf shows of the same."""

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import builds
import captures
import cases

sys.path.insert(0, os.path.join(builds.SOURCE, "tests", "truth"))

import tools  # noqa: E402

PYTHON = "/usr/bin/python3"
PORT = 18461
URL = "http://127.0.0.1:%d/" % PORT
HERTZ = 997
PERF_HERTZ = 199


class Missing(Exception):
    """What a load needs is not installed."""


@dataclasses.dataclass
class Load:
    """A command that runs until it is stopped."""
    command: list
    requests: bool = False  # it is a server, and ab sends them


def workload(name):
    return os.path.join(builds.WORKLOADS, name)


def need(*programs, module=None):
    for program in programs:
        if shutil.which(program) is None:
            raise Missing("no %s is installed" % program)
    if module and subprocess.run([PYTHON, "-c", "import " + module],
                                 check=False, capture_output=True).returncode:
        raise Missing("no Python module " + module)


def django():
    """Django under gunicorn with two workers, and ab."""
    need("gunicorn", "ab", module="django")
    return Load(["gunicorn", "-w", "2", "-b", "127.0.0.1:%d" % PORT, "--chdir",
                 builds.WORKLOADS, "django_app:application"], requests=True)


def flask():
    """Flask under uwsgi with two workers, and ab."""
    need("uwsgi-core", "ab", module="flask")
    return Load(["uwsgi-core", "--plugin", "python3", "--http-socket",
                 "127.0.0.1:%d" % PORT, "--wsgi-file",
                 workload("flask_app.py"), "--processes", "2", "--master",
                 "--disable-logging"], requests=True)


def again(*command):
    return Load(["/bin/sh", "-c", "while :; do %s >/dev/null 2>&1; done" %
                 " ".join(command)])


def pip():
    need(module="pip")
    return again(PYTHON, "-m", "pip", "list")


def pytest():
    need(module="pytest")
    return again(PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                 workload("pytest_load.py"))


def numpy():
    need(module="numpy")
    return Load([PYTHON, workload("numpy_load.py"), "3600"])


def gdb():
    """Python within gdb."""
    need("gdb")
    return Load(["gdb", "-nx", "-batch", "-ex",
                 "python import sys; sys.argv = ['', '3600']; "
                 "exec(compile(open(%r).read(), 'known.py', 'exec'))" %
                 os.path.join(builds.SOURCE, "tests", "e2e", "workloads",
                              "known_python.py")])


ALL = [django, flask, pip, pytest, numpy, gdb]


@contextlib.contextmanager
def group(command, cgroup=None):
    """A command whose processes all end with it, in that cgroup."""
    def begin():
        captures.die_with_parent()
        if cgroup:
            with open(cgroup + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))

    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=begin,
        env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_server(seconds=20):
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(URL, timeout=5) as answer:
                return answer.read()
        except OSError as error:
            if time.monotonic() > end:
                raise captures.Failure("no answer: %s" % error) from None
        time.sleep(0.1)


@contextlib.contextmanager
def running(load):
    """The cgroup that it runs in, without what sends requests."""
    with contextlib.ExitStack() as stack:
        cgroup = stack.enter_context(tools.cgroup())
        stack.enter_context(group(load.command, cgroup))
        if load.requests:
            wait_for_server()
            stack.enter_context(group(["ab", "-q", "-c", "4", "-t", "3600",
                                       "-n", "100000000", URL]))
        time.sleep(1)
        yield cgroup


class Counts:
    """Samples in Python code, and what they show of it."""

    def __init__(self):
        self.inside = 0
        self.all_frames = 0
        self.torn = 0
        self.unnamed = 0
        self.without = cases.Wrong("not all")

    def add(self, stack):
        if not stack.is_inside:
            return
        self.inside += stack.count
        self.torn += stack.count * stack.is_torn
        self.unnamed += stack.count * stack.has_unnamed
        self.all_frames += stack.count * stack.has_all_frames
        if not stack.has_all_frames:
            self.without.add(cases.why_incomplete(stack), stack.count)


def of_ksym(context, load):
    counts = Counts()
    with running(load) as cgroup:
        capture = captures.capture(
            context.profiler, ["-F", HERTZ, "--cgroup", cgroup,
                               *context.options, context.load_seconds])
    for stack in capture.stacks:
        counts.add(stack)
    return counts


def of_perf(context, load, directory):
    """Samples in Python code, and those with the name of a Python function."""
    data = os.path.join(directory, "perf.data")
    with running(load) as cgroup:
        subprocess.run(
            ["perf", "record", "-q", "-e", "cpu-clock:u", "-G",
             os.path.relpath(cgroup, os.path.dirname(cgroup)), "-F",
             str(PERF_HERTZ), "-a", "--call-graph", "dwarf,16384", "-o", data,
             "--", "sleep", str(min(context.load_seconds, 5))], check=True,
            capture_output=True, timeout=120)
    done = subprocess.run(
        ["perf", "script", "-i", data, "--no-inline", "--max-stack", "1024",
         "-F", "ip,sym"], check=True, capture_output=True, timeout=600)
    inside = named = 0
    for frames in done.stdout.decode("utf-8", "replace").split("\n\n"):
        if any(name in frames for name in (*captures.EVALUATES,
                                           captures.MODULE_CODE)):
            inside += 1
            named += " py::" in frames
    return inside, named


HEADER = ("", "in Python", "all frames %", "torn %", "unnamed %",
          "perf: in Python", "perf: named %")


def print_row(cells):
    print(("%-28s" % cells[0] + "".join(
        "%*s" % (len(column) + 2, cell)
        for cell, column in zip(cells[1:], HEADER[1:]))).rstrip(), flush=True)


def percent(part, whole):
    return "%.2f" % (100 * part / whole) if whole else "-"


def measure(context, make):
    """Prints a row; whether the figures are good."""
    counts = of_ksym(context, make())
    cells = [make.__name__, counts.inside,
             percent(counts.all_frames, counts.inside),
             percent(counts.torn, counts.inside),
             percent(counts.unnamed, counts.inside)]
    good = counts.inside and counts.all_frames >= 0.995 * counts.inside
    cells[2] += "" if good else " !"
    if shutil.which("perf"):
        with tempfile.TemporaryDirectory(prefix="ksym-truth-") as directory:
            inside, named = of_perf(context, make(), directory)
        cells += [inside, percent(named, inside)]
    print_row(cells)
    for note in [] if good else counts.without.notes():
        print("  " + note)
    return good


def print_table(context):
    """Whether all are good."""
    print("\nreal programs of Debian's Python")
    print_row(HEADER)
    good = True
    for make in ALL:
        try:
            good = measure(context, make) and good
        except Missing as reason:
            print("%-28s left out: %s" % (make.__name__, reason))
        except (captures.Failure, OSError,
                subprocess.SubprocessError) as error:
            print("%-28s %s" % (make.__name__, error))
            good = False
    return good
