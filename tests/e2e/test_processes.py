"""Processes that become others or end before they can be looked at."""

import collections
import os

import harness


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
                    self.document("-F", 999, "-p", runner.pid, 1.5))
                runner.stop()
                for own, other in ("ab", "ba"):
                    self.assertGreater(
                        names["relay_" + own, "Work_" + own], 50)
                    self.assertEqual(
                        names["relay_" + own, "Work_" + other], 0, names)

    def test_short_lived(self):
        # Nearly every sample of a thousand processes that live a millisecond
        # has a name or at least its file.
        document = self.document(
            "-F", 1999, "--", "sh", "-c",
            "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done")
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
        harness.time.sleep(0.7)
        workload.stop()
        os.unlink(spin)
        os.unlink(self.path("spin"))
        harness.time.sleep(0.7)
        running.signal(harness.signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        names = self.names_by_comm(harness.Document(run.stdout))
        self.assertGreater(names["gone", "Hot"], 100, names)


if __name__ == "__main__":
    harness.main()
