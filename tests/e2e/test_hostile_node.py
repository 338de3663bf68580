# SPDX-License-Identifier: Apache-2.0
"""Programs that say that they are V8 and lie about their objects: what they take
is bounded, and no name is shown that they do not have."""

import os
import sys
import time

import harness

sys.path.insert(0, os.path.join(harness.SOURCE_DIR, "tests/truth/python"))
import costs  # noqa: E402

# What forged_v8 is called with, and whether its function has a name then.
FORGED = {
    "honest": True,
    "loop": False,
    "lengths": True,  # as far as text is there
    "variables": False,
    "control": True,
    "unmapped": False,
    "kernel": False,
    "other": False,
    "inlined": False,
    "functions": None,  # now and then
    "changing": None,
}
NAME = "forged_name"
NO_NAME = "[javascript]"
MOST_NS_A_SAMPLE = 50000
MOST_MIB = 400


class HostileNodeTest(harness.E2eTest):

    def test_objects(self):
        pids = {mode: self.workload("forged_v8", mode).pid for mode in FORGED}
        running = self.background(
            "--format", "json", "-U", "-F", 997, "-p",
            ",".join(map(str, pids.values())), 5)
        running.wait_started()
        with costs.cost.bpf_statistics():
            time.sleep(2)
            spent, samples = costs.cost.sampler_statistics(running.process.pid)
            status = harness.read_text("/proc/%d/status" % running.process.pid)
        if samples:
            self.assertLess(spent / samples, MOST_NS_A_SAMPLE)
        peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
        self.assertLess(peak, MOST_MIB)
        document = self.check_document(running.finish())
        for mode, pid in pids.items():
            with self.subTest(mode=mode):
                counts = {True: 0, False: 0}
                for stack in document.stacks:
                    if stack["pid"] == pid:
                        self.count(document, stack, counts)
                named = FORGED[mode]
                if named is not None:
                    self.assertGreater(counts[named], 5 * counts[not named])

    def count(self, document, stack, counts):
        for number in stack["user"]:
            frame = document.frames[number]
            self.assertTrue(frame["name"].isprintable(), frame)
            self.assertLess(len(frame["name"]), 2000, frame)
            if not frame["kind"].startswith("javascript"):
                continue
            named = frame["name"] != NO_NAME
            if named:
                self.assertTrue(frame["function"].startswith(NAME), frame)
            counts[named] += stack["count"]


if __name__ == "__main__":
    harness.main()
