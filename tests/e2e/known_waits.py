# SPDX-License-Identifier: Apache-2.0
"""Threads that wait in ways that are known, what they and the kernel say of
themselves, and how a report of them is read."""

import collections
import os
import re
import signal
import threading
import time

import harness

LIFE_SECONDS = 2
HZ = 199
THREAD = re.compile(r"thread (\d+)/(\d+): (\d+) ns running, (\d+) ns runnable,"
                    r" (\d+) ns blocked \((.*)\)")

Times = collections.namedtuple("Times", "running runnable blocked")


class Said(dict):
    """What the kernel counts of each thread, and how long functions waited."""

    def __init__(self):
        super().__init__()
        self.places = {}


class KnownWaitsTest(harness.E2eTest):
    """A way in which the kernel has waits sampled, and what captures say."""

    PROGRAM = "auto"

    def setUp(self):
        super().setUp()
        if not harness.is_since(5, 8):
            self.skipTest("needs Linux 5.8")

    def way(self, mode):
        return [mode, "--wait-program", self.PROGRAM]

    def waits(self, seconds, *kinds):
        """The workload, and its child that is stopped."""
        workload = self.workload("waits", seconds, self.dir, *kinds)
        stopped = int(workload.output[0].split()[1])
        self.addCleanup(os.kill, stopped, signal.SIGKILL)
        return workload, stopped

    def run_waits(self, *arguments, kinds=()):
        """The document, the run, and what the threads say of themselves."""
        workload, stopped = self.waits(LIFE_SECONDS, *kinds)
        running = self.background(
            "--format", "json", "--by", "tid", "-v", "-F", HZ, "-p",
            "%d,%d" % (workload.pid, stopped), *arguments)
        running.wait_started()
        os.kill(workload.pid, signal.SIGUSR1)
        said = Said()
        # One that does not end would keep this from ending.
        deadline = threading.Timer(harness.RUN_SECONDS, workload.process.kill)
        deadline.start()
        while True:
            line = workload.process.stdout.readline().decode().split()
            if line == ["done"]:
                break
            self.assertTrue(line, "the workload did not end")
            if line[0] == "place":
                said.places[line[1]] = int(line[2])
            else:
                said[line[0]] = tuple(map(int, line[1:4]))
        deadline.cancel()
        # One that was joined may have a little to do yet.
        time.sleep(0.3)
        running.signal(signal.SIGINT)
        run = running.finish()
        return self.check_document(run), run, said

    def thread_times(self, run):
        """By name of the thread; of several the sum."""
        sums = collections.defaultdict(lambda: Times(0, 0, 0))
        for found in THREAD.findall(run.stderr):
            sums[found[5]] = Times(*map(sum, zip(sums[found[5]],
                                                 map(int, found[2:5]))))
        return sums

    def values(self, document, comm, kind=None):
        return sum(stack["value"] for stack in document.stacks
                   if stack["comm"] == comm and "value" in stack
                   and kind in (None, stack["sample_kind"]))

    def reasons(self, document, comm):
        """How long for each frame that says why."""
        sums = collections.Counter()
        for stack in document.stacks:
            if stack["comm"] != comm or "value" not in stack:
                continue
            for frame in document.kernel(stack):
                if frame["kind"] == "wait":
                    sums[frame["name"]] += stack["value"]
        return sums

    def wakers(self, document):
        """(thread, reason, waker) -> ns: the waker's frames from its command
        on, of waits that somebody ended."""
        sums = collections.Counter()
        for stack in document.stacks:
            frames = document.kernel(stack)
            names = [frame["name"] for frame in frames]
            if "--" not in names:
                continue
            at = names.index("--")
            self.assertEqual({frames[at]["kind"], frames[at + 1]["kind"]},
                             {"waker"})
            reasons = [frame["name"] for frame in frames[:at]
                       if frame["kind"] == "wait"]
            self.assertEqual(len(reasons), 1, names)
            # A runnable thread was not woken by this.
            self.assertEqual(stack["sample_kind"], "blocked")
            sums[stack["comm"], reasons[0],
                 tuple(names[at + 1:])] += stack["count"]
        return sums
