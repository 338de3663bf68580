# SPDX-License-Identifier: Apache-2.0
"""Programs that say that they are a JVM and lie: what they take is bounded, and
no name is made up."""

import time

import harness

MOST_SECONDS = 20  # of a capture of 3 s


class HostileJavaTest(harness.E2eTest):

    def capture(self, mode):
        process = self.workload("forged_jvm", mode)
        begin = time.monotonic()
        run = self.profile("-v", "-F", 499, "-U", "-p", process.pid, 3)
        self.assertLess(time.monotonic() - begin, MOST_SECONDS)
        folded = harness.Folded(run.stdout)
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


if __name__ == "__main__":
    harness.main()
