# SPDX-License-Identifier: Apache-2.0
"""V8's frames among the native ones, judged by a program whose calls are
known. KSYM_NODES has more programs to try than the one that is installed,
separated by colons."""

import collections
import itertools
import json
import os
import re
import shutil
import subprocess

import harness
import reports

WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                         "workloads")
PROGRAM = os.path.join(WORKLOADS, "known_node.js")
CHURN = os.path.join(WORKLOADS, "churn_node.js")
FRAME = re.compile(r"^(.*) \(known_node\.js(?::(\d+))?\)$")
SCRIPT_FRAME = re.compile(
    r"\[javascript\]|.* \((?:[^()]*\.m?js|node:[^()]*)(?::\d+)?\)")
# (module (import "e" "i" (func (param i32) (result i32)))
#   (func (export "f") (param i32) (result i32) (local i32)
#     (loop (local.set 1 (i32.add (local.get 1) (local.get 0)))
#       (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
#     (local.get 1)))
WASM_PROGRAM = """
const bytes = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0,
  1, 6, 1, 0x60, 1, 0x7f, 1, 0x7f,
  2, 7, 1, 1, 101, 1, 105, 0, 0,
  3, 2, 1, 0,
  7, 5, 1, 1, 102, 0, 1,
  10, 27, 1, 25, 1, 1, 0x7f,
  3, 0x40, 0x20, 1, 0x20, 0, 0x6a, 0x21, 1,
  0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x20, 1, 0x0b]);
const module_ = new WebAssembly.Module(bytes);
const f = new WebAssembly.Instance(module_, {e: {i: (n) => n}}).exports.f;
function callsWasm() { return f(1000); }
process.stdout.write('ready\\n');
const end = Date.now() + 20000;
while (Date.now() < end) callsWasm();
"""
# The hash is the module's.
WASM_FRAME = re.compile(r"^wasm-function\[1\] \([0-9a-f]+\)$")
# Which functions a function calls, through what is not JavaScript or directly.
EDGES = {
    "(anonymous)": {"turn"},
    "turn": {"all"},
    "all": {"bySort", "byMap", "recurse", "byClass", "byClosure",
            "byGenerator", "byReplace", "byAsync", "größe", "大きさ"},
    "bySort": {"compare"},
    "compare": {"leaf"},
    "byMap": {"mapped", "(anonymous)"},
    "mapped": {"leaf"},
    "recurse": {"recurse", "leaf"},
    "byClass": {"Thing", "method", "still"},
    "Thing": {"leaf"},
    "method": {"#hidden"},
    "#hidden": {"leaf"},
    "still": {"leaf"},
    "byClosure": {"inner"},
    "inner": {"leaf"},
    "byGenerator": {"numbers"},
    "numbers": {"leaf"},
    "byReplace": {"replacer"},
    "replacer": {"leaf"},
    "byAsync": {"leaf"},
    "größe": {"leaf"},
    "大きさ": {"leaf"},
    "leaf": set(),
}
# The module, what timers call, and what goes on behind an `await`.
ROOTS = {"(anonymous)", "turn", "byAsync"}
# The line of its own that each function is called in, by caller and callee.
LINES = {
    ("turn", "all"): "for (let i = 0; i < 10; i++) all();",
    ("all", "byMap"): "byMap();",
    ("byMap", "mapped"):
        "return Array.from({length: 20}, (_, i) => i).map(mapped);",
    ("recurse", "recurse"): "return recurse(depth - 1) + 1;",
    ("recurse", "leaf"): "if (depth === 0) return leaf(1);",
    ("method", "#hidden"): "method() { return this.#hidden() + 1; }",
    ("numbers", "leaf"):
        "function* numbers() { for (let i = 0; i < 20; i++) yield leaf(i); }",
}


def nodes():
    found = [path for path in os.environ.get("KSYM_NODES", "").split(":")
             if path]
    installed = shutil.which("node")
    return found or ([installed] if installed else [])


class Stack:
    """A folded stack, root first: its frames, and those of the program."""

    def __init__(self, frames, count):
        self.frames = frames
        self.count = count
        matches = [FRAME.match(frame) for frame in frames]
        self.known = [(match.group(1), match.group(2))
                      for match in matches if match]

    def names(self):
        return [name for name, _ in self.known]


class NodeTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        if not nodes():
            self.skipTest("no node")

    def start_node(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def stacks_of(self, node, *arguments, flags=(), seconds=3):
        process = self.start_node(node, *flags, PROGRAM, "30")
        run = self.profile("-F", 997, "-U", "-p", process.pid, *arguments,
                           seconds)
        process.kill()
        folded = reports.Folded(run.stdout)
        return [Stack(frames[1:], count) for frames, count in folded.lines]

    def assert_known(self, stacks):
        """No call that the program does not make."""
        for stack in stacks:
            names = stack.names()
            if not names or "[javascript]" in stack.frames:
                continue
            # The root may be missing of the first ones.
            if not stack.frames[0].startswith("[truncated"):
                self.assertIn(names[0], ROOTS, stack.frames)
            for caller, callee in zip(names, names[1:]):
                self.assertIn(callee, EDGES.get(caller, set()), stack.frames)

    def share(self, stacks, wanted):
        """Of the samples in which JavaScript runs: there are others of the
        garbage collector's tasks and threads."""
        entered = [stack for stack in stacks
                   if any("JSEntry" in frame for frame in stack.frames)]
        total = sum(stack.count for stack in entered)
        self.assertGreater(total, 20)
        return sum(s.count for s in entered if wanted(s)) / total

    def test_calls(self):
        # Every call that is shown is one that the program makes, and nearly all
        # samples have their functions down to the root. In copied stacks, which
        # there are until node's table is there, fewer have.
        for node in nodes():
            with self.subTest(node=node):
                stacks = self.stacks_of(node, seconds=6)
                self.assert_known(stacks)
                self.assertGreater(self.share(stacks, lambda s: s.names()),
                                   0.9)
                self.assertLess(
                    self.share(stacks, lambda s: "[javascript]" in s.frames),
                    0.02)
                seen = {name for stack in stacks for name in stack.names()}
                # Those that take no time of their own may be missed.
                self.assertLessEqual(set(EDGES) - seen,
                                     {"replacer", "byReplace", "byMap",
                                      "(anonymous)"})
                deep = max(s.names().count("recurse") for s in stacks)
                self.assertLessEqual(deep, 51)
                self.assertGreater(deep, 40)

    def test_lines(self):
        # Lines of callers are those of the calls, also of inlined ones.
        self.check_lines()

    def test_baseline_lines(self):
        # The same where all functions have baseline code.
        self.check_lines("--always-sparkplug", "--no-opt")

    def check_lines(self, *flags):
        with open(PROGRAM, encoding="utf-8") as file:
            source = file.read().splitlines()
        for node in nodes():
            with self.subTest(node=node):
                stacks = self.stacks_of(node, "--lines", flags=flags)
                self.assert_known(stacks)
                seen = {}
                for stack in stacks:
                    for (caller, line), (callee, _) in zip(stack.known,
                                                           stack.known[1:]):
                        if (caller, callee) in LINES and line:
                            text = source[int(line) - 1].strip()
                            seen.setdefault((caller, callee), set()).add(text)
                self.assertEqual(seen, {call: {text} for call, text
                                        in LINES.items() if call in seen})
                self.assertGreater(len(seen), len(LINES) - 2)

    def test_steps(self):
        # What kernels before 5.17 run finds the same.
        stacks = self.stacks_of(nodes()[0], "--unwind-program", "steps")
        self.assert_known(stacks)
        self.assertGreater(self.share(stacks, lambda s: s.names()), 0.9)

    def test_functions_that_go(self):
        # Functions that are made and dropped have their own names or none.
        process = self.start_node(nodes()[0], CHURN, "30")
        run = self.profile("-F", 997, "-U", "-p", process.pid, 5)
        made = re.compile(r"^made_(\d+)$")
        part = re.compile(r"^part_(\d+)$")
        named = 0
        for frames, count in reports.Folded(run.stdout).lines:
            for caller, callee in zip(frames, frames[1:]):
                of_caller, of_callee = made.match(caller), part.match(callee)
                # A frame that is only being made has the name of what makes
                # it.
                if not of_callee or caller in (
                        "[javascript]", "Builtins_InterpreterEntryTrampoline"):
                    continue
                self.assertTrue(of_caller, frames)
                self.assertEqual(of_caller.group(1), of_callee.group(1))
                named += count
        self.assertGreater(named, 100)

    def test_short_life(self):
        # A process of 300 ms has names, but for the first ones: the table of the
        # program takes as long.
        program = self.path("short.js")
        harness.write_text(program, (
            "function shortWork() {\n"
            "  const end = Date.now() + 250;\n"
            "  let n = 0;\n"
            "  while (Date.now() < end) n += Math.sqrt(n);\n"
            "  return n;\n"
            "}\n"
            "shortWork();\n"))
        node = nodes()[0]
        run = self.profile("-F", 997, "-U", "--by", "pid", "--", "/bin/sh",
                           "-c", "for i in 1 2 3 4 5 6; do %s %s; done" %
                           (node, program))
        named = {}
        for frames, count in reports.Folded(run.stdout).lines:
            if "shortWork (short.js)" in frames:
                named[frames[0]] = named.get(frames[0], 0) + count
        self.assertGreaterEqual(len(named), 2, named)
        self.assertGreater(sum(named.values()), 100)

    def test_short_lives(self):
        # So do nearly all samples of JavaScript in many of them, where the
        # program's tables are there.
        node = nodes()[0]
        text = ("function inner(n) { return Math.sqrt(n) + 1; } "
                "function shortWork() { const end = Date.now() + 250; "
                "let n = 0; while (Date.now() < end) n += inner(n); "
                "return n; } shortWork();")
        self.start_node(node, PROGRAM, "30")
        run = self.profile("-F", 997, "-U", "--by", "pid", "--", "/bin/sh",
                           "-c", "for i in 1 2 3 4 5 6; do %s -e '%s'; done" %
                           (node, text))
        by_process = {}
        for frames, count in reports.Folded(run.stdout).lines:
            if any("JSEntry" in frame for frame in frames):
                pid = int(frames[0].rsplit("-", 1)[1])
                counts = by_process.setdefault(pid, {True: 0, False: 0})
                counts["[javascript]" not in frames] += count
        # The first one or two may begin before the tables are there, and each
        # has some samples of its start: one in twenty on a calm machine.
        later = [by_process[pid] for pid in sorted(by_process)[2:]]
        named, nameless = (sum(counts[is_named] for counts in later)
                           for is_named in (True, False))
        self.assertGreater(named, 50)
        self.assertLess(nameless, 0.1 * named, by_process)

    def test_webassembly(self):
        # A function of WebAssembly that JavaScript calls has its number, which
        # counts those that are imported.
        program = self.path("calls_wasm.js")
        harness.write_text(program, WASM_PROGRAM)
        for node in nodes():
            with self.subTest(node=node):
                # Optimized code may call it at once, without a frame for it.
                process = self.start_node(node, "--no-opt", program)
                # The first stacks are copied, and have no names for it: until
                # node's own table is there, which takes seconds where CPUs are
                # slow.
                run = self.profile("-F", 997, "-U", "-p", process.pid, 8)
                process.kill()
                stacks = [(frames, count) for frames, count
                          in reports.Folded(run.stdout).lines
                          if "callsWasm (calls_wasm.js)" in frames]
                named = sum(count for frames, count in stacks
                            if any(WASM_FRAME.match(frame)
                                   for frame in frames))
                total = sum(count for _, count in stacks)
                self.assertGreater(total, 50)
                self.assertGreater(named, 0.5 * total)

    def test_options(self):
        # All native frames stay where that is asked for, and nothing is looked
        # for where that is.
        node = nodes()[0]
        stacks = self.stacks_of(node, "--runtime-frames", "all", seconds=2)
        self.assert_known(stacks)
        self.assertGreater(self.share(stacks, lambda s: s.names()), 0.9)
        stacks = self.stacks_of(node, "--runtimes", "none", seconds=2)
        self.assertEqual(self.share(stacks, lambda s: s.names()), 0)

    def check_replayed(self, live, again):
        """The same stacks; a function whose name came when the first of them
        were out has it in all of them, and none loses its name."""
        def stacks(text):
            found = collections.Counter()
            for line in text.splitlines():
                stack, count = line.rsplit(" ", 1)
                frames = ("script" if SCRIPT_FRAME.fullmatch(frame) else frame
                          for frame in stack.split(";"))
                # What is inlined into a function is known with its name.
                found[tuple(frame for frame, _ in itertools.groupby(frames))
                      ] += int(count)
            return found
        self.assertEqual(stacks(again), stacks(live))
        self.assertLessEqual(again.count("[javascript]"),
                             live.count("[javascript]"))

    def test_formats_and_replay(self):
        # JSON says what a frame is, and a raw capture carries the names.
        process = self.start_node(nodes()[0], PROGRAM, "30")
        # On an idle machine it soon runs compiled code alone.
        slow = self.start_node(nodes()[0], "--no-opt", PROGRAM, "30")
        raw = self.path("raw")
        run = self.profile("-F", 997, "-p",
                           "%d,%d" % (process.pid, slow.pid), "-U", "--raw",
                           raw, 2)
        self.check_replayed(run.stdout.decode(),
                            self.profile("--replay", raw).stdout.decode())
        report = self.profile("--replay", raw, "--format", "json")
        profile = json.loads(report.stdout)
        self.assert_kinds(profile)
        frames = {frame.get("function"): frame
                  for frame in profile["frames"]
                  if frame["kind"].startswith("javascript")}
        leaf = frames["leaf"]
        self.assertEqual(leaf["name"], "leaf (known_node.js)")
        self.assertEqual(leaf["file"], PROGRAM)
        self.assertGreaterEqual(leaf["line"], leaf["first_line"])
        self.assertIn("größe", frames)
        self.assertIn("大きさ", frames)

    def assert_kinds(self, profile):
        """Frames of JavaScript say how they ran, and lines are approximate at
        the leaf only."""
        frames = profile["frames"]
        self.assertIn("javascript-interpreted",
                      {frame["kind"] for frame in frames})
        self.assertTrue(any(frame.get("inlined") for frame in frames
                            if frame["kind"] == "javascript"))
        approximate = 0
        for stack in profile["stacks"]:
            marks = [bool(frames[place].get("approximate"))
                     for place in stack["user"]]
            self.assertEqual(marks, sorted(marks), stack)
            approximate += any(marks)
        self.assertGreater(approximate, 0)


if __name__ == "__main__":
    harness.main()
