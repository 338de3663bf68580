# SPDX-License-Identifier: Apache-2.0
"""Captures whose symbols are somewhere else: --format markup, raw profiles and
ksym-symbolize --profile on a machine that finds files by build-id."""

import os
import re
import shutil
import subprocess

import harness

LLVM = shutil.which("llvm-symbolizer-19")
WORK = b"geometry::(anonymous namespace)::Grind()"


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def build_id_of(path):
    return re.search(r"Build ID: (\w+)", tool("readelf", "-n", path))[1]


class ElsewhereTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        # A stripped program whose debug file is hidden while it is sampled.
        self.prog = self.program("shapes")
        self.debug = self.path("shapes.debug")
        self.hidden = self.path("hidden")
        tool("objcopy", "--only-keep-debug", self.prog, self.debug)
        tool("strip", self.prog)
        tool("objcopy", f"--add-gnu-debuglink={self.debug}", self.prog)
        os.rename(self.debug, self.hidden)
        self.build_id = build_id_of(self.prog)
        workload = self.start([self.prog], ready=True)
        self.raw = self.path("capture.raw")
        with open(f"/proc/{workload.pid}/maps", encoding="utf-8") as maps:
            self.files = {line.split()[5] for line in maps
                          if " r-xp " in line and "/" in line}
        run = self.profile("-F", 299, "-p", workload.pid, "--format", "markup",
                           "--raw", self.raw, 2)
        self.assertGreater(run.summary()[1], 20)
        self.log = run.stdout
        workload.stop()

    def put(self, path, directory, suffix):
        build_id = build_id_of(path)
        target = os.path.join(directory, ".build-id", build_id[:2])
        os.makedirs(target, exist_ok=True)
        shutil.copy(path, os.path.join(target, build_id[2:] + suffix))

    def put_debug_file(self, path, directory):
        """The one that this machine has installed, if there is one."""
        build_id = build_id_of(path)
        below = os.path.join(".build-id", build_id[:2], build_id[2:] + ".debug")
        installed = os.path.join("/usr/lib/debug", below)
        if os.path.exists(installed):
            shutil.copy(installed, os.path.join(directory, below))

    def symbolize(self, *arguments, **options):
        done = subprocess.run([harness.SYMBOLIZER, *map(str, arguments)],
                              capture_output=True, check=False,
                              timeout=harness.RUN_SECONDS, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def tree(self):
        """Another machine's: the libraries, and of the program the debug file
        only. The program itself is gone."""
        directory = self.path("tree")
        for path in self.files - {self.prog}:
            self.put(path, directory, "")
            self.put_debug_file(path, directory)
        self.put(self.hidden, directory, ".debug")
        os.rename(self.prog, self.path("gone"))
        return directory

    def test_round_trip(self):
        # What was captured without symbols and named elsewhere by build-id is
        # what naming it in place, with all symbols, gives.
        os.rename(self.hidden, self.debug)
        direct = {form: self.profile("-q", "--replay", self.raw, "--format",
                                     form).stdout
                  for form in ("folded", "text", "json")}
        os.rename(self.debug, self.hidden)
        self.assertIn(WORK, direct["folded"])
        directory = self.tree()
        for form, expected in direct.items():
            with self.subTest(form):
                done = self.symbolize("--profile", self.raw, "--format", form,
                                      "--debug-file-directory", directory)
                self.assertEqual(done.stdout, expected)
                self.assertEqual(done.stderr, b"")

    def test_missing(self):
        # A file that is nowhere is listed once, by build-id and name.
        os.rename(self.prog, self.path("gone"))
        done = self.symbolize("--profile", self.raw, "--debug-file-directory",
                              self.path("empty"))
        self.assertNotIn(WORK, done.stdout)
        line = f"no symbols for {self.build_id} {self.prog} ".encode()
        self.assertEqual(done.stderr.count(line), 1, done.stderr)

    def test_gsym(self):
        # A GSYM file is enough for the program.
        gen = os.environ.get("GEN_GSYM")
        if not gen:
            self.skipTest("GEN_GSYM does not say where gen_gsym is")
        os.mkdir(self.path("gsym"))
        tool(gen, "--quiet", "-o", self.path(f"gsym/{self.build_id}.gsym"),
             os.path.join(harness.WORKLOADS, "shapes"))
        os.rename(self.prog, self.path("gone"))
        done = self.symbolize("--profile", self.raw, "--gsym-directory",
                              self.path("gsym"))
        self.assertIn(WORK, done.stdout)
        self.assertNotIn(b"shapes", done.stderr)

    def test_log(self):
        # The log has no names, begins each process with reset, and both
        # filters read it.
        self.assertNotIn(b"Grind", self.log)
        self.assertIn(b"{{{reset}}}\nprocess ", self.log)
        self.assertIn(b":elf:" + self.build_id.encode(), self.log)
        replayed = self.profile("-q", "--replay", self.raw, "--format",
                                "markup").stdout
        self.assertEqual(replayed, self.log)
        directory = self.path("debug")
        self.put(self.hidden, directory, ".debug")
        arguments = ["--filter-markup", "--color=never",
                     f"--debug-file-directory={directory}"]
        ours = self.symbolize(*arguments, "--kernel-symbols=/proc/kallsyms",
                              input=self.log)
        self.assertIn(WORK + b" ", ours.stdout)
        self.assertNotIn(b"no mmap covers", ours.stderr)
        if LLVM:
            theirs = subprocess.run([LLVM, *arguments], input=self.log,
                                    capture_output=True, check=True).stdout
            self.assertEqual(self.user_frames(ours.stdout),
                             self.user_frames(theirs))

    @staticmethod
    def user_frames(log):
        """LLVM has no names for the kernel, nor for what is in no file."""
        return [line for line in log.splitlines() if b"(/" in line and
                b"shapes" in line]


if __name__ == "__main__":
    harness.main()
