# SPDX-License-Identifier: Apache-2.0
"""Java's frames in the JDKs that there are, against what the program itself says
of its stacks: names, files and lines of all frames, inlined ones among them."""

import concurrent.futures
import json
import subprocess
import sys
import unittest

import harness
import jdks

# Frames that getStackTrace() leaves out.
HIDDEN = ("$$Lambda", "LambdaForm$", "$Holder.", "StubRoutines",
          "java.lang.Thread.runWith")
OF_COMPILERS = {"both": [], "none": ["-Xint"],
                "first": ["-XX:TieredStopAtLevel=1"],
                "second": ["-XX:-TieredCompilation"]}
LEAST_RIGHT = 0.98


def say(text):
    print(text, file=sys.stderr, flush=True)


class JavaVersionsTest(harness.E2eTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not jdks.JAVAC:
            raise unittest.SkipTest("no javac")
        cls.jdks = list(jdks.all_jdks(say))
        if not cls.jdks:
            raise unittest.SkipTest("no JDK")

    def setUp(self):
        super().setUp()
        for workload in ("JavaScenes", "JavaVirtual", "JavaDeoptimized",
                         "SleepingJava"):
            jdks.compile_workload(workload + ".java", self.dir)
        for jdk in self.jdks:
            jdk.bring(self.dir)

    @staticmethod
    def at_once(work, jobs):
        """Does the work with each of the jobs, two at a time: what is measured
        is the job's own process. The jobs, each with its future."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return [(job, pool.submit(work, *job)) for job in jobs]

    def popen(self, command):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        return process

    def start(self, jdk, *options):
        """The process, and each of its stacks as the calls that lead to burn(),
        outermost first."""
        command = jdk.command(
            self.dir, "-XX:CompileCommand=quiet",
            "-XX:CompileCommand=dontinline,JavaScenes.burn", *options,
            "JavaScenes", "30")
        process = self.popen(command)
        scenes = set()
        for line in process.stdout:
            if not line.startswith("SCENE"):
                continue
            # In place of where it printed, leaf() calls burn().
            calls = [call for call in line.split()[1:]]
            calls[0] = "JavaScenes.leaf:28"
            scenes.add(tuple(reversed(calls)))
            if len(scenes) == 7:
                return process, scenes
        raise AssertionError("the program ended")

    @staticmethod
    def calls_of(frames):
        """Those of Java that lead to burn(); nothing: it is not at it."""
        names = [frame.get("function", frame["name"]) for frame in frames]
        if "JavaScenes.burn" not in names:
            return None
        calls = []
        for frame in frames[:names.index("JavaScenes.burn")]:
            name = frame.get("function", frame["name"])
            if frame["kind"].startswith("java") and not any(
                    hidden in name for hidden in HIDDEN):
                calls.append("%s:%d" % (name, frame.get("line", 0)))
        return tuple(calls)

    def figures(self, jdk, *options):
        process, scenes = self.start(jdk, *options)
        document = self.document("-U", "-F", 499, "-p", process.pid, 3)
        all_of_it, right, seen, wrong = 0, 0, set(), {}
        for stack in document.stacks:
            calls = self.calls_of(document.user(stack))
            if calls is None:
                continue
            all_of_it += stack["count"]
            if calls in scenes:
                right += stack["count"]
                seen.add(calls)
            elif stack["user_state"] == "whole":
                wrong[calls] = wrong.get(calls, 0) + stack["count"]
        process.kill()
        self.assertGreater(all_of_it, 30)
        self.assertEqual(seen, scenes)
        inlined = sum(1 for f in document.frames if f.get("inlined")
                      and f["kind"] == "java")
        say("%s, %s: %.2f %% of %d right, %d inlined" % (
            jdk, " ".join(options) or "default", 100 * right / all_of_it,
            all_of_it, inlined))
        return right / all_of_it, wrong, inlined

    def stacks_at(self, process, method):
        """The names in stacks that go through that method, and how often."""
        stacks = []
        document = self.document("-U", "-F", 499, "-p", process.pid, 3)
        process.kill()
        for stack in document.stacks:
            names = [frame.get("function", frame["name"])
                     for frame in document.user(stack)]
            if method in names and stack["user_state"] == "whole":
                stacks.append((names, stack["count"]))
        return stacks

    def virtual_stacks(self, jdk):
        process = self.popen(jdk.command(self.dir, "JavaVirtual", "30"))
        self.assertEqual(process.stdout.readline(), "ready\n")
        return self.stacks_at(process, "JavaVirtual.burn")

    def test_virtual_threads(self):
        # Their frames are on the stack, or it is said that they are not.
        jobs = [(jdk,) for jdk in self.jdks if jdk.version >= 21]
        for (jdk,), stacks in self.at_once(self.virtual_stacks, jobs):
            with self.subTest(str(jdk)):
                marked = 0
                for names, count in stacks.result():
                    deep = names.count("JavaVirtual.deep")
                    if "[vthread frames in heap]" in names:
                        marked += count
                        self.assertLess(deep, 21, names)
                    else:
                        self.assertEqual(deep, 21, names)
                self.assertGreater(marked, 50)

    def deoptimized_stacks(self, jdk):
        process = self.popen(jdk.command(
            self.dir, "-XX:CompileCommand=quiet",
            "-XX:CompileCommand=dontinline,JavaDeoptimized.burn",
            "-XX:-TieredCompilation", "-Xbatch", "JavaDeoptimized", "30"))
        self.assertEqual(process.stdout.readline(), "deoptimized\n")
        return self.stacks_at(process, "JavaDeoptimized.burn")

    def test_deoptimized(self):
        # The calls that were inlined are those of before.
        jobs = [(jdk,) for jdk in self.jdks]
        for (jdk,), stacks in self.at_once(self.deoptimized_stacks, jobs):
            with self.subTest(str(jdk)):
                total = 0
                for names, count in stacks.result():
                    at = names.index("JavaDeoptimized.burn")
                    self.assertEqual(names[at - 2:at],
                                     ["JavaDeoptimized.middle",
                                      "JavaDeoptimized.outer"], names)
                    total += count
                self.assertGreater(total, 30)

    def start_sleeping(self, jdk, *options):
        """The process, and the calls of each thread, outermost first."""
        process = self.popen(jdk.command(self.dir, *options, "SleepingJava"))
        calls = {}
        for line in process.stdout:
            if line == "ready\n":
                return process, calls
            name, *stack = line.split()[1:]
            calls[name] = [call for call in stack
                           if not any(hidden in call for hidden in HIDDEN)]
        raise AssertionError("the program ended")

    @staticmethod
    def java_calls(frames):
        """All of Java, outermost first, as the program says them."""
        return ["%s:%d" % (name, frame.get("line", 0)) for frame in frames
                if frame["kind"].startswith("java")
                and not any(hidden in (name := frame.get("function",
                                                         frame["name"]))
                            for hidden in HIDDEN)]

    def dumped(self, pid):
        run = self.profile("dump", "--format", "json", "-p", pid)
        dump = json.loads(run.stdout)
        return {thread["comm"]: self.java_calls(
            [dump["frames"][i] for i in thread.get("user", [])])
            for thread in dump["threads"]}

    def waited(self, pid):
        document = self.document("--off-cpu", "--parked", "-p", pid, 1)
        calls = {}
        for stack in document.stacks:
            if stack.get("user_state") == "whole":
                calls[stack["comm"]] = self.java_calls(document.user(stack))
        return calls

    def check_sleeping(self, jdk, *options):
        process, expected = self.start_sleeping(jdk, *options)
        self.assertEqual(len(expected), 9)
        for seen in (self.dumped, self.waited):
            missing = dict(expected)
            # Who waits for a monitor looks at it now and then, and has no
            # certain calls where that comes between.
            for _ in range(4):
                calls = seen(process.pid)
                for name in list(missing):
                    if calls.get(name):
                        self.assertEqual(calls[name], missing.pop(name), name)
                if not missing:
                    break
            self.assertEqual(missing, {})
        process.kill()

    def test_sleeping(self):
        # Threads that do not run have the calls that they say themselves.
        jobs = [(jdk, *options) for jdk in self.jdks
                for options in ((), ("-Xint",), ("-XX:-TieredCompilation",))]
        for (jdk, *options), checked in self.at_once(self.check_sleeping, jobs):
            with self.subTest("%s %s" % (jdk, options)):
                checked.result()

    def check(self, compilers):
        jobs = [(jdk, *OF_COMPILERS[compilers]) for jdk in self.jdks]
        for (jdk, *_), figures in self.at_once(self.figures, jobs):
            with self.subTest(str(jdk)):
                right, wrong, inlined = figures.result()
                self.assertGreaterEqual(right, LEAST_RIGHT, wrong)
                self.assertEqual(wrong, {})
                if compilers in ("both", "second"):
                    self.assertGreater(inlined, 0)
                if compilers == "none":
                    self.assertEqual(inlined, 0)

    def test_both_compilers(self):
        self.check("both")

    def test_interpreted(self):
        self.check("none")

    def test_first_compiler(self):
        self.check("first")

    def test_second_compiler(self):
        self.check("second")


if __name__ == "__main__":
    harness.main()
