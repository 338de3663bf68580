# SPDX-License-Identifier: Apache-2.0
"""Programs that say that they are Python and lie about their frames: what they
take is bounded, and nobody else's frames are touched."""

import importlib.util
import os
import sys
import time

import harness

sys.path.insert(0, os.path.join(harness.SOURCE_DIR, "tests/truth/python"))
import captures  # noqa: E402
import costs  # noqa: E402

PYTHON = "/usr/bin/python3"
KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workloads",
                     "known_python.py")
VERSIONS = ("11", "12", "13")
WITH_CFRAME = ("11", "12")
# What forged_python is called with. What each shows, if anything, are frames
# with these names.
FORGED = {
    "honest": {"forged_name"},
    "loop": {"forged_name"},
    "unfinished": set(),
    "anchors": {"forged_name"},
    "lengths": {"long_name"},
    "control": {"forged_name", "a;b"},
    "unmapped": {"forged_name"},
    "kernel": {"forged_name"},
    "noncanonical": {"forged_name"},
    "state": set(),
    "changing": {"forged_name"},
}
# By which one is stopped in any case, whatever it says.
MOST_FRAMES = 2048
MOST_NS_A_SAMPLE = 100000
MOST_NS_WITH_CODE = 2000000  # all of it new in each sample
MOST_MIB = 400


def edges():
    spec = importlib.util.spec_from_file_location("known_python", KNOWN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EDGES


class HostilePythonTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        if not os.path.exists(PYTHON):
            self.skipTest("no " + PYTHON)

    def forge(self, version, mode):
        return self.workload("forged_python_" + version, mode).pid

    def known(self):
        return self.start([PYTHON, KNOWN, "60"], ready=True).pid

    def capture(self, pids, most_ns=MOST_NS_A_SAMPLE, seconds=4):
        """The stacks by process, of a capture that is bounded in memory and in
        the time that samples take on average."""
        running = self.background(
            "--format", "json", "-U", "-F", 997, "-p",
            ",".join(map(str, pids)), seconds)
        running.wait_started()
        with costs.cost.bpf_statistics():
            time.sleep(seconds / 2)
            spent, samples = costs.cost.sampler_statistics(running.process.pid)
            status = harness.read_text("/proc/%d/status" % running.process.pid)
        if samples:
            self.assertLess(spent / samples, most_ns)
        document = self.check_document(running.finish())
        stacks = {pid: [] for pid in pids}
        for stack in document.stacks:
            stacks[stack["pid"]].append(captures.Stack(document.frames, stack))
        peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
        self.assertLess(peak, MOST_MIB)
        return stacks

    def assert_untouched(self, stacks):
        """The program whose calls are known shows these and no others."""
        known = edges()
        total = sum(stack.count for stack in stacks)
        whole = sum(stack.count for stack in stacks if stack.is_complete)
        self.assertGreater(total, 20)
        self.assertGreater(whole / total, 0.8)
        for stack in stacks:
            names = [frame["function"] for frame in stack.python]
            for caller, callee in zip(names, names[1:]):
                self.assertIn(callee, known.get(caller, set()), names)

    def assert_bounded(self, mode, stacks):
        """No name that the program does not have, and none that breaks what is
        written."""
        self.assertTrue(stacks, mode)
        for stack in stacks:
            self.assertLess(len(stack.frames), MOST_FRAMES, mode)
            for frame in stack.frames:
                self.assertTrue(frame["name"].isprintable(), frame)
                self.assertLess(len(frame["name"]), 2000, frame)
            for frame in stack.python:
                self.assertTrue(frame["function"].startswith(
                    tuple(FORGED[mode])), (mode, frame))

    def assert_honest(self, stacks):
        """Were the forgery not believed at all, nothing would be tested."""
        shown = sum(stack.count for stack in stacks if [
            frame["function"] for frame in stack.python] == ["forged_name"] * 3)
        self.assertGreater(
            shown / sum(stack.count for stack in stacks), 0.8)

    def test_frames(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                forged = {mode: self.forge(version, mode) for mode in FORGED}
                known = self.known()
                stacks = self.capture([known, *forged.values()])
                self.assert_untouched(stacks[known])
                self.assert_honest(stacks[forged["honest"]])
                for mode, pid in forged.items():
                    self.assert_bounded(mode, stacks[pid])

    def test_calls_that_begin(self):
        # A call of the loop that begins has in its struct what lay there
        # before, which can look like frames: it does not fit what is there
        # for certain, and is not shown.
        modes = "begins", "elsewhere"
        for version in WITH_CFRAME:
            with self.subTest(version=version):
                forged = {mode: self.forge(version, mode) for mode in modes}
                stacks = self.capture(forged.values())
                for mode, pid in forged.items():
                    total = sum(stack.count for stack in stacks[pid])
                    torn = sum(stack.count for stack in stacks[pid]
                               if stack.is_torn)
                    self.assertGreater(torn / total, 0.8, mode)
                    for stack in stacks[pid]:
                        self.assertEqual(stack.python, [], mode)

    def test_endless_code(self):
        # Whose code is other code in each sample, with long line tables: what
        # is kept of it is bounded, and the other's names come all the same.
        for version in VERSIONS:
            with self.subTest(version=version):
                forged, known = self.forge(version, "codes"), self.known()
                stacks = self.capture([known, forged], MOST_NS_WITH_CODE)
                self.assert_untouched(stacks[known])


if __name__ == "__main__":
    harness.main()
