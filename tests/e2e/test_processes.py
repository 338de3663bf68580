# SPDX-License-Identifier: Apache-2.0
"""Processes that become others or end before they can be looked at."""

import collections
import contextlib
import os
import signal
import subprocess
import sys
import time

import harness
import reports

# More than a profile has whole, fewer than are remembered of a process.
MANY_MAPPINGS = 10_000


class ProcessesTest(harness.E2eTest):

    def names_by_comm(self, document):
        """Counts of (command name, name of the innermost user frame)."""
        names = collections.Counter()
        for stack in document.stacks:
            user = document.user(stack)
            if user:
                names[stack["comm"], user[-1]["name"]] += stack["count"]
        return names

    def test_exec_relay(self):
        # Two programs with the same addresses that become each other: no
        # sample has the name of the other one's function.
        a, b = (os.path.join(harness.WORKLOADS, "relay_" + which)
                for which in "ab")
        for milliseconds in (5, 30, 200):
            with self.subTest(milliseconds=milliseconds):
                runner = self.workload("relay_a", a, milliseconds, b)
                names = self.names_by_comm(
                    self.document_of_cpu_time(runner, 1, "-F", 999))
                runner.stop()
                for own, other in ("ab", "ba"):
                    self.assertGreater(
                        names["relay_" + own, "Work_" + own], 100)
                    self.assertEqual(
                        names["relay_" + own, "Work_" + other], 0, names)

    def test_fork_without_exec(self):
        # Children that never call exec have their own names, and their
        # children, too, though each lives for some milliseconds only.
        running = self.background("-F", 999, "--format", "json")
        running.wait_started()
        workload = self.workload("forks")
        time.sleep(0.8)
        workload.stop()
        running.signal(signal.SIGINT)
        document = reports.Document(running.finish().stdout)
        self.assert_leaves(document.leaves(comm="forked"), "ChildWork")
        self.assert_leaves(document.leaves(comm="forked twice"),
                           "GrandchildWork")

    def test_threads_that_outlive_the_first(self):
        # A process whose first thread has ended, after which /proc/PID/maps
        # is empty, has its names: whether that was before the capture or
        # within it, and when another thread than the first calls exec.
        before = self.workload("leader")
        self.assertEqual(
            harness.read_text("/proc/%d/maps" % before.pid), "")
        running = self.background("-F", 999, "--format", "json")
        running.wait_started()
        within = self.workload("leader")
        spin = self.workload("leader", os.path.join(harness.WORKLOADS, "spin"))
        time.sleep(0.7)
        running.signal(signal.SIGINT)
        document = reports.Document(running.finish().stdout)
        self.assert_leaves(document.leaves(before.pid), "Survivor")
        self.assert_leaves(document.leaves(within.pid, "leader"), "Survivor")
        self.assert_leaves(document.leaves(spin.pid, "spin"), "Hot")

    def json_loop(self, mappings):
        """A python3 that has so many more executable mappings."""
        script = (
            "import json, mmap, os, sys\n"
            "file = open(sys.executable, 'rb')\n"
            "pages = os.path.getsize(sys.executable) // mmap.PAGESIZE\n"
            "kept = [mmap.mmap(file.fileno(), mmap.PAGESIZE,\n"
            "                  prot=mmap.PROT_READ | mmap.PROT_EXEC,\n"
            "                  offset=i * 7 %% pages * mmap.PAGESIZE)\n"
            "        for i in range(%d)]\n"
            "print(flush=True)\n"
            "while True: json.loads('[[1, 2, 3], {}]')\n" % mappings)
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", script], stdout=subprocess.PIPE,
            preexec_fn=harness.die_with_parent)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        maps = harness.read_text("/proc/%d/maps" % process.pid)
        self.assertEqual(maps.count(" r-xs "), mappings)
        return process

    def test_many_mappings(self):
        # A capture of a process with thousands of mappings has few of them:
        # the ones that stacks lead to, which have their names.
        sizes = {}
        for mappings in (0, MANY_MAPPINGS):
            process = self.json_loop(mappings)
            raw = self.path("capture.raw")
            self.profile("-p", process.pid, "-F", 499, "--raw", raw, 1)
            process.kill()
            sizes[mappings] = os.path.getsize(raw)
            document = self.document("--replay", raw)
            frames = [document.user(stack) for stack in document.stacks]
            self.assertTrue(any(frames))
            for frame in sum(frames, []):
                self.assertNotIn(frame.get("reason"),
                                 ("not-mapped", "too-large"), frame)
        # Each mapping would take some 28 bytes, packed.
        self.assertLess(sizes[MANY_MAPPINGS] - sizes[0], 2 * MANY_MAPPINGS,
                        sizes)

    def test_exec_chain(self):
        # One process that is shell, relay_a, relay_b, relay_a and so on: each
        # has its own names, also when there are many of them.
        a, b = (os.path.join(harness.WORKLOADS, "relay_" + which)
                for which in "ab")
        chain = self.start(
            ["sh", "-c", "exec env sh -c 'exec %s %s 60 %s'" % (a, a, b)],
            ready=True)
        document = self.document("-F", 1999, "-p", chain.pid, 1)
        self.assert_leaves(document.leaves(chain.pid, "relay_a"), "Work_a")
        self.assert_leaves(document.leaves(chain.pid, "relay_b"), "Work_b")

    @staticmethod
    def kill(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def test_short_lived(self):
        # Nearly every sample of processes that live a millisecond has a name
        # or at least its file: of a thousand, beside a load of a hundred. They
        # would wait for a CPU for most of their lives there.
        pid_file = self.path("pid")
        running = self.background(
            "-F", 1999, "--format", "json", "--", "nice", "-n", -10, "sh", "-c",
            "echo $$ > %s; while :; do /bin/true; done" % pid_file)
        running.wait_started()
        end = time.monotonic() + 2
        pid = int(harness.wait_for(lambda: os.path.exists(pid_file)
                                   and harness.read_text(pid_file), "the pid"))
        self.addCleanup(self.kill, pid)
        harness.wait_for(lambda: time.monotonic() > end
                         and harness.cpu_seconds(pid, of_children=True) > 0.1,
                         "CPU time of its children", harness.CPU_TIME_SECONDS)
        self.kill(pid)
        # The shell was killed, and its status is ours.
        document = self.check_document(running.finish(), 128 + signal.SIGKILL)
        total = bare = 0
        for stack in document.stacks:
            if stack["comm"] != "true" or not stack["user"]:
                continue
            total += stack["count"]
            frame = document.user(stack)[-1]
            if frame.get("reason") in ("no-process", "unmapped", "gone"):
                bare += stack["count"]
        self.assertGreater(total, 50)
        self.assertLess(bare / total, 0.05)

    def test_exited_before_the_report(self):
        # A program that ended seconds before the report, whose file is gone
        # as well, has its names.
        spin = self.path("gone")
        os.link(self.program("spin"), spin)
        running = self.background("-F", 499, "--format", "json")
        running.wait_started()
        workload = self.start([spin], ready=True)
        time.sleep(0.7)
        workload.stop()
        os.unlink(spin)
        os.unlink(self.path("spin"))
        time.sleep(0.7)
        running.signal(signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        document = reports.Document(run.stdout)
        self.assert_leaves(document.leaves(comm="gone"), "Hot")


if __name__ == "__main__":
    harness.main()
