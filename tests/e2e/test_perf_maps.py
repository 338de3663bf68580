# SPDX-License-Identifier: Apache-2.0
"""Perf maps: names of code that is made at run time, and what is refused."""

import os
import re
import shutil

import harness
import reports

FIRST, SECOND = "LazyCompile:~first a.js:1", "second;(part) 7"


class Jit:
    """A running workload jit, and its perf map."""

    def __init__(self, test, **options):
        self.workload = test.workload("jit", **options)
        self.pid = self.workload.pid
        self.first, self.second = self.workload.output
        self.map = "/tmp/perf-%d.map" % self.pid
        test.addCleanup(self._remove_map)
        self._remove_map()

    def _remove_map(self):
        if os.path.lexists(self.map):
            os.unlink(self.map)

    def text(self):
        return "%s %s\n%s %s\n" % (self.first, FIRST, self.second, SECOND)

    def write(self, text=None, mode="w"):
        with open(self.map, mode) as file:
            file.write(self.text() if text is None else text)


class PerfMapTest(harness.E2eTest):

    def report(self, jits, *arguments, meanwhile=None):
        """The document and the run of one capture of them all."""
        running = self.background(
            "-F", 999, "--format", "json", *arguments, "-p",
            ",".join(str(jit.pid) for jit in jits), 1)
        if meanwhile:
            running.wait_started()
            harness.time.sleep(0.3)
            meanwhile()
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        return reports.Document(run.stdout), run

    def assert_both(self, document, jit):
        """Both functions are named, and nothing else is."""
        leaves = document.leaves(jit.pid)
        self.assert_leaves(leaves, FIRST, SECOND)
        self.assertGreater(leaves[FIRST], 0)
        self.assertGreater(leaves[SECOND], 0)

    def test_named(self):
        # Functions have the names that the process's map gives them, also
        # when the map comes or is completed while the capture runs. What
        # nobody told has no name.
        whole, none, late, torn = (Jit(self) for _ in range(4))
        whole.write()
        # Its last line is not complete: "second" must not be "sec".
        torn.write("%s %s\n%s sec" % (torn.first, FIRST, torn.second))

        def meanwhile():
            late.write()
            torn.write("ond;(part) 7\n", "a")

        document, run = self.report([whole, none, late, torn],
                                    meanwhile=meanwhile)
        self.assert_both(document, whole)
        self.assert_leaves(document.leaves(none.pid), "(anonymous)")
        for jit in (late, torn):
            leaves = document.leaves(jit.pid)
            self.assert_leaves(leaves, FIRST, SECOND, "(anonymous)")
            self.assertGreater(leaves[SECOND], 10, leaves)
        self.assertEqual(run.warnings, [])

    def test_refused(self):
        # A map that could lie or cost too much is not read; its process's
        # frames have no name, the reason says so, and a warning names the
        # file and what is wrong with it.
        fifo, link, directory, large, foreign, stale, good = (
            Jit(self) for _ in range(7))
        os.mkfifo(fifo.map)
        os.symlink("/etc/shadow", link.map)
        os.mkdir(directory.map)
        self.addCleanup(os.rmdir, directory.map)
        large.write()
        os.truncate(large.map, 1 << 30)
        foreign.write()
        os.chown(foreign.map, harness.NOBODY, harness.NOBODY)
        stale.write()
        os.utime(stale.map, (1, 1))
        good.write()
        document, run = self.report(
            [fifo, link, directory, large, foreign, stale, good])
        self.assert_both(document, good)
        for jit, reason, words in [
                (fifo, "map-refused", "not a regular file"),
                (link, "map-refused", "symbolic link"),
                (directory, "map-refused", "not a regular file"),
                (large, "too-large", "larger than"),
                (foreign, "map-refused", "owned by another user"),
                (stale, "map-refused", "older than the process")]:
            with self.subTest(words, map=jit.map):
                self.assert_leaves(document.leaves(jit.pid),
                                   "(%s)" % reason)
                warnings = [w for w in run.warnings if jit.map in w]
                self.assertEqual(len(warnings), 1, str(run))
                self.assertIn(words, warnings[0])
        self.assertEqual(len(run.warnings), 6, str(run))
        self.assertEqual(len(document.metadata["warnings"]), 6)

    def test_of_another_user(self):
        # The map of another user's process may be that user's or root's.
        jits = [Jit(self, user=harness.NOBODY) for _ in range(3)]
        own, of_root, of_third = jits
        for jit, owner in (own, harness.NOBODY), (of_root, 0), (of_third, 1):
            jit.write()
            os.chown(jit.map, owner, owner)
        document, _ = self.report(jits)
        self.assert_both(document, own)
        self.assert_both(document, of_root)
        self.assert_leaves(document.leaves(of_third.pid), "(map-refused)")

    def test_in_a_container(self):
        # In a pid namespace with a root of its own, the map is the one that
        # the process has under its own pid in its own root; a link there
        # leads nowhere else.
        root = self.path("root")
        os.makedirs(os.path.join(root, "tmp"))
        self.copy_with_libraries("jit", root)
        jits = []
        for _ in range(2):
            outer = self.start(
                ["unshare", "--pid", "--mount", "--fork", "--kill-child",
                 "--root", root, "/jit"], ready=True)
            pid = int(harness.read_text(
                "/proc/%d/task/%d/children" % (outer.pid, outer.pid)))
            inner = re.search(r"^NSpid:.*\t(\d+)$", harness.read_text(
                "/proc/%d/status" % pid), re.M).group(1)
            self.assertEqual(inner, "1")
            jits.append((pid, outer.output))
        pid, (first, second) = jits[0]
        harness.write_text(os.path.join(root, "tmp/perf-1.map"),
                           "%s %s\n%s %s\n" % (first, FIRST, second, SECOND))
        document = self.document("-F", 999, "-p", pid, 1)
        self.assert_leaves(document.leaves(pid), FIRST, SECOND)
        # The same file by a link from its root: not followed.
        shutil.move(os.path.join(root, "tmp/perf-1.map"), self.path("map"))
        os.symlink("../../map", os.path.join(root, "tmp/perf-1.map"))
        document = self.document("-F", 999, "-p", pid, 0.5)
        self.assert_leaves(document.leaves(pid), "(map-refused)")


if __name__ == "__main__":
    harness.main()
