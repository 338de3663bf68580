#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The service keeps a history, and `ksym-profile history` shows times of it."""

import json
import os
import shutil
import subprocess
import time

import harness
from service_harness import ServiceCase

NOBODY = 65534


class HistoryTest(ServiceCase):

    def setUp(self):
        super().setUp()
        self.folder = self.path("history")
        self.configure()

    def keep(self, *arguments):
        return self.start_service(
            "--history-enabled", "true", "--history-directory", self.folder,
            *arguments)

    def history(self, *arguments, status=0, **options):
        """What it prints on stdout and on stderr; status None: whatever it
        ends with."""
        done = subprocess.run(
            [harness.PROFILER, "history", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            check=False, timeout=60, **options)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def samples_of(self, pid, status=0):
        """So many there are of it, and what is said of the time."""
        text, said = self.history(self.folder, "--from", "-5m", "--pid", pid,
                                  "--format", "folded", status=status)
        return sum(int(line.rsplit(" ", 1)[1])
                   for line in text.splitlines()), said

    def wait_samples(self, pid, count):
        # There is no history at first, or none of that time.
        return harness.wait_for(
            lambda: self.samples_of(pid, status=None)[0] >= count,
            "samples in the history")

    def test_shows_a_time(self):
        # While it is written, and what became of it when the service ended.
        begin = int(time.time())
        service = self.keep()
        spin = self.workload("spin")
        pid = spin.pid
        self.wait_samples(pid, 100)
        metrics = self.metrics()
        self.assertGreater(metrics["ksym_history_records_total"], 0)
        self.assertGreater(metrics["ksym_history_bytes"], 0)
        self.assertEqual(metrics["ksym_history_samples_dropped_total"], 0)
        service.end()
        self.totals(service)
        names = sorted(os.listdir(self.folder))
        self.assertEqual(names, ["000000000001.journal", "lock"])

        end = int(time.time()) + 1
        table, said = self.history(self.folder, "--from", begin, "--to", end,
                                   "--by", "comm")
        self.assertIn("spin", table)
        self.assertIn(" samples of ", said)
        output = self.path("x.json")
        self.history(self.folder, "--from", begin, "--to", end, "--command",
                     "spin", "-o", output)
        document = harness.Document(harness.read_bytes(output))
        self.assertEqual(document.pids(), {pid})
        page = self.path("x.html")
        self.history(self.folder, "--from", begin, "--to", end, "-o", page)
        self.assertIn("spin", harness.read_text(page))
        changes = self.path("change.html")
        middle = (begin + end) // 2
        self.history(self.folder, "--from", middle, "--to", end,
                     "--before-from", begin, "--before-to", middle + 1, "-o",
                     changes)
        self.assertIn("spin", harness.read_text(changes))
        said = self.history(self.folder, "--from", "2001-01-01", "--to",
                            "2001-01-02", status=1)[1]
        self.assertIn("nothing is known of", said)

    def test_survives_a_kill(self):
        # What was on the disk is there, and the hole as well.
        service = self.keep()
        pid = self.workload("spin").pid
        self.wait_samples(pid, 100)
        service.kill()
        before, said = self.samples_of(pid)
        self.assertNotIn("warning", said)
        time.sleep(3)
        service = self.keep()
        self.wait_samples(pid, before + 100)
        service.end()
        # The second run made a segment of what the first had left.
        names = sorted(os.listdir(self.folder))
        self.assertTrue(names[0].endswith(".segment"), names)
        self.assertTrue(names[1].endswith(".journal"), names)
        after, said = self.samples_of(pid)
        self.assertGreaterEqual(after, before + 100)
        self.assertIn("the service was not running", said)
        self.assertIn("over 1 restarts", said)

    def test_is_read_elsewhere(self):
        # A copy, made while it is written, by another user.
        self.keep()
        self.wait_samples(self.workload("spin").pid, 50)
        copy = self.path("copy")
        shutil.copytree(self.folder, copy)
        for path in [os.path.dirname(copy), copy]:
            os.chmod(path, 0o755)
        for name in os.listdir(copy):
            os.chmod(os.path.join(copy, name), 0o644)
        table, said = self.history(copy, "--from", "-5m", "--by", "comm",
                                   user=NOBODY, group=NOBODY)
        self.assertIn("spin", table, said)

    def test_has_one_service(self):
        # The second goes on and says that it keeps none.
        self.keep()
        second = self.keep("--http-listen", "")
        second.wait_log("another service writes its history there")
        self.assertIsNone(second.process.poll())

    def test_usage(self):
        for arguments, wanted in [
                (["--from", "noon"], "--from: 'noon' is no time"),
                (["--from", "-1m", "--to", "-2m"], "--from is not before --to"),
                (["--before-from", "-1h"], "go together"),
                (["--by", "line"], "a history has no lines"),
                (["-o", "x.unknown"], "does not say the format")]:
            said = self.history(self.folder, *arguments, status=2)[1]
            self.assertIn(wanted, said)
        said = self.history(self.folder, status=1)[1]
        self.assertIn(self.folder, said)


if __name__ == "__main__":
    harness.main()
