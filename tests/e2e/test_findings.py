# SPDX-License-Identifier: Apache-2.0
"""What the summary says stands between the user and the answer, and how code
without symbols is told apart."""

import os
import re
import signal
import shutil
import subprocess

import harness
import reports


class FindingsTest(harness.E2eTest):

    def stripped(self):
        """A program of several functions without any symbol, running."""
        program = self.program("calls")
        subprocess.run(["strip", "--strip-all", program], check=True)
        return program, self.start([program])

    def test_stripped_functions_stay_apart(self):
        # Functions without a symbol are told apart by where they begin, which
        # is where the symbols of the file that was not stripped begin; their
        # reason stays. A replay says the same.
        program, running = self.stripped()
        raw = self.path("raw")
        run = self.profile("-F", 999, "-p", running.pid, "--format", "json",
                           "--raw", raw, "1s")
        symbols = {int(line.split()[0], 16) for line in subprocess.run(
            ["nm", os.path.join(harness.WORKLOADS, "calls")], check=True,
            capture_output=True, text=True).stdout.splitlines()
            if line[:1].isdigit()}
        for document in [reports.Document(run.stdout),
                         self.document("--replay", raw)]:
            frames = [frame for frame in document.of_kind("user")
                      if frame.get("module") == program]
            starts = set()
            for frame in frames:
                if "reason" not in frame:  # a linkage stub
                    continue
                self.assertIn(frame["reason"], ("no-symbol", "no-symbols"))
                found = re.fullmatch(r"calls\+0x([0-9a-f]+)", frame["name"])
                self.assertTrue(found, frame)
                starts.add(int(found.group(1), 16))
            self.assertGreater(len(starts), 3)
            self.assertLessEqual(starts, symbols)

    def test_says_what_lacks_names(self):
        # The summary has the share of samples in code without a name, and of
        # each cause with its cure.
        program, running = self.stripped()
        run = self.profile("-F", 999, "-p", running.pid, "-o", "/dev/null",
                           "0.5s")
        shares = re.search(r"without a name: ([\d.]+) % of samples", run.stderr)
        self.assertGreater(float(shares.group(1)), 50)
        self.assertRegex(run.stderr, r" %% %s has no symbols for it: install "
                         r"its -dbgsym or -dbg package, or give --debuginfod"
                         % re.escape(program))
        quiet = self.profile("-q", "-p", running.pid, "-o", "/dev/null", "0.2s")
        self.assertEqual(quiet.stderr, "")

    def test_names_the_package(self):
        # For a file of a Debian package the summary names the package with its
        # symbols, if it is that file.
        python = os.path.realpath("/usr/bin/python3")
        if not os.path.exists("/var/lib/dpkg/info/libc6:amd64.list"):
            self.skipTest("dpkg does not know of libc6")
        if os.path.exists("/usr/lib/debug/.build-id"):
            self.skipTest("debug packages are installed")
        loop = self.start([python, "-c", "while 1: sum(range(9))"])
        run = self.profile("-F", 999, "-p", loop.pid, "-o", "/dev/null", "1s")
        if " has no symbols for it" not in run.stderr:
            self.skipTest("python3 has all its symbols")
        self.assertRegex(run.stderr, r"install python3[\w.]*-dbg")

    def test_says_what_generated_code_needs(self):
        # Code that node makes has a cure of its own.
        node = shutil.which("node")
        if node is None:
            self.skipTest("there is no node")
        loop = self.start([node, "-e", "let s = 0; function f(n) { let t = 0; "
                           "for (let i = 0; i < n; i++) t += i % 7; return t; }"
                           "for (;;) s += f(1000);"])
        run = self.profile("-F", 499, "--runtimes", "python", "-p", loop.pid,
                           "-o", "/dev/null", "2s")
        self.assertRegex(run.stderr,
                         r"code made at run time, without a perf map: start "
                         r"node with --perf-basic-prof")

    def test_says_how_long_it_ran(self):
        # The CPU time of what was chosen, and that one which hardly runs waits.
        spin = self.workload("spin")
        run = self.profile("-p", spin.pid, "-o", "/dev/null", "0.5s")
        ran = re.search(r"ran ([\d.]+) s of CPU time in ([\d.]+) s: ([\d.]+) "
                        r"of \d+ CPUs?", run.stderr)
        self.assertTrue(ran, str(run))
        self.assertGreater(float(ran.group(1)), 0)
        self.assertLess(float(ran.group(1)), 1)
        idle = self.start(["sh", "-c", "while :; do sleep 0.05; done"])
        run = self.profile("-F", 4999, "-p", idle.pid, "-o", "/dev/null", "1s")
        if run.summary()[0]:
            self.assertIn("-e context-switches -c 1 shows where", run.stderr)
        waits = self.profile("-e", "context-switches", "-c", 1, "-p", idle.pid,
                             "1s")
        self.assertIn(b"schedule", waits.stdout)


class NoSamplesTest(harness.E2eTest):

    def why(self, *arguments, status=0):
        run = self.profile(*arguments, status=status)
        self.assertEqual(run.summary()[0], 0, str(run))
        lines = [line for line in run.stderr_lines if "no sample: " in line]
        self.assertEqual(len(lines), 1, str(run))
        return lines[0]

    def test_slept(self):
        # A process and a thread that sleep, and one that is stopped.
        asleep = self.start(["sleep", "100"])
        harness.wait_for(lambda: harness.read_text(
            "/proc/%d/comm" % asleep.pid) == "sleep\n", "exec")
        self.assertIn("process %d slept" % asleep.pid,
                      self.why("-p", asleep.pid, "0.2s"))
        self.assertIn("thread %d slept" % asleep.pid,
                      self.why("-L", asleep.pid, "0.2s"))
        os.kill(asleep.pid, signal.SIGSTOP)
        self.assertIn("process %d is stopped" % asleep.pid,
                      self.why("-p", asleep.pid, "0.2s"))

    def test_ended(self):
        # One that ends while it is waited for.
        asleep = self.start(["sleep", "100"])
        running = self.background("-p", asleep.pid, "0.5s")
        running.wait_started()
        asleep.stop()
        run = running.finish()
        if run.summary()[0] == 0:
            self.assertIn("process %d does not exist any more" % asleep.pid,
                          run.stderr)

    def test_filter(self):
        # A cgroup without processes, and one that is a filter of maps.
        path = self.cgroup()
        self.assertIn("there is no process in cgroup " + path,
                      self.why("--cgroup", path, "0.2s"))
        asleep = self.start(["sleep", "100"])
        harness.write_text(path + "/cgroup.procs", str(asleep.pid))
        self.assertIn("the processes of cgroup %s slept" % path,
                      self.why("--cgroup", path, "0.2s"))


if __name__ == "__main__":
    harness.main()
