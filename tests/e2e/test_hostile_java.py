# SPDX-License-Identifier: Apache-2.0
"""Programs that say that they are a JVM and lie: what they take is bounded, and
no name is made up."""

import json
import os
import re
import time

import harness
import reports

MOST_SECONDS = 20  # of a capture of 3 s


class HostileJavaTest(harness.E2eTest):

    def capture(self, mode):
        process = self.workload("forged_jvm", mode)
        begin = time.monotonic()
        run = self.profile("-v", "-F", 499, "-U", "-p", process.pid, 3)
        self.assertLess(time.monotonic() - begin, MOST_SECONDS)
        folded = reports.Folded(run.stdout)
        self.assertGreater(folded.total(), 100)
        return run, folded

    def assert_no_names(self, folded):
        for frames, _ in folded.lines:
            for frame in frames:
                self.assertNotIn("nmethod", frame)
                self.assertNotRegex(frame, r"^[a-z]+\.[A-Za-z]+$")

    def test_tables_without_an_end(self):
        run, folded = self.capture("endless")
        self.assertIn("gHotSpotVMStructs has no end", run.stderr)
        self.assert_no_names(folded)

    def test_map_of_code_that_leads_back(self):
        _, folded = self.capture("hops")
        self.assert_no_names(folded)
        ends = sum(count for frames, count in folded.lines
                   if any("no-table" in frame for frame in frames))
        self.assertGreater(ends / folded.total(), 0.9)

    def test_frames_without_bytes(self):
        _, folded = self.capture("frames")
        self.assert_no_names(folded)

    def test_names_that_are_anywhere(self):
        _, folded = self.capture("names")
        self.assert_no_names(folded)
        self.assertTrue(any("[java]" in frames for frames, _ in folded.lines),
                        folded.lines)

    def test_threads_that_sleep(self):
        # Their stacks are read by the profiler itself, which loses neither time
        # nor the stacks of others.
        for mode in ("hops", "frames", "names", "silent"):
            with self.subTest(mode):
                process = self.workload("forged_jvm", mode, "sleep")
                if "none" in process.output:
                    self.skipTest("no userfaultfd here")
                other = self.workload("hang", str(os.getpid()))
                time.sleep(0.3)
                begin = time.monotonic()
                run = self.profile("dump", "--format", "json", "-p",
                                   "%d,%d" % (process.pid, other.pid))
                self.assertLess(time.monotonic() - begin, MOST_SECONDS)
                dump = json.loads(run.stdout)
                forged = [thread for thread in dump["threads"]
                          if thread["pid"] == process.pid]
                self.assertGreaterEqual(len(forged), 50)
                for thread in forged:
                    for i in thread.get("user", []):
                        self.assertNotRegex(dump["frames"][i]["name"],
                                            r"^nmethod|^[a-z]+\.[A-Za-z]+$")
                hung = [thread for thread in dump["threads"]
                        if thread["comm"] == "condvar"]
                self.assertEqual(hung[0]["user_state"], "whole")
                begin = time.monotonic()
                run = self.profile("--off-cpu", "--parked", "-v", "-p",
                                   process.pid, 2)
                self.assertLess(time.monotonic() - begin, MOST_SECONDS)
                self.assert_no_names(reports.Folded(run.stdout))
                if mode == "silent":
                    late = re.search(r"(\d+) out of time", run.stderr)
                    self.assertGreater(int(late.group(1)), 0, run.stderr)


if __name__ == "__main__":
    harness.main()
