# SPDX-License-Identifier: Apache-2.0
"""Files whose file system stops answering, or lets nobody else in: they cost
their own names and nobody else's, no time and no end."""

import collections
import os
import signal
import time

import harness
import reports
import service_harness

# From SIGTERM to the end.
END_SECONDS = 1.0
# From the end of sampling to the report.
REPORT_SECONDS = 2.0
EVERYBODY = -1
FREQUENCY = 499
# Of the samples that a process's CPU time stands for.
LEAST_SHARE = 0.8
# Without an answer nothing ends these by itself.
NEVER = 3600


class SilentFiles(harness.E2eTest):

    def run_from_fuse(self, user=EVERYBODY):
        """A busy program whose file is on a FUSE file system; both."""
        server, directory = self.silent_fs(str(user))
        prefix = [] if user == EVERYBODY else [
            "setpriv", "--reuid=%d" % user, "--regid=%d" % user,
            "--clear-groups"]
        victim = self.start([directory + "/program"], ready=True, prefix=prefix)
        return server, victim

    def silence(self, server):
        os.kill(server.pid, signal.SIGUSR1)

    def bystander(self):
        """A busy program on a file system that answers, on a CPU of its own."""
        self.need_two_cpus()
        return self.start([self.program("relay_a"), self.path("relay_a"),
                           "60000", "/nowhere"], ready=True,
                          prefix=["taskset", "-c", "1"])

    def assert_whole(self, document, bystander, cpu_seconds):
        """All samples of so much CPU time are there and named."""
        self.assert_leaves(document.leaves(bystander.pid), "Work_a")
        samples = document.total(lambda s: s["pid"] == bystander.pid)
        self.assertGreater(samples, cpu_seconds * FREQUENCY * LEAST_SHARE)


class OneShotTest(SilentFiles):

    def test_silent_from_the_start(self):
        # A file system that does not answer keeps no sample of others from
        # being taken and named, and the report from being made in time; its
        # own files' reason is there and a warning.
        server, victim = self.run_from_fuse()
        bystander = self.bystander()
        self.silence(server)
        seconds = 4
        running = self.background("-F", FREQUENCY, "--format", "json", seconds)
        running.wait_started()
        begin, cpu_before = time.monotonic(), harness.cpu_seconds(bystander.pid)
        time.sleep(seconds - 0.2)
        cpu_time = harness.cpu_seconds(bystander.pid) - cpu_before
        run = running.finish()
        self.assertLess(time.monotonic() - begin, seconds + REPORT_SECONDS)
        document = reports.Document(run.stdout)
        self.assert_whole(document, bystander, cpu_time)
        leaves = document.leaves(victim.pid)
        self.assertGreater(leaves["(not-in-time)"], 0.9 * sum(leaves.values()))
        self.assertIn("does not answer", run.stderr)
        self.assertIn(self.path("silent") + "/program (of user 0)", run.stderr)

    def test_silent_while_it_runs(self):
        # What was opened before it fell silent has names.
        server, victim = self.run_from_fuse()
        bystander = self.bystander()
        running = self.background("-F", FREQUENCY, "--format", "json", 4)
        running.wait_started()
        cpu_before = harness.cpu_seconds(bystander.pid)
        time.sleep(2)
        self.silence(server)
        begin = time.monotonic()
        time.sleep(1.8)
        cpu_time = harness.cpu_seconds(bystander.pid) - cpu_before
        run = running.finish()
        self.assertLess(time.monotonic() - begin, 2 + REPORT_SECONDS)
        document = reports.Document(run.stdout)
        self.assert_whole(document, bystander, cpu_time)
        self.assert_leaves(document.leaves(victim.pid), "Hot")
        self.assertNotIn("does not answer", run.stderr)

    def test_signal(self):
        # SIGTERM ends it at once, with a report.
        server, _ = self.run_from_fuse()
        self.silence(server)
        running = self.background("-F", FREQUENCY, "--format", "json", NEVER)
        running.wait_started()
        time.sleep(1.5)
        begin = time.monotonic()
        running.signal(signal.SIGTERM)
        run = running.finish()
        self.assertLess(time.monotonic() - begin, END_SECONDS)
        self.assertGreater(reports.Document(run.stdout).samples["emitted"], 0)

    def test_answers(self):
        # As long as it answers, its files have names and whole stacks.
        _, victim = self.run_from_fuse()
        document = self.document("-F", FREQUENCY, 2)
        self.assert_leaves(document.leaves(victim.pid), "Hot")
        whole = document.share(
            lambda s: {"main", "Outer", "Hot"} <= set(document.names(s)),
            lambda s: s["pid"] == victim.pid)
        self.assertGreater(whole, 0.9)

    def test_no_entry(self):
        # A file system that lets nobody in but its owner is no matter of
        # capabilities, and the warning does not ask for them.
        _, victim = self.run_from_fuse(harness.NOBODY)
        run = self.profile("-F", FREQUENCY, "--format", "json", 1)
        leaves = reports.Document(run.stdout).leaves(victim.pid)
        self.assertGreater(leaves["(no-permission)"],
                           0.9 * sum(leaves.values()))
        self.assertIn("not even to", run.stderr)
        self.assertNotIn("CAP_", run.stderr)


class ServiceTest(SilentFiles, service_harness.ServiceCase):

    def test_silent(self):
        # The service goes on, names what others run, and ends at once.
        server, victim = self.run_from_fuse()
        bystander = self.bystander()
        self.silence(server)
        self.configure(frequency_hz=FREQUENCY, format="json")
        service = self.start_service()
        cpu_before = harness.cpu_seconds(bystander.pid)
        before = len(self.files("json"))
        self.wait_files(before + 5, "json")
        cpu_time = harness.cpu_seconds(bystander.pid) - cpu_before
        samples = 0
        # In one file there may be few or none: an interval that ended late
        # makes the next one short.
        others = collections.Counter()
        leaves = collections.Counter()
        for path in self.files("json")[before:]:
            document = reports.Document(harness.read_bytes(path))
            others += document.leaves(bystander.pid)
            samples += document.total(lambda s: s["pid"] == bystander.pid)
            leaves += document.leaves(victim.pid)
        self.assert_leaves(others, "Work_a")
        self.assertGreater(leaves["(not-in-time)"],
                           0.9 * sum(leaves.values()))
        # The last second is still to be written.
        self.assertGreater(samples,
                           (cpu_time - 1) * FREQUENCY * LEAST_SHARE)
        self.assertIn("does not answer", service.log())
        self.assertGreater(
            self.metrics()["ksym_files_given_up_total"], 0)
        self.assertLess(service.end(), END_SECONDS)
        self.totals(service)


if __name__ == "__main__":
    harness.main()
