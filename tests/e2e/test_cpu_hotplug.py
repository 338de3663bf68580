# SPDX-License-Identifier: Apache-2.0
"""CPUs that go and come while a capture runs."""

import os
import signal
import time

import harness
import reports

ONLINE = "/sys/devices/system/cpu/cpu1/online"


class CpuHotplugTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.need_two_cpus()
        if not os.access(ONLINE, os.W_OK):
            self.skipTest("cannot write " + ONLINE)
        self.addCleanup(self.bring_back)

    @staticmethod
    def bring_back():
        if harness.read_text(ONLINE).strip() != "1":
            harness.write_text(ONLINE, "1")

    def take_away(self):
        try:
            harness.write_text(ONLINE, "0")
        except OSError as error:
            self.skipTest("CPU 1 cannot be taken away: %s" % error)

    def test_goes_and_comes(self):
        # A capture survives that a CPU goes, and samples it again when it is
        # back.
        running = self.background("-F", 299, "--format", "json", "--by", "pid")
        running.wait_started()
        time.sleep(0.5)
        self.take_away()
        time.sleep(1)
        self.assertIsNone(running.process.poll())
        self.bring_back()
        # On CPU 1 only, so each sample of it is one of that CPU.
        spin = self.workload("spin")
        os.sched_setaffinity(spin.pid, {1})
        time.sleep(2)
        running.signal(signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        document = reports.Document(run.stdout)
        self.assertIn(spin.pid, document.pids())
        self.assertEqual(
            document.metadata["cpus"],
            harness.read_text("/sys/devices/system/cpu/online").strip())

    def test_goes_and_comes_unseen(self):
        # A profiler that had no time while a CPU was away samples it again.
        running = self.background("-F", 299, "--format", "json", "--by", "pid")
        running.wait_started()
        running.signal(signal.SIGSTOP)
        self.addCleanup(running.process.kill)
        self.take_away()
        self.bring_back()
        running.signal(signal.SIGCONT)
        spin = self.workload("spin")
        os.sched_setaffinity(spin.pid, {1})
        time.sleep(4)
        running.signal(signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        self.assertIn(spin.pid, reports.Document(run.stdout).pids())

    def test_the_only_one_goes(self):
        # A capture of one CPU goes on, without samples, while it is away.
        running = self.background("-F", 299, "--format", "json", "-C", "1")
        running.wait_started()
        time.sleep(0.3)
        self.take_away()
        time.sleep(0.7)
        self.assertIsNone(running.process.poll())
        self.bring_back()
        spin = self.workload("spin")
        os.sched_setaffinity(spin.pid, {1})
        time.sleep(2)
        running.signal(signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        self.assertIn(spin.pid, reports.Document(run.stdout).pids())

    def test_was_away_at_the_start(self):
        # A CPU that comes during a capture is added.
        self.take_away()
        running = self.background("-F", 299, "--format", "json", "-C", "0-1")
        running.wait_started()
        self.bring_back()
        spin = self.workload("spin")
        os.sched_setaffinity(spin.pid, {1})
        time.sleep(2)
        running.signal(signal.SIGINT)
        document = reports.Document(running.finish().stdout)
        self.assertEqual(document.metadata["cpus"], "0-1")
        self.assertIn(spin.pid, document.pids())


if __name__ == "__main__":
    harness.main()
