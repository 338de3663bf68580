# SPDX-License-Identifier: Apache-2.0
"""Raw captures: --raw and --replay."""

import os
import subprocess
import time

import harness
import reports

FORMATS = ["folded", "json", "text"]
# Some 300 samples of two busy CPUs.
SECONDS = 0.5


class ReplayTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        # What is replayed by nobody must be readable by nobody.
        programs = [self.start([self.program("spin")], ready=True),
                    self.start([self.program("shapes")], ready=True),
                    self.start([self.program("deep"), "300"], ready=True),
                    self.start(["dd", "if=/dev/urandom", "of=/dev/null",
                                "bs=64k"])]
        pids = ",".join(str(program.pid) for program in programs)
        self.filter = ["-F", 299, "-p", pids]
        self.raw = self.path("capture.raw")

    def replay_as_nobody(self, *arguments):
        profiler = self.copy(harness.PROFILER, "ksym-profile")
        done = subprocess.run(
            [*harness.as_nobody(), profiler, "-q", "--replay", self.raw,
             *map(str, arguments)],
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
            timeout=harness.RUN_SECONDS)
        self.assertEqual(done.stderr, b"")
        self.assertEqual(done.returncode, 0)
        return done.stdout

    def assert_same(self, *options):
        run = self.profile(*self.filter, *options, "--raw", self.raw,
                           SECONDS)
        self.assertGreater(run.summary()[1], 20)
        self.assertEqual(self.replay_as_nobody(*options), run.stdout)

    def test_equal_output(self):
        # Replayed by nobody without privilege, a capture gives byte for byte
        # what the capturing run wrote, in each format.
        for form in FORMATS:
            with self.subTest(form):
                self.assert_same("--format", form)

    def test_equal_output_with_options(self):
        # Also with the options that change what is printed.
        for options in [["--by", "tid", "-d", "-a"],
                        ["--format", "json", "--by", "tid", "-A"],
                        ["--format", "text", "-A", "-d", "--by", "pid"],
                        ["--no-demangle"]]:
            with self.subTest(options=options):
                self.assert_same(*options)

    def test_equal_output_without_kernel_names(self):
        # A capture that had no kernel names replays without them, whoever
        # replays it.
        self.set_sysctl("kernel.kptr_restrict", 2)
        run = self.profile(*self.filter, "--format", "json", "--raw",
                           self.raw, SECONDS)
        self.restore_sysctl("/proc/sys/kernel/kptr_restrict", "0")
        self.assertEqual(self.replay_as_nobody("--format", "json"),
                         run.stdout)
        replayed = self.profile("--format", "json", "--replay", self.raw)
        self.assertEqual(replayed.stdout, run.stdout)

    def test_equal_output_of_losses(self):
        # Losses and depth limits are part of a raw capture.
        for store in ["exact", "stackid"]:
            with self.subTest(store):
                run = self.profile(
                    *self.filter, "--format", "json", "--stack-map", store,
                    "--hash-storage-size", 1, "--max-stack-depth", 2,
                    "--raw", self.raw, SECONDS)
                samples = reports.Document(run.stdout).samples
                self.assertGreater(samples["lost"]["counts-full"], 0)
                self.assertGreater(samples["damaged"]["truncated"], 0)
                self.assertEqual(self.replay_as_nobody("--format", "json"),
                                 run.stdout)

    def test_every_format_of_one_capture(self):
        # One raw capture can be printed in every form, and to a file.
        self.profile(*self.filter, "--raw", self.raw, SECONDS)
        folded = self.folded("--replay", self.raw)
        document = self.document("--replay", self.raw)
        self.assertEqual(folded.total(), document.total())
        self.profile("--replay", self.raw, "-o", self.path("out.txt"))
        text = harness.read_text(self.path("out.txt"))
        counts = [int(line) for line in text.splitlines()
                  if line.startswith("        ")]
        self.assertEqual(sum(counts), folded.total())

    def test_after_the_programs_are_gone(self):
        # A program whose file is gone loses its names and says why; what
        # else there is stays.
        self.profile(*self.filter, "--raw", self.raw, SECONDS)
        os.unlink(self.path("spin"))
        document = self.document("--replay", self.raw)
        spin = [f for s in document.stacks if s["comm"] == "spin"
                for f in document.user(s)
                if f.get("module") == self.path("spin")]
        self.assertTrue(spin)
        self.assertEqual({f.get("reason") for f in spin}, {"gone"})
        self.assertEqual({f["name"] for f in spin}, {"[spin]"})
        self.assertIn("Bottom", {f["name"] for f in document.frames})

    def test_another_file_in_its_place(self):
        # A program that was replaced since gives no wrong names.
        self.profile(*self.filter, "--raw", self.raw, SECONDS)
        os.unlink(self.path("spin"))
        self.copy(os.path.join(harness.WORKLOADS, "paths"), "spin")
        document = self.document("--replay", self.raw)
        spin = [f for s in document.stacks if s["comm"] == "spin"
                for f in document.user(s)
                if f.get("module") == self.path("spin")]
        self.assertTrue(spin)
        self.assertEqual({f.get("reason") for f in spin}, {"file-changed"})

    def test_command(self):
        # The COMMAND form and --raw go together.
        run = self.profile("--raw", self.raw, "-F", 299, "--", "sh", "-c",
                           "timeout 1 %s; true" % self.path("spin"))
        replayed = self.profile("--replay", self.raw)
        self.assertEqual(replayed.stdout, run.stdout)

    def test_damaged_capture(self):
        # A raw capture with one changed byte, or cut off, is refused.
        self.profile(*self.filter, "--raw", self.raw, 0.3)
        data = harness.read_bytes(self.raw)
        for changed in [data[:-1], data + b"\0",
                        data[:100] + bytes([data[100] ^ 1]) + data[101:]]:
            with open(self.raw, "wb") as file:
                file.write(changed)
            run = self.profile_raw("--replay", self.raw)
            self.assert_failure(run, self.raw)

    def test_strict(self):
        # --strict asks what the capture lost.
        asleep = self.start(["sleep", "1000"])
        time.sleep(0.3)
        self.profile("-p", asleep.pid, "--raw", self.raw, 0.2)
        self.profile("--strict", "--replay", self.raw)
        self.profile(*self.filter, "--max-stack-depth", 5, "--raw", self.raw,
                     SECONDS)
        self.profile("--strict", "--replay", self.raw, status=3)


if __name__ == "__main__":
    harness.main()
