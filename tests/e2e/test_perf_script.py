# SPDX-License-Identifier: Apache-2.0
"""Names beside perf's: perf record and perf script on programs with frame
pointers, and ours for the very addresses that perf script printed."""

import collections
import functools
import json
import os
import re
import subprocess

import harness

# A place in a file, its symbol without the offset, the file.
FRAME = re.compile(r"^\s+([0-9a-f]+) (.+) \((.*)\)$")


def plain(name):
    """Without the version of a dynamic symbol, which is no part of a name."""
    return re.sub(r"@@?[A-Z][\w.]*$", "", name)


def address_of(pid, path, offset):
    """Where the process has that byte of the file as code."""
    for line in harness.read_text("/proc/%d/maps" % pid).splitlines():
        fields = line.split(None, 5)
        if "x" not in fields[1] or fields[-1] != path:
            continue
        start, end = (int(text, 16) for text in fields[0].split("-"))
        begin = int(fields[2], 16)
        if begin <= offset < begin + end - start:
            return start + offset - begin
    raise AssertionError("%s has no code at %#x" % (path, offset))


def debug_file(path):
    """Where Debian puts what was stripped from the file."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True,
                           text=True, check=False).stdout
    build_id = re.search(r"Build ID: (..)(\w+)", notes)
    return ("/usr/lib/debug/.build-id/%s/%s.debug" % build_id.groups()
            if build_id else "/nowhere")


@functools.cache
def aliases(path):
    """The sets of names that have one start, from the file's tables."""
    names = collections.defaultdict(set)
    for options in [path], ["-D", path], [debug_file(path)]:
        table = subprocess.run(["nm", "--defined-only", *options],
                               capture_output=True, text=True, check=False)
        for line in table.stdout.splitlines():
            start, kind, name = line.split(" ", 2)
            if kind in "tTwWiuV":
                names[start].add(plain(name))
    return list(names.values())


class PerfScriptTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        for command in "perf", "nm", "readelf":
            self.need_command(command)
        version = subprocess.run(["perf", "--version"], capture_output=True,
                                 check=False)
        if version.returncode != 0:
            self.skipTest("perf does not work here: %s" %
                          version.stderr.decode().strip())

    def perf(self, *arguments):
        done = subprocess.run(
            ["perf", *arguments], capture_output=True, text=True, check=False,
            errors="replace", stdin=subprocess.DEVNULL, cwd=self.dir,
            env=dict(os.environ, HOME=self.dir, LC_ALL="C"),
            timeout=harness.RUN_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout

    def frames_of_perf(self, pids):
        """{pid: [(address, name, file)]}, each frame once; perf script prints
        it by its place in the file. The name may be None."""
        self.perf("record", "-q", "-e", "cpu-clock:u", "-F", "1999", "-g",
                  "-p", ",".join(map(str, pids)), "-o", "perf.data", "--",
                  "sleep", "1")
        text = self.perf("script", "--no-demangle", "-i", "perf.data", "-F",
                         "pid,ip,sym,dso")
        frames = {pid: set() for pid in pids}
        pid = None
        for line in text.splitlines():
            if line.strip().isdigit():
                pid = int(line)
            found = FRAME.match(line)
            # What a program starts is recorded with it.
            if found and found.group(3).startswith("/") and pid in frames:
                offset, name, path = found.groups()
                frames[pid].add((int(offset, 16), None if name == "[unknown]"
                                 else name, path))
        return {pid: [(address_of(pid, path, offset), name, path)
                      for offset, name, path in sorted(places, key=str)]
                for pid, places in frames.items()}

    def our_names(self, pid, addresses):
        done = subprocess.run(
            [harness.SYMBOLIZER, "-p", str(pid), "--json", "--no-demangle"],
            input="".join("%x\n" % address for address in addresses),
            check=True, capture_output=True, text=True,
            timeout=harness.RUN_SECONDS)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        return [answer["Symbol"][0]["FunctionName"] for answer in answers]

    def test_same_names(self):
        # Where both have a name it is the same, or another one of the same
        # function; those are printed.
        programs = [self.workload("spin"), self.workload("shapes"),
                    self.workload("paths"), self.workload("deep", 60),
                    self.workload("threads", 8),
                    self.start(["openssl", "speed", "-seconds", "30",
                                "sha256", "rsa2048"]),
                    self.start(["python3", "-c", "while 1: "
                                "sorted(str(i) for i in range(10000))"])]
        named = unnamed = by_us_only = 0
        same = set()
        by_pid = self.frames_of_perf([program.pid for program in programs])
        for pid, frames in by_pid.items():
            ours = self.our_names(pid, [f[0] for f in frames])
            for (address, name, path), our in zip(frames, ours):
                if name is None or not our:
                    unnamed += name is not None
                    by_us_only += bool(our) and name is None
                    continue
                named += 1
                if plain(name) == plain(our):
                    continue
                both = {plain(name), plain(our)}
                known = aliases(path)
                self.assertTrue(any(both <= names for names in known),
                                "%#x in %s: perf says %s, we say %s" % (
                                    address, path, name, our))
                same.add("%s (perf), %s (ours)" % (name, our))
        for names in sorted(same):
            print("one function: " + names)
        print("%d frames with the same name, %d that only perf names, %d that "
              "only we name" % (named, unnamed, by_us_only))
        self.assertGreater(named, 30)
        # What perf names has a name.
        self.assertEqual(unnamed, 0)


if __name__ == "__main__":
    harness.main()
