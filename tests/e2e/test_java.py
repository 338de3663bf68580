# SPDX-License-Identifier: Apache-2.0
"""Java's methods in stacks, judged by a program whose calls are known."""

import os
import shutil
import subprocess

import harness
import reports

WORKLOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "workloads", "KnownJava.java")
JAVA = shutil.which("java")
JAVAC = shutil.which("javac")
PROGRAM = "KnownJava."
# The program's own methods and which they call, whatever is inlined.
EDGES = {
    "main": {"work"},
    "work": {"recurse", "privileged", "viaReflection"},
    "recurse": {"recurse", "apply"},
    "apply": {"lambda", "leaf"},
    "privileged": {"run"},
    "run": {"lambda"},
    "viaReflection": {"leaf"},
    "lambda": {"leaf"},
    "leaf": set(),
}


def short(name):
    """"recurse" for "KnownJava.recurse", "apply" for that of all classes, and
    nothing for methods of others."""
    if not name.startswith("KnownJava"):
        return None
    method = name.rpartition(".")[2]
    return "lambda" if method.startswith("lambda$") else method


class JavaTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        if not JAVA or not JAVAC:
            self.skipTest("no java and javac")
        subprocess.run([JAVAC, "-d", self.dir, WORKLOAD], check=True)

    def start_java(self, *options):
        process = subprocess.Popen(
            [JAVA, *options, "-cp", self.dir, "KnownJava", "60"],
            stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def stacks(self, *options, arguments=()):
        process = self.start_java(*options)
        # Before the JVM is known the stacks end in its code: the process is
        # sampled as one among those of the machine that were there before.
        run = self.profile("-F", 499, "-U", "-p", process.pid, *arguments, 4)
        return reports.Folded(run.stdout).lines

    def check(self, stacks):
        """Stacks through the program are whole, and no call is shown that it
        does not make."""
        of_program = [(frames, count) for frames, count in stacks
                      if any(f.startswith(PROGRAM) for f in frames)]
        total = sum(count for _, count in stacks)
        self.assertGreater(total, 100)
        ours = sum(count for _, count in of_program)
        self.assertGreater(ours / total, 0.6, stacks[:20])
        whole = 0
        for frames, count in of_program:
            names = [name for frame in frames if (name := short(frame))]
            if names[0] != "main":
                self.assertTrue(any("truncated" in f for f in frames), frames)
                continue
            if not any("truncated" in frame for frame in frames):
                # Down to where native code calls Java.
                at = frames.index("KnownJava.main")
                self.assertTrue(
                    any("JavaCalls::call_helper" in f for f in frames[:at]),
                    frames)
                whole += count
            for caller, callee in zip(names, names[1:]):
                self.assertIn(callee, EDGES[caller], frames)
        self.assertGreater(whole / ours, 0.95)
        return {name for frames, _ in of_program for name in frames}

    def test_default(self):
        seen = self.check(self.stacks())
        self.assertIn("KnownJava.main", seen)
        self.assertIn("KnownJava.work", seen)

    def test_interpreted(self):
        seen = self.check(self.stacks("-Xint"))
        for name in ("leaf", "recurse", "privileged", "viaReflection"):
            self.assertIn(PROGRAM + name, seen)
        self.assertIn("KnownJava$First.apply", seen)
        self.assertIn("KnownJava$Second.apply", seen)

    def test_first_compiler_alone(self):
        seen = self.check(self.stacks("-XX:TieredStopAtLevel=1"))
        self.assertIn("KnownJava.recurse", seen)

    def test_recursion_is_counted(self):
        # As deep as it is: 21 calls, where none is inlined.
        stacks = self.stacks("-Xint")
        deepest = max(frames.count("KnownJava.recurse")
                      for frames, _ in stacks)
        self.assertEqual(deepest, 21)

    def test_kinds(self):
        process = self.start_java("-Xint")
        document = self.document("-U", "-p", process.pid, "-F", 499, 3)
        kinds = {frame["kind"] for frame in document.frames
                 if frame["name"].startswith(PROGRAM)}
        self.assertEqual(kinds, {"java-interpreted"})

    def test_lines(self):
        process = self.start_java()
        document = self.document("-U", "-p", process.pid, "-F", 499, 3)
        ours = [frame for frame in document.frames
                if frame.get("function", "").startswith(PROGRAM)]
        self.assertEqual({frame["file"] for frame in ours}, {"KnownJava.java"})
        # main() calls work() in its last line, and is never where the CPU is.
        with open(WORKLOAD, encoding="ascii") as source:
            lines = source.read().splitlines()
        called = {lines[frame["line"] - 1].strip() for frame in ours
                  if frame["function"] == PROGRAM + "main"}
        self.assertEqual(called, {"work(Long.parseLong(arguments[0]));"})
        # A leaf's are near ones.
        leaves = [leaf for stack in document.stacks
                  if (leaf := document.user(stack)[-1])["kind"] == "java"
                  and leaf.get("line", 0) != 0]
        self.assertGreater(len(leaves), 0)
        for leaf in leaves:
            self.assertTrue(leaf.get("approximate"), leaf)
        self.assertTrue(any(frame.get("inlined") for frame in ours))
        run = self.profile("-U", "-p", process.pid, "--lines", "-f", "-a", 1)
        self.assertIn(b"KnownJava.main (KnownJava.java:60)_[", run.stdout)

    def test_short_processes(self):
        # They live for less than a tenth of a second, nearly all of which is
        # copied, and have their methods.
        source = os.path.join(self.dir, "Hello.java")
        with open(source, "w", encoding="ascii") as file:
            file.write("class Hello { public static void main(String[] a) {"
                       " System.err.println(a.length); } }\n")
        subprocess.run([JAVAC, "-d", self.dir, source], check=True)
        command = "for i in 1 2 3 4 5 6 7 8 9 10; do %s -cp %s Hello; done" % (
            JAVA, self.dir)
        document = self.document("-U", "-F", 997, "--", "/bin/sh", "-c",
                                 command)
        seen = {"all": 0, "whole": 0, "named": 0}
        for stack in document.stacks:
            frames = document.user(stack)
            if stack["user_state"] == "none" or not any(
                    "libjvm" in frame.get("module", "") for frame in frames):
                continue
            is_whole = stack["user_state"] == "whole"
            seen["all"] += stack["count"]
            seen["whole"] += is_whole * stack["count"]
            seen["named"] += stack["count"] * (is_whole and not any(
                frame["name"] == "[java]" or (frame["name"] == "[unknown]"
                                              and not frame.get("module"))
                for frame in frames))
        self.assertGreater(seen["all"], 100)
        self.assertGreater(seen["whole"], 0.95 * seen["all"], seen)
        # Some end before their methods' names are read: 10 to 17 % on a calm
        # machine. Without Java's code in copied stacks it would be 26 to 30.
        self.assertGreater(seen["named"], 0.78 * seen["all"], seen)

    def test_not_wanted(self):
        for wanted, is_there in (("python", False), ("none", False),
                                 ("java", True)):
            stacks = self.stacks("-Xint",
                                 arguments=("--runtimes", wanted))
            names = {name for frames, _ in stacks for name in frames}
            self.assertEqual("KnownJava.leaf" in names, is_there, wanted)


if __name__ == "__main__":
    harness.main()
