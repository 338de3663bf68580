# SPDX-License-Identifier: Apache-2.0
"""Captures of a workload, and the stacks in them."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import tempfile
import time

# Names of frames that stand for what is not shown.
TORN = "[torn]"
UNNAMED = "[python]"
# Where a thread's Python frames begin.
ROOTS = {"<module>", "Thread._bootstrap", "_bootstrap"}
# An interpreter's own function that evaluates a frame or a module.
EVALUATES = ("_PyEval_EvalFrameDefault", "_PyEval_EvalFrame")
MODULE_CODE = "PyEval_EvalCode"
PR_SET_PDEATHSIG = 1
# Native frames of a stack, at the most: an evaluation has up to four.
DEPTH = 512
LIMIT = "/proc/sys/kernel/perf_event_max_sample_rate"


class Failure(Exception):
    """A program did not do what it should."""


class Stack:
    """Of a report: frames root first, how many samples had it, whose."""

    def __init__(self, frames, stack):
        self.frames = [frames[i] for i in stack["user"]]
        self.count = stack["count"]
        self.comm = stack["comm"]
        self.pid = stack["pid"]
        self.python = [frame for frame in self.frames
                       if frame["kind"] == "python" and "function" in frame]
        names = {frame["name"] for frame in self.frames}
        self.is_torn = TORN in names
        self.has_unnamed = UNNAMED in names
        # Its report says that native frames are missing at its root.
        self.is_cut = stack["user_state"] != "whole"

    @property
    def has_all_frames(self):
        """As far as the stack itself tells: no evaluation shows no frame of its
        own but the innermost, which may not have begun."""
        if self.is_torn or self.has_unnamed or not self.python:
            return False
        return not any(self._is_evaluation(i)
                       for i in range(self._last_python()))

    @property
    def is_complete(self):
        """The same down to the module."""
        return self.has_all_frames and self.python[0]["function"] in ROOTS

    def _last_python(self):
        return max(i for i, frame in enumerate(self.frames)
                   if frame["kind"] == "python")

    def _is_evaluation(self, i):
        return self.frames[i].get("name", "").startswith(EVALUATES)

    @property
    def is_inside(self):
        """The sample is of Python code, shown or not."""
        return bool(self.python) or self.is_torn or self.has_unnamed or any(
            self._is_evaluation(i) or frame["name"] == MODULE_CODE
            for i, frame in enumerate(self.frames))

    def between(self):
        """Each Python frame but the last, the next one, and the native frames
        in between."""
        last, native = None, []
        for frame in self.frames:
            if frame["kind"] == "python" and "function" in frame:
                if last is not None:
                    yield last, frame, native
                last, native = frame, []
            else:
                native.append(frame)


class Capture:
    """A report of the profiler."""

    def __init__(self, document, warnings):
        frames = document["frames"]
        self.stacks = [Stack(frames, stack) for stack in document["stacks"]]
        self.samples = document["metadata"]["samples"]
        self.warnings = warnings

    def total(self, wanted=lambda stack: True):
        return sum(stack.count for stack in self.stacks if wanted(stack))

    def share(self, wanted, among=lambda stack: True):
        total = self.total(among)
        if not total:
            return None
        return self.total(lambda s: among(s) and wanted(s)) / total


def allow_rate(hertz):
    with open(LIMIT, encoding="ascii") as file:
        if int(file.read()) >= hertz:
            return
    with open(LIMIT, "w", encoding="ascii") as file:
        file.write(str(hertz))


def die_with_parent():
    """In a child before exec: nothing outlives a run that is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def running(command):
    """A workload that is ready; gone in the end."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        preexec_fn=die_with_parent)
    try:
        line = process.stdout.readline()
        if line != "ready\n":
            raise Failure("%s: ended before it was ready" % " ".join(command))
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


class Running:
    """A running profiler, whose report is read in the end."""

    def __init__(self, profiler, arguments):
        self._directory = tempfile.TemporaryDirectory(prefix="ksym-truth-")
        self._path = os.path.join(self._directory.name, "report")
        self._process = subprocess.Popen(
            [profiler, "--format", "json", "--lines", "-U", "-o", self._path,
             "--max-stack-depth", str(DEPTH), *map(str, arguments)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=die_with_parent)

    def finish(self, timeout=600):
        with self._directory:
            try:
                _, said = self._process.communicate(timeout=timeout)
            finally:
                self._process.kill()
                self._process.wait()
            if self._process.returncode != 0:
                raise Failure("ksym-profile: status %d: %s" % (
                    self._process.returncode, said.strip()[-400:]))
            with open(self._path, encoding="utf-8") as file:
                document = json.load(file)
        return Capture(document, [line for line in said.splitlines()
                                  if "warning:" in line])


def capture(profiler, arguments):
    """Runs the profiler to its end."""
    return Running(profiler, arguments).finish()


def attached(profiler, command, seconds, hertz, *options):
    """A capture of a workload that runs already."""
    allow_rate(hertz)
    with running(command) as process:
        time.sleep(0.2)
        return capture(profiler, ["-F", hertz, "-p", process.pid, *options,
                                  seconds])


def begun(profiler, idle, command, seconds, hertz, *options):
    """A capture of all processes, and the workload that began meanwhile: the
    interpreter was there before, in the process `idle`."""
    allow_rate(hertz)
    with running(idle):
        profiling = Running(profiler, ["-F", hertz, *options, seconds + 2])
        time.sleep(1.5)
        with running(command) as process:
            return profiling.finish(), process.pid
