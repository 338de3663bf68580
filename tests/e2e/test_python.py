# SPDX-License-Identifier: Apache-2.0
"""Python's frames among the native ones, judged by a program whose calls are
known."""

import importlib.util
import json
import os
import re
import subprocess

import harness
import reports

WORKLOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "workloads", "known_python.py")
PYTHON = "/usr/bin/python3"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"
PYTHON_FRAME = re.compile(r"^(.*) \(([^()]*)\)$")
ROOTS = {"<module>", "Thread._bootstrap"}
# Two threads that want the global lock all the time, and one that waits for
# another one, with a limit, and hardly ever for that.
LOCK_PROGRAM = """
import threading
lock = threading.Lock()
lock.acquire()
def busy():
    while True: pass
def other_lock():
    while True: lock.acquire(timeout=1)
for work in (busy, busy, other_lock):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
threading.Event().wait(30)
"""


def edges():
    spec = importlib.util.spec_from_file_location("known_python", WORKLOAD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EDGES


class Stack:
    """A folded stack, root first: its frames, and those of Python alone."""

    def __init__(self, frames, count):
        self.frames = frames
        self.count = count
        self.python = [(i, match.group(1)) for i, frame in enumerate(frames)
                       if (match := PYTHON_FRAME.match(frame))]

    def names(self):
        return [name for _, name in self.python]

    def between(self, caller, callee):
        """The native frames between each such call."""
        for (i, first), (j, second) in zip(self.python, self.python[1:]):
            if (first, second) == (caller, callee):
                yield self.frames[i + 1:j]


class PythonTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        if not os.path.exists(PYTHON):
            self.skipTest("no " + PYTHON)

    def script(self, name, text):
        """A file with a program."""
        path = self.path(name)
        harness.write_text(path, text)
        return path

    def start(self, *command):
        command = command or (PYTHON, WORKLOAD, "30")
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def stacks(self, *arguments, seconds=3, process=None):
        process = process or self.start()
        run = self.profile("-F", 997, "-p", process.pid, *arguments, seconds)
        self.assertEqual(run.status, 0, str(run))
        folded = reports.Folded(run.stdout)
        return [Stack(frames[1:], count) for frames, count in folded.lines]

    def assert_known(self, stacks):
        """No call that the program does not make."""
        known = edges()
        for stack in stacks:
            names = stack.names()
            if not names:
                continue
            self.assertIn(names[0], ROOTS, stack.frames)
            for caller, callee in zip(names, names[1:]):
                self.assertIn(callee, known.get(caller, set()), stack.frames)

    def share(self, stacks, wanted):
        total = sum(stack.count for stack in stacks)
        return sum(s.count for s in stacks if wanted(s)) / max(total, 1)

    def test_calls(self):
        # Every call that is shown is one that the program makes, each kind of
        # call is seen but one that takes no time, and all samples have their
        # frames down to the root but those that were taken before the
        # interpreter was known.
        stacks = self.stacks("-U")
        self.assert_known(stacks)
        self.assertGreater(self.share(stacks, lambda s: s.names()), 0.8)
        seen = {name for stack in stacks for name in stack.names()}
        self.assertLessEqual(set(edges()) - seen, {"_compile"})

    def test_order(self):
        # Native frames are between the Python ones where C called Python, and
        # nowhere else; the interpreter's own loop is not shown.
        stacks = self.stacks("-U")
        calls = [c for s in stacks for c in s.between("by_ctypes", "compare")]
        self.assertTrue(calls)
        for call in calls:
            self.assertTrue(any("qsort" in frame for frame in call), call)
        for stack in stacks:
            for call in stack.between("recurse", "recurse"):
                self.assertEqual(call, [])
            for call in stack.between("by_sort", "sort_key"):
                self.assertTrue(call)
        deep = max(stack.names().count("recurse") for stack in stacks)
        # One in 61 of its samples is the deepest, and there may be few.
        self.assertLessEqual(deep, 61)
        self.assertGreater(deep, 50)
        loops = self.share(
            stacks,
            lambda s: s.names() and "_PyEval_EvalFrameDefault" in s.frames)
        self.assertLess(loops, 0.05)

    def test_waits_for_lock(self):
        # Threads that wait for the lock say so, and none that waits for
        # anything else.
        if not harness.is_since(5, 8):
            self.skipTest("needs Linux 5.8")
        program = self.script("lock.py", LOCK_PROGRAM)
        process = self.start(PYTHON, program)
        run = self.profile("--off-cpu", "--parked", "-F", 997, "-p",
                           process.pid, 2)
        self.assertEqual(run.status, 0, str(run))
        counts = {}
        for frames, count in reports.Folded(run.stdout).lines:
            for work in ("busy", "other_lock"):
                if work + " (lock.py)" in frames and (
                        "[blocked: futex]" in frames):
                    counts.setdefault(work, [0, 0])[
                        "[waits for the GIL]" in frames] += count
        busy, other = counts["busy"], counts["other_lock"]
        # A thread that gave the lock to another one waits without a limit until
        # that one has it, and whoever got the other lock wants the global one,
        # too: both are long where the machine is short of CPUs.
        self.assertGreater(busy[1], 2 * busy[0], counts)
        self.assertGreater(other[0], 4 * other[1], counts)

    def test_without_lock(self):
        # A thread that gave the lock away has its frames.
        stacks = self.stacks("-U")
        inside = [s for s in stacks if "without_lock" in s.names()]
        self.assertGreater(sum(s.count for s in inside), 100)
        for stack in inside:
            self.assertEqual(stack.names(),
                             ["Thread._bootstrap", "Thread._bootstrap_inner",
                              "Thread.run", "without_lock"])

    def test_first_samples(self):
        # A program that runs already has its frames from the first sample on.
        commands = [(PYTHON, WORKLOAD, "30")]
        if os.path.exists(LIBRARY):
            commands.append((os.path.join(harness.WORKLOADS, "embedded"),
                             LIBRARY, "40", WORKLOAD, "30"))
        for command in commands:
            stacks = self.stacks("-U", process=self.start(*command),
                                 seconds=0.2)
            self.assert_known(stacks)
            total = sum(stack.count for stack in stacks)
            self.assertGreater(total, 10)
            # A thread that was in no code of the library yet may lack them.
            nameless = sum(s.count for s in stacks if not s.names())
            self.assertLessEqual(nameless, max(3, 0.05 * total))

    def test_library(self):
        # A program that is not called python has an interpreter from a library,
        # whose key of thread states is not among the first ones.
        if not os.path.exists(LIBRARY):
            self.skipTest("no " + LIBRARY)
        process = self.start(os.path.join(harness.WORKLOADS, "embedded"),
                             LIBRARY, "40", WORKLOAD, "30")
        stacks = self.stacks("-U", process=process)
        self.assert_known(stacks)
        self.assertGreater(self.share(stacks, lambda s: s.names()), 0.8)
        self.assertTrue(any("without_lock" in s.names() for s in stacks))

    def test_two_interpreters(self):
        # A library with an interpreter that nobody uses is in nobody's way.
        if not os.path.exists(LIBRARY):
            self.skipTest("no " + LIBRARY)
        program = self.script("two.py", (
            "import ctypes, sys\n"
            "ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)\n"
            "def busy():\n"
            "    while True: pass\n"
            "print('ready', flush=True)\n"
            "busy()\n"))
        process = self.start(PYTHON, program, LIBRARY)
        stacks = self.stacks("-U", process=process, seconds=2)
        self.assertGreater(
            self.share(stacks, lambda s: s.names() == ["<module>", "busy"]),
            0.7)

    def run_sub_interpreter(self, body):
        program = self.script("sub.py", (
            "import _xxsubinterpreters as interpreters\n"
            "def outside():\n"
            f"    interpreters.run_string(interpreters.create(), {body!r})\n"
            "print('ready', flush=True)\n"
            "outside()\n"))
        process = self.start(PYTHON, program)
        return self.stacks("-U", process=process, seconds=2)

    def test_sub_interpreter(self):
        # A thread has the frames of the interpreter that it runs, and of the
        # one that this one was called from.
        stacks = self.run_sub_interpreter(
            "def busy():\n"
            "    while True: pass\n"
            "busy()")
        self.assertGreater(
            self.share(stacks, lambda s: s.names() == [
                "<module>", "outside", "<module>", "busy"]), 0.95)

    def test_sub_interpreter_without_lock(self):
        # Long data are hashed without the lock.
        stacks = self.run_sub_interpreter(
            "import hashlib\n"
            "def hashes():\n"
            "    data = b'x' * 100_000_000\n"
            "    while True: hashlib.sha256(data)\n"
            "hashes()")
        self.assertGreater(
            self.share(stacks, lambda s: s.names() == [
                "<module>", "outside", "<module>", "hashes"]), 0.95)

    def test_steps(self):
        # What kernels before 5.17 run finds the same.
        stacks = self.stacks("-U", "--unwind-program", "steps")
        self.assert_known(stacks)
        self.assertGreater(self.share(stacks, lambda s: s.names()), 0.8)

    def test_lines(self):
        # Lines are those of the calls. A function begins at its own.
        stacks = self.stacks("-U", "--lines")
        with open(WORKLOAD, encoding="utf-8") as file:
            source = file.read().splitlines()
        lines = {}
        for stack in stacks:
            for i, name in stack.python:
                place = PYTHON_FRAME.match(stack.frames[i]).group(2)
                if place.startswith("known_python.py:"):
                    lines.setdefault(name, set()).add(
                        source[int(place.split(":")[1]) - 1].strip())
        self.assertEqual(lines["by_sort"] - {"def by_sort():"},
                         {"return sorted(range(40), key=sort_key)"})
        self.assertEqual(lines["sort_key"] - {"def sort_key(number):"},
                         {"return leaf(number)"})
        self.assertIn("main(float(sys.argv[1]))", lines["<module>"])

    def test_too_deep(self):
        # Frames beyond the bound are marked and counted.
        program = self.script("deep.py", (
            "import sys\n"
            "sys.setrecursionlimit(10000)\n"
            "def deep(n):\n"
            "    if n: return deep(n - 1)\n"
            "    print('ready', flush=True)\n"
            "    while True: pass\n"
            "deep(2000)\n"))
        process = self.start(PYTHON, program)
        run = self.profile("-F", 997, "-U", "-v", "-p", process.pid, 1)
        self.assertEqual(run.status, 0, str(run))
        counts = [0, 0]
        for frames, count in reports.Folded(run.stdout).lines:
            counts["[torn]" in frames] += count
        self.assertGreater(counts[1], 10 * counts[0])
        self.assertRegex(run.stderr, r", 0 torn, [1-9]\d* cut off, ")

    def test_options(self):
        # All native frames stay where that is asked for, and nothing is looked
        # for where that is.
        process = self.start()
        stacks = self.stacks("-U", "--runtime-frames", "all", process=process,
                             seconds=2)
        both = self.share(
            stacks,
            lambda s: s.names() and "_PyEval_EvalFrameDefault" in s.frames)
        self.assertGreater(both, 0.9)
        self.assert_known(stacks)
        stacks = self.stacks("-U", "--runtimes", "none", process=process,
                             seconds=2)
        self.assertEqual(self.share(stacks, lambda s: s.names()), 0)

    def test_formats_and_replay(self):
        # JSON says what a frame is, and a raw capture carries the names.
        process = self.start()
        raw = self.path("raw")
        run = self.profile("-F", 997, "-p", process.pid, "-U", "--raw", raw, 2)
        self.assertEqual(run.status, 0, str(run))
        again = self.profile("--replay", raw)
        self.assertEqual(again.stdout, run.stdout)
        report = self.profile("--replay", raw, "--format", "json")
        frames = {frame.get("function"): frame
                  for frame in json.loads(report.stdout)["frames"]
                  if frame["kind"] == "python"}
        method = frames["Thing.method"]
        self.assertEqual(method["name"], "Thing.method (known_python.py)")
        self.assertEqual(method["file"], WORKLOAD)
        self.assertGreaterEqual(method["line"], method["first_line"])
        self.assertIn("größe", frames)

    def short_lives(self, command):
        """Samples of each of ten processes that live for some 50 ms: those
        without names, and with names."""
        program = self.script("short.py", (
            "import time\n"
            "def short_work():\n"
            "    end = time.process_time() + 0.05\n"
            "    while time.process_time() < end: pass\n"
            "short_work()\n"))
        run = self.profile(
            "-F", 997, "-U", "--by", "pid", "--", "/bin/sh", "-c",
            "for i in 1 2 3 4 5 6 7 8 9 10; do %s -S %s; done" %
            (command, program))
        self.assertEqual(run.status, 0, str(run))
        by_process = {}
        for frames, count in reports.Folded(run.stdout).lines:
            # The command is of the profiler until it has become the shell.
            if not frames[0].startswith(("sh", "ksym-profile")):
                named = "short_work (short.py)" in frames
                counts = by_process.setdefault(frames[0], [0, 0])
                counts[named] += count
                self.assertNotIn("[python]", frames)
        return by_process

    def test_short_lives(self):
        # They have names, but for the first one, which nobody knew.
        by_process = self.short_lives(PYTHON)
        good = [pid for pid, (other, named) in by_process.items() if named > 10]
        self.assertGreaterEqual(len(good), len(by_process) - 2, by_process)

    def test_short_lives_of_library(self):
        # Where an interpreter is that may be anywhere is known at once.
        if not os.path.exists(LIBRARY):
            self.skipTest("no " + LIBRARY)
        embedded = os.path.join(harness.WORKLOADS, "embedded")
        self.start(embedded, LIBRARY, "40", WORKLOAD, "30")
        by_process = self.short_lives("%s %s 40" % (embedded, LIBRARY))
        self.assertEqual(len(by_process), 10, by_process)
        # One of them may be seen first where its library's code is not, and
        # has a list before its interpreter is told of.
        whole = [counts for counts in by_process.values() if counts[1] > 30]
        self.assertGreaterEqual(len(whole), 9, by_process)


if __name__ == "__main__":
    harness.main()
