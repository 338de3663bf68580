# SPDX-License-Identifier: Apache-2.0
"""Without root: chosen capabilities, and none."""

import os
import subprocess

import harness
import reports

NEEDED = ["bpf", "perfmon"]
ALL = NEEDED + ["syslog", "sys_ptrace", "dac_read_search"]


class PrivilegeTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.need_command("setpriv")
        probe = subprocess.run([*harness.as_nobody(*ALL), "true"],
                               capture_output=True, check=False)
        if probe.returncode != 0:
            self.skipTest("cannot run as nobody with capabilities: %s"
                          % probe.stderr.decode().strip())
        # Names of the kernel shall depend on the capability alone.
        self.set_sysctl("kernel.kptr_restrict", 1)
        self.profiler = self.copy(harness.PROFILER, "ksym-profile")

    def as_nobody(self, capabilities, *arguments):
        command = [*harness.as_nobody(*capabilities), self.profiler,
                   *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, check=False,
                              stdin=subprocess.DEVNULL,
                              timeout=harness.RUN_SECONDS)
        return harness.Run(arguments, done.returncode, done.stdout,
                           done.stderr)

    def spin_as_nobody(self):
        return self.start([self.program("spin")], ready=True,
                          prefix=harness.as_nobody())

    def dd_as_nobody(self):
        return self.start(["dd", "if=/dev/urandom", "of=/dev/null", "bs=64k"],
                          prefix=harness.as_nobody())

    def profile_as_nobody(self, capabilities, *arguments):
        run = self.as_nobody(capabilities, "--format", "json", *arguments)
        self.assertEqual(run.status, 0, str(run))
        return run, reports.Document(run.stdout)

    def test_missing_capabilities(self):
        # Without the two that nothing works without: one line that names
        # which is missing.
        for capabilities, missing, present in [
                ([], ["CAP_BPF", "CAP_PERFMON"], []),
                (["bpf"], ["CAP_PERFMON"], ["CAP_BPF"]),
                (["perfmon"], ["CAP_BPF"], ["CAP_PERFMON"])]:
            with self.subTest(capabilities=capabilities):
                run = self.as_nobody(capabilities, 1)
                self.assert_failure(run, *missing)
                named = run.stderr.split(":")[1]
                for word in missing:
                    self.assertIn(word, named)
                for word in present:
                    self.assertNotIn(word, named)

    def test_command_without_privilege(self):
        # The command is not started when it cannot be profiled.
        run = self.as_nobody([], "--", "touch", self.path("started"))
        self.assert_failure(run, "CAP_BPF")
        self.assertNotIn("started", os.listdir(self.dir))

    def test_waits_with_two_capabilities(self):
        # On kernels before 5.18 the stacks of those that sleep all the time
        # cannot be read: there is the innermost frame and the reason.
        sleeper = self.start(["sleep", "1000"])
        for way in ("auto", "old"):
            with self.subTest(way):
                _, document = self.profile_as_nobody(
                    ["bpf", "perfmon"], "--off-cpu", "--wait-program", way,
                    "-p", sleeper.pid, 1)
                (stack,) = document.stacks
                self.assertGreater(stack["value"], 0.9e9)
                self.assertIn("[blocked: clock_nanosleep]",
                              document.names(stack))
                if way == "old":
                    self.assertEqual(
                        document.samples["user_stack_ends"]["bad-read"], 1)

    def test_two_capabilities(self):
        # With CAP_BPF and CAP_PERFMON: own programs have names, kernel frames
        # are [kernel], and one warning says why.
        spin, dd = self.spin_as_nobody(), self.dd_as_nobody()
        run, document = self.profile_as_nobody(
            NEEDED, "-F", 299, "-p", "%d,%d" % (spin.pid, dd.pid), 1)
        self.assertGreater(document.share(
            lambda s: "main;Outer;Middle;Hot" in ";".join(document.names(s)),
            lambda s: s["pid"] == spin.pid), 0.9)
        kernel = document.of_kind("kernel")
        self.assertTrue(kernel)
        self.assertEqual({f["name"] for f in kernel}, {"[kernel]"})
        self.assertEqual(len(run.warnings), 1, str(run))
        self.assertIn("CAP_SYSLOG", run.warnings[0])

    def test_syslog(self):
        # CAP_SYSLOG gives the kernel's names.
        dd = self.dd_as_nobody()
        run, document = self.profile_as_nobody(
            NEEDED + ["syslog"], "-F", 299, "-p", dd.pid, 1)
        self.assertEqual(run.warnings, [])
        names = {f["name"] for f in document.of_kind("kernel")}
        self.assertTrue(names)
        self.assertFalse(names & {"[kernel]", "[unknown]"})

    def test_programs_of_others(self):
        # A program of root has names with CAP_SYS_PTRACE and
        # CAP_DAC_READ_SEARCH; without, each frame says why it has none.
        spin = self.workload("spin")
        filtered = ["-F", 299, "-U", "-p", spin.pid, 1]
        _, document = self.profile_as_nobody(NEEDED, *filtered)
        self.assertGreater(document.samples["taken"], 5)
        self.assertTrue(all("reason" in f for f in document.frames))
        _, document = self.profile_as_nobody(ALL, *filtered)
        self.assertGreater(document.share(
            lambda s: "main;Outer;Middle;Hot" in ";".join(document.names(s))),
            0.9)

    def test_whole_machine_and_command(self):
        # Both forms work without root.
        _, document = self.profile_as_nobody(ALL, "-F", 299, 1)
        self.assertEqual(sum(document.samples["lost"].values()), 0)
        run, document = self.profile_as_nobody(
            NEEDED, "-F", 299, "--", "sh", "-c",
            "timeout 1 %s; true" % self.program("spin"))
        self.assertIn("exited with status 0", run.stderr)
        self.assertIn("Hot", {f["name"] for f in document.frames})

    def test_stackid_store(self):
        # The other store needs no more.
        spin = self.spin_as_nobody()
        _, document = self.profile_as_nobody(
            NEEDED, "-F", 299, "--stack-map", "stackid", "-p", spin.pid, 1)
        self.assertIn("Hot", {f["name"] for f in document.frames})


if __name__ == "__main__":
    harness.main()
