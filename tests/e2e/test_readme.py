# SPDX-License-Identifier: Apache-2.0
"""README's table of troubles: each command, as it stands there, on a machine
that has the trouble. The first screen of what it makes names the culprit."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import harness
from test_terminal import at_terminal

HEADING = "## What is wrong with this host?"
ROW = re.compile(r"^\| (.+?) \| `ksym-profile (.+)` \|$")
# README says 10 seconds; they are as good in less.
SECONDS = "2"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# The names of a page's table of functions, from its first row on: their titles
# are not shortened.
FUNCTION = re.compile(r'<div role="gridcell"[^>]* title="([^"]+)"')
SCREEN_ROWS = 24
# A request that sorts what it could look up, and the line that it does it in.
APP = """
import sys
import time

def quick_part():
    return sum(range(100))

def slow_request(turns):
    total = 0
    for i in range(turns):
        total += i * i % 7
    return total

end = time.process_time() + float(sys.argv[1])
print("ready", flush=True)
while time.process_time() < end:
    quick_part()
    slow_request(int(sys.argv[2]))
"""
# One that waits for another.
IDLE_APP = """
import time

def wait_for_backend():
    time.sleep(0.05)

def handle():
    wait_for_backend()

print("ready", flush=True)
while True:
    handle()
"""
LINES = [APP.split("\n").index(line) + 1 for line in APP.split("\n")
         if "range(turns)" in line or "total +=" in line]


def readme_commands():
    """{trouble: command} of the table."""
    text = harness.read_text(os.path.join(harness.SOURCE_DIR, "README.md"))
    section = text[text.index(HEADING) + len(HEADING):]
    lines = section[:section.index("\n## ")].splitlines()
    return dict(match.groups() for match in map(ROW.match, lines) if match)


class ReadmeTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        if CHROMIUM is None:
            self.skipTest("there is no chromium (Debian's package)")
        self.commands = readme_commands()
        self.app = self.path("app.py")
        harness.write_text(self.app, APP)

    def app_command(self, seconds, turns):
        return ["/usr/bin/python3", self.app, str(seconds), str(turns)]

    def start_app(self):
        """One that is slow until the test ends."""
        return self.start(self.app_command(1000, 20000), ready=True)

    def run_row(self, trouble, **placeholders):
        """Runs the command of that trouble and returns the page that it
        wrote."""
        command = self.commands.pop(trouble)
        arguments = [SECONDS if word == "10" else word
                     for word in shlex.split(command)]
        for name, words in placeholders.items():
            self.assertIn(name, arguments)
            at = arguments.index(name)
            arguments[at:at + 1] = map(str, words)
        _, errors = at_terminal(80, *arguments, cwd=self.dir)
        page = arguments[arguments.index("-o") + 1]
        if arguments[0] != "diff":
            self.assertIn("wrote " + page, errors.splitlines()[-1])
        self.assertLessEqual(len(errors.splitlines()), SCREEN_ROWS, errors)
        return self.path(page)

    def functions(self, page):
        """As the page shows them first, those with the most time on top."""
        directory = self.path("browser")
        dom = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--user-data-dir=" + directory,
             "--window-size=1200,800", "--virtual-time-budget=5000",
             "--dump-dom", "file://" + page],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120,
            check=True).stdout.decode()
        return FUNCTION.findall(dom)

    def check(self, page, culprit):
        """The first function of the page's table."""
        functions = self.functions(page)
        self.assertTrue(functions, "a page without functions")
        self.assertRegex(functions[0], culprit)

    def check_idle(self, trouble):
        """What waits is in the kernel, and the page says whose call it was."""
        path = self.path("idle.py")
        harness.write_text(path, IDLE_APP)
        app = self.start(["/usr/bin/python3", path], ready=True)
        page = self.run_row(trouble, PID=[app.pid])
        self.check(page, "^hrtimer_nanosleep$")
        self.assertIn("wait_for_backend (idle.py)", self.functions(page))

    def test_commands(self):
        # All of them, so that README gets none that is not tried.
        cgroup = self.cgroup()  # removed when the workload has ended
        spin = self.workload("spin")
        with self.subTest("the CPU is busy"):
            page = self.run_row(
                "the CPU is busy, and I do not know with what")
            self.check(page, "^Hot$")
        harness.write_text(os.path.join(cgroup, "cgroup.procs"), str(spin.pid))
        app = self.start_app()
        with self.subTest("one process"):
            page = self.run_row("one process is slow", PID=[app.pid])
            self.check(page, r"^slow_request \(app\.py\)$")
        with self.subTest("which line"):
            page = self.run_row("which line of the code?", PID=[app.pid])
            lines = "|".join(map(str, LINES))
            self.check(page, rf"^slow_request \(app\.py:({lines})\)$")
        with self.subTest("one cgroup"):
            page = self.run_row("one container or unit takes too much",
                                PATH=[cgroup])
            self.check(page, "^Hot$")
            self.assertNotIn("slow_request", "".join(self.functions(page)))
        app.stop()
        with self.subTest("a command"):
            page = self.run_row("this command is slow",
                                COMMAND=self.app_command(1, 20000))
            self.check(page, r"^slow_request \(app\.py\)$")
        with self.subTest("a new version"):
            for name, seconds, turns in [("old.json", 1, 10),
                                         ("new.json", 2, 20000)]:
                self.profile("-o", self.path(name), "--",
                             *self.app_command(seconds, turns))
            page = self.run_row("what did the new version change?")
            self.check(page, r"^slow_request \(app\.py\)$")
        self.check_idle("a process is slow but idle: where does it wait?")
        self.assertEqual(self.commands, {})


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        print("skipped: needs a Python whose functions have names")
        sys.exit(harness.SKIPPED)
    harness.main()
