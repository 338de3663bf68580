# SPDX-License-Identifier: Apache-2.0
"""The flame graph page in a real browser."""

import html
import os
import re
import shutil
import subprocess
import urllib.parse

import harness

HOT = "Hot"


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


class FlamegraphTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        if not chromium():
            self.skipTest("there is no chromium (Debian's package)")
        self.spin = self.workload("spin")
        self.page = self.path("out.html")
        run = self.profile("-F", 499, "-p", self.spin.pid, "-o", self.page,
                           0.7)
        self.emitted = run.summary()[1]

    def dom(self, **state):
        """The document as it is after its scripts have run, and the messages
        on the browser's console."""
        url = "file://%s#%s" % (self.page, urllib.parse.urlencode(state))
        run = subprocess.run(
            [chromium(), "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update",
             "--user-data-dir=" + self.path("browser"),
             "--window-size=1400,900", "--enable-logging=stderr",
             "--dump-dom", url],
            capture_output=True, timeout=60, check=True,
            env={**os.environ, "HOME": self.path("home")})
        console = [line for line in run.stderr.decode().splitlines()
                   if "CONSOLE" in line]
        return run.stdout.decode(), console

    @staticmethod
    def boxes(dom):
        """(classes, name) of each frame that is drawn."""
        return [(classes, html.unescape(name)) for classes, name in
                re.findall(r'<div class="(f[^"]*)"[^>]*>([^<]*)<', dom)]

    def test_draws_and_searches(self):
        # The page draws the stack, counts all samples, and finds a function
        # with its share, without a message on the console.
        dom, console = self.dom(search="^%s$" % HOT)
        self.assertEqual(console, [])
        boxes = self.boxes(dom)
        names = [name for _, name in boxes]
        for name in ["all", "spin", "main", "Outer", "Middle", HOT]:
            self.assertIn(name, names)
        hits = {name for classes, name in boxes if "hit" in classes.split()}
        self.assertEqual(hits, {HOT})
        self.assertIn("%d samples, 100.00 % of all".replace(
            "%d", str(self.emitted)), dom)
        share = re.search(r"matched: (\d+) \(([\d.]+) %\)", dom)
        self.assertGreater(float(share.group(2)), 90)
        self.assertLessEqual(int(share.group(1)), self.emitted)

    def test_groups_by_process(self):
        # Grouped by process the root's children carry the pid.
        dom, console = self.dom(group="process")
        self.assertEqual(console, [])
        self.assertIn(">spin-%d<" % self.spin.pid, dom)

    def test_difference(self):
        # The page of two profiles draws either one's widths, tells the change
        # of the whole, explains its colours, and lists what is gone.
        other = self.workload("deep", "50")
        before, after = self.path("before.json"), self.path("after.json")
        for process, path in (self.spin, before), (other, after):
            self.profile("-F", 499, "-p", process.pid, "-o", path, 0.5)
        subprocess.run([harness.PROFILER, "diff", before, after, "-o",
                        self.page], check=True)
        dom, console = self.dom()
        self.assertEqual(console, [])
        self.assertIn("more than before", dom)
        self.assertRegex(dom, r"[\d.]+ CPUs, before [\d.]+ \(")
        self.assertNotIn(HOT, [name for _, name in self.boxes(dom)])
        self.assertIn(">%s</span>" % HOT, dom)
        dom, console = self.dom(group="before")
        self.assertEqual(console, [])
        self.assertIn(HOT, [name for _, name in self.boxes(dom)])

    def test_wrong_expression(self):
        # What is no regular expression is said to be none.
        dom, console = self.dom(search="(")
        self.assertEqual(console, [])
        self.assertIn("not a regular expression", dom)


if __name__ == "__main__":
    harness.main()
