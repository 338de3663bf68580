#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""night.py PROFILER DIRECTORY PROFILED LOAD [--docs]: docs/night.md, tried: a
night of half a minute in which a server is slow for one second, the page in
Chromium, where the spike and its cause are found, and each command of the
document. DIRECTORY/pictures gets the document's pictures, and with --docs so does
docs/pictures. Needs root."""

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import web_test

ROOT = os.path.dirname(os.path.dirname(web_test.HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/e2e"))
import cgroups  # pylint: disable=wrong-import-position

PROFILED, LOAD = sys.argv[3:5]
DOCS = os.path.join(ROOT, "docs")
DOCUMENT = os.path.join(DOCS, "night.md")
CALM_SECONDS = 12
# Units and their shares of a CPU. The first one has the spike.
UNITS = {"shop": 8, "search": 20, "mail": 14}
CULPRIT = "compare_prices"
CALLERS = ["sort_prices", "reload_prices", "find_price", "handle_request",
           "serve", "main"]
PICTURES = ["night-map.png", "night-functions.png", "night-callers.png"]
MOST_PICTURE_BYTES = 60_000
CLOCK = re.compile(r"\d\d:\d\d(:\d\d)?")
RANGE = re.compile(f"@{CLOCK.pattern}\\.\\.{CLOCK.pattern}")


def commands(text):
    """The lines of the document's blocks that begin with the profiler's name,
    as lists of arguments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines
            if line.startswith("ksym-profile ")]


class Night(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ksym-night-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.history = os.path.join(self.dir, "history")
        self.socket = os.path.join(self.dir, "http.sock")

    def begin(self, command, **options):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def begin_service(self):
        config = os.path.join(self.dir, "config.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({
                "frequency_hz": 99, "interval_seconds": 1,
                "stacks": {"cache_directory": ""}, "files": {"directory": ""},
                "push_spool": {"directory": os.path.join(self.dir, "push")},
                "history": {"enabled": True, "directory": self.history},
                "http": {"listen": [f"unix:{self.socket}"]}}, file)
        with open(os.path.join(self.dir, "log"), "w",
                  encoding="utf-8") as stderr:
            self.begin([PROFILED, "--config", config], stderr=stderr)
        self.wait_for(self.is_serving, "service")

    def is_serving(self):
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(self.socket) == 0

    def wait_for(self, condition, what):
        for _ in range(240):
            if condition():
                return
            time.sleep(0.25)
        self.fail(f"there is no {what} within a minute")

    def begin_unit(self, unit, *arguments):
        """A server in a cgroup as systemd makes one for a unit. Where that is
        permitted it has the CPU as on a calm machine, whatever else runs."""
        cgroup = os.path.join(self.slice, f"{unit}.service")
        os.mkdir(cgroup)
        self.addCleanup(cgroups.remove, cgroup)
        program = os.path.join(self.dir, unit)
        shutil.copy(LOAD, program)
        server = self.begin([program, *map(str, arguments)],
                            stdout=subprocess.PIPE, text=True)
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(server.pid, os.SCHED_RR, os.sched_param(1))
        self.addCleanup(server.stdout.close)
        with open(os.path.join(cgroup, "cgroup.procs"), "w",
                  encoding="utf-8") as file:
            file.write(str(server.pid))
        return server

    def have_a_night(self):
        """When its spike begins and ends."""
        self.slice = os.path.join(cgroups.second_version(),
                                  f"night-{os.getpid()}")
        os.mkdir(self.slice)
        self.addCleanup(cgroups.remove, self.slice)
        (slow, share), *others = UNITS.items()
        for unit in others:
            self.begin_unit(*unit)
        server = self.begin_unit(slow, share, CALM_SECONDS)
        begin, end = map(float, server.stdout.readline().split())
        time.sleep(CALM_SECONDS)
        self.wait_for(lambda: self.is_kept(end + CALM_SECONDS - 2),
                      "history of all of it")
        return begin, end

    def is_kept(self, second):
        """Whether the history has what ran in that second."""
        return subprocess.run(
            [web_test.PROFILER, "history", self.history, "--from",
             str(int(second)), "--to", str(int(second) + 1)],
            capture_output=True, check=False).returncode == 0

    def test_document(self):
        """The spike of a night and its cause are found as the document says:
        on the page, and by each of its commands."""
        with open(DOCUMENT, encoding="utf-8") as file:
            text = file.read()
        self.begin_service()
        begin, end = self.have_a_night()
        self.look_at_page(begin, end)
        self.look_at_pictures(text)
        self.run_commands(commands(text), int(begin), int(end) + 1)

    def look_at_page(self, begin, end):
        ui = self.begin([web_test.PROFILER, "ui", "--no-browser", "--socket",
                         self.socket], stdout=subprocess.PIPE, text=True)
        self.addCleanup(ui.stdout.close)
        story = {"unit": next(iter(UNITS)) + ".service", "culprit": CULPRIT,
                 "callers": CALLERS, "begin": begin, "end": end,
                 "calm": CALM_SECONDS}
        self.pictures = os.path.join(web_test.DIRECTORY, "pictures")
        os.makedirs(self.pictures, exist_ok=True)
        print("\n" + web_test.node("night.mjs", ui.stdout.readline().strip(),
                                   json.dumps(story), self.pictures).strip())

    def look_at_pictures(self, text):
        self.assertEqual(re.findall(r"!\[[^]]+\]\(pictures/(.+?)\)", text),
                         PICTURES)
        kept = os.path.join(DOCS, "pictures")
        for name in PICTURES:
            if "--docs" in sys.argv:
                os.makedirs(kept, exist_ok=True)
                shutil.copy(os.path.join(self.pictures, name), kept)
            self.assertLessEqual(os.path.getsize(os.path.join(kept, name)),
                                 MOST_PICTURE_BYTES, name)

    def run_commands(self, all_arguments, begin, end):
        """Each but the page's names the culprit or its unit, or draws its bar,
        of this night's times instead of the document's and of this history."""
        times = {"--from": begin, "--to": end,
                 "--before-from": begin - CALM_SECONDS + 2,
                 "--before-to": begin}
        # A curve is of the spike and what is around it.
        times_of_curves = {"--from": begin - CALM_SECONDS,
                           "--to": end + CALM_SECONDS - 2}
        self.assertIn(["ui"], all_arguments)
        others = [each for each in all_arguments if each != ["ui"]]
        self.assertGreater(len(others), 4)
        for arguments in others:
            of_it = times_of_curves if "--series" in arguments else times
            words = [str(of_it[before]) if CLOCK.fullmatch(word) else word
                     for before, word in zip(["", *arguments], arguments)]
            if words[0] == "report":
                words[1] = RANGE.sub(f"{self.history}@{begin}..{end}", words[1])
            else:
                words.insert(1, self.history)
            with self.subTest(" ".join(arguments)):
                said = self.output_of(words)
                if "--docs" in sys.argv and "-o" not in words:
                    print(" ".join(arguments), said, sep="\n")
                self.assertIn(next(iter(UNITS)) if "--by" in words else
                              "#" if "--series" in words else
                              CALLERS[0] if "--callers" in words else CULPRIT,
                              said)

    def output_of(self, words):
        """What it prints, or writes to the file of -o."""
        done = subprocess.run([web_test.PROFILER, *words], cwd=self.dir,
                              text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        if "-o" not in words:
            return done.stdout
        name = words[words.index("-o") + 1]
        with open(os.path.join(self.dir, name), encoding="utf-8") as file:
            return file.read()


def why_not():
    """The reason to skip this, or None."""
    why = web_test.install_packages()
    if not why and os.geteuid() != 0:
        why = "the service needs root"
    if not why and cgroups.second_version() is None:
        why = "there are no cgroups of the second version to write to"
    return why


if __name__ == "__main__":
    if why_not():
        print("skipped:", why_not())
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
