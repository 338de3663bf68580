# SPDX-License-Identifier: Apache-2.0
"""What is sampled, and how often: hot paths, events, rates, depths."""

import json
import re
import subprocess

import harness
import reports

HOT_PATH = "main;Outer;Middle;Hot"


class HotPathTest(harness.E2eTest):

    def test_hot_path_among_real_programs(self):
        # The hot path of a program with frame pointers dominates its samples
        # while a compiler, an interpreter and a copy from the kernel run, and
        # of those each leaf is at least placed in its file.
        for command in ["gcc", "/usr/bin/python3", "dd", "openssl"]:
            self.need_command(command)
        self.workload("spin")
        self.workload("shapes")
        self.start(["dd", "if=/dev/urandom", "of=/dev/null", "bs=1M"])
        self.start(["/usr/bin/python3", "-c",
                    "while True: sum(i * i for i in range(1000))"])
        self.start(["openssl", "speed", "-seconds", "60", "sha256"])
        self.start_compiler()
        out = self.path("out.folded")
        raw = self.path("out.raw")
        self.profile("-F", 199, "-o", out, "--raw", raw, 4)
        folded = reports.Folded(harness.read_bytes(out))
        self.assertGreater(folded.share("spin", HOT_PATH), 0.9)
        self.assertGreater(folded.share(
            "shapes", "geometry::Polygon<long, 3ul>::Area(long) const"), 0.9)
        self.assertGreater(sum(count for _, count in folded.of("dd")), 20)

        document = self.document("--replay", raw)
        self.assert_kernel_is_named(document)
        self.assert_leaves_in(document, "python3", r"/python3[.0-9]*$|/libc")
        self.assert_leaves_in(document, "cc1", r"/cc1$|/lib")
        # For small blocks it spends a fifth of its time in malloc and free.
        self.assert_leaves_in(document, "openssl",
                              r"/libcrypto|/openssl$|/libc\.")

    def start_compiler(self):
        source = self.path("big.c")
        harness.write_text(source, "".join(
            "int f%d(int x) { int s = 0; for (int i = 0; i < x; ++i) "
            "s += i * %d ^ x; return s; }\n" % (i, i) for i in range(4000)))
        self.start(["sh", "-c", "while gcc -O2 -S -o /dev/null %s; do :; done"
                    % source])

    def assert_kernel_is_named(self, document):
        kernel = document.of_kind("kernel")
        names = {frame["name"] for frame in kernel}
        self.assertNotIn("[unknown]", names)
        self.assertNotIn("[kernel]", names)
        self.assertTrue(any("urandom" in name or "chacha" in name
                            or "get_random_bytes" in name for name in names),
                        names)
        for frame in kernel:
            self.assertRegex(frame["module"], r"^\[.+\]$")

    def assert_leaves_in(self, document, comm, module):
        def mine(stack):
            return stack["comm"] == comm and stack["user"]

        def placed(stack):
            leaf = document.user(stack)[-1]
            return (leaf["kind"] == "python"
                    or re.search(module, leaf.get("module", "")) is not None)
        self.assertGreater(document.total(mine), 10, comm)
        # A compiler that has just ended has no mappings to read.
        self.assertGreater(document.share(placed, mine), 0.8, comm)

    def test_both_stack_stores(self):
        # Both stores show the same hot path and say in the metadata which.
        spin = self.workload("spin")
        for store in ["exact", "stackid"]:
            with self.subTest(store):
                document = self.document("--stack-map", store, "-F", 499,
                                         "-p", spin.pid, 1)
                self.assertEqual(document.metadata["stack_store"], store)
                self.assertGreater(document.share(
                    lambda s: HOT_PATH in ";".join(document.names(s))), 0.9)
                self.assertEqual(
                    sum(document.samples["lost"].values()), 0)

    def test_auto_takes_the_exact_store(self):
        # A kernel with BPF ring buffers gets the exact store by itself.
        for arguments in [[], ["--stack-map", "auto"]]:
            document = self.document(*arguments, 0.1)
            self.assertEqual(document.metadata["stack_store"], "exact")


class RateTest(harness.E2eTest):

    def cpu_ns(self, pid):
        fields = harness.read_text("/proc/%d/schedstat" % pid).split()
        return int(fields[0])

    def test_frequency(self):
        # -F HZ takes HZ samples per second of CPU time, and says so.
        spin = self.workload("spin")
        for hz in [99, 999]:
            with self.subTest(hz):
                before = self.cpu_ns(spin.pid)
                document = self.document("-e", "cpu-clock", "-F", hz,
                                         "-p", spin.pid, 2)
                used = (self.cpu_ns(spin.pid) - before) / 1e9
                self.assertEqual(document.metadata["frequency_hz"], hz)
                self.assertNotIn("count_period", document.metadata)
                # The process also ran before and after the sampling.
                self.assertLess(document.samples["taken"],
                                used * hz * 1.2 + 5)
                self.assertGreater(document.samples["taken"],
                                   used * hz * 0.4 - 5)

    def test_default_is_99_hz(self):
        # Without -F the rate is 99 Hz.
        document = self.document(0.2)
        self.assertEqual(document.metadata["frequency_hz"], 99)

    def test_count(self):
        # -c N takes a sample every N events: of cpu-clock, nanoseconds.
        spin = self.workload("spin")
        before = self.cpu_ns(spin.pid)
        document = self.document("-e", "cpu-clock", "-c", 5_000_000,
                                 "-p", spin.pid, 2)
        used = self.cpu_ns(spin.pid) - before
        self.assertEqual(document.metadata["count_period"], 5_000_000)
        self.assertNotIn("frequency_hz", document.metadata)
        self.assertLess(document.samples["taken"], used / 5e6 * 1.2 + 5)
        self.assertGreater(document.samples["taken"], used / 5e6 * 0.4 - 5)

    def test_rate_above_the_limit(self):
        # A rate that the kernel does not allow is refused with the cure.
        self.assert_failure(self.profile_raw("-F", 2**40, 1),
                            "kernel.perf_event_max_sample_rate")

    def test_duration(self):
        # DURATION takes fractions, and is what was sampled.
        for seconds in [0.05, 0.7]:
            document = self.document(seconds)
            duration = document.metadata["duration_ns"] / 1e9
            self.assertGreaterEqual(duration, seconds)
            self.assertLess(duration, seconds + 10)


class EventTest(harness.E2eTest):

    def test_default_event(self):
        # The event that was really used is printed and in the metadata.
        run = self.profile("--format", "json", 0.2)
        event = reports.Document(run.stdout).metadata["event"]
        self.assertIn(event, ["cycles", "cpu-clock"])
        self.assertIn("event " + event, run.stderr)

    def test_clocks(self):
        # Both clocks sample the running program.
        spin = self.workload("spin")
        for event in ["cpu-clock", "task-clock"]:
            with self.subTest(event):
                document = self.document("-e", event, "-F", 199,
                                         "-p", spin.pid, 1)
                self.assertEqual(document.metadata["event"], event)
                self.assertGreater(document.samples["taken"], 5)

    def test_page_faults(self):
        # -e page-faults samples where pages are touched, and nothing else.
        faults = self.workload("faults")
        document = self.document("-e", "page-faults", "-c", 100,
                                 "-p", faults.pid, 1)
        self.assertEqual(document.metadata["event"], "page-faults")
        self.assertGreater(document.samples["taken"], 10)
        self.assertGreater(document.share(
            lambda s: document.user(s)[-1:]
            and document.user(s)[-1]["name"] == "TouchPages"), 0.95)

    def test_cycles(self):
        # -e cycles works where there is a PMU; elsewhere it fails and names
        # what to do instead.
        default = self.document(0.1).metadata["event"]
        run = self.profile_raw("-e", "cycles", "--format", "json", 0.2)
        if default == "cycles":
            self.assertEqual(run.status, 0, str(run))
            event = reports.Document(run.stdout).metadata["event"]
            self.assertEqual(event, "cycles")
        else:
            self.assert_failure(run, "cycles", "hardware counter",
                                "-e cpu-clock")


class DepthTest(harness.E2eTest):

    def deepest(self, document):
        return max((len(stack["user"]) for stack in document.stacks),
                   default=0)

    def test_default_limit(self):
        # 600 frames are cut at 127, and the cut is flagged and counted.
        deep = self.workload("deep", 600)
        raw = self.path("raw")
        document = self.document("-F", 199, "-p", deep.pid, "--raw", raw, 1)
        self.assertEqual(self.deepest(document), 127)
        self.assertEqual(document.metadata["max_stack_depth"], 127)
        self.assertGreater(document.samples["damaged"]["truncated"], 0)
        self.assertEqual(document.samples["damaged"]["truncated"],
                         document.total(
                             lambda s: s["user_state"] == "truncated"))
        self.assertEqual(document.metadata["warnings"], [])
        folded = self.folded("--replay", raw)
        self.assertGreater(folded.share("deep", "[truncated];Descend"), 0.9)
        self.assertGreater(folded.share("deep", "Descend;Bottom"), 0.9)

    def test_small_limit(self):
        # A limit of 5 keeps the 5 innermost frames.
        deep = self.workload("deep", 50)
        for store in ["exact", "stackid"]:
            with self.subTest(store):
                document = self.document(
                    "-F", 199, "--max-stack-depth", 5, "--stack-map", store,
                    "-p", deep.pid, 1)
                self.assertEqual(self.deepest(document), 5)
                self.assertGreater(document.share(
                    lambda s: [f["name"] for f in document.user(s)]
                    == ["Descend"] * 4 + ["Bottom"]), 0.9)

    def test_one_frame(self):
        # The smallest limit keeps the leaf, and one call more is cut.
        deep = self.workload("deep", 2)
        document = self.document("-F", 199, "--max-stack-depth", 1, "-p",
                                 deep.pid, 1)
        self.assertEqual(self.deepest(document), 1)
        self.assertGreater(document.share(
            lambda s: document.user(s)[0]["name"] == "Bottom"
            and s["user_state"] == "truncated"), 0.9)

    def test_raised_limit(self):
        # With the kernel's limit raised 512 frames are kept, in both stores,
        # and a shallower stack is whole.
        self.set_sysctl("kernel.perf_event_max_stack", 512)
        for store in ["exact", "stackid"]:
            with self.subTest(store):
                document = self.profile_depth(512, 600, store)
                self.assertEqual(self.deepest(document), 512)
                document = self.profile_depth(512, 400, store)
                self.assertGreater(self.deepest(document), 400)
                self.assertEqual(document.samples["damaged"]["truncated"], 0)

    def profile_depth(self, limit, depth, store):
        deep = self.workload("deep", depth)
        document = self.document(
            "-F", 199, "--max-stack-depth", limit, "--stack-map", store, "-p",
            deep.pid, 1)
        deep.stop()
        self.assertEqual(document.metadata["max_stack_depth"], limit)
        self.assertEqual(document.metadata["warnings"], [])
        return document

    def test_limit_above_the_kernels(self):
        # More than the kernel walks: one warning that names the sysctl, and
        # the capture goes on with what the kernel gives. Walking by tables
        # knows no such limit.
        self.set_sysctl("kernel.perf_event_max_stack", 127)
        deep = self.workload("deep", 600)
        run = self.profile("-F", 199, "--max-stack-depth", 512, "--unwind",
                           "fp", "--format", "json", "-p", deep.pid, 1)
        self.assertEqual(len(run.warnings), 1, str(run))
        self.assertIn("kernel.perf_event_max_stack", run.warnings[0])
        document = reports.Document(run.stdout)
        self.assertEqual(self.deepest(document), 127)
        self.assertEqual(len(document.metadata["warnings"]), 1)
        self.assertGreater(document.samples["damaged"]["truncated"], 0)
        document = self.document("-F", 199, "--max-stack-depth", 512, "-p",
                                 deep.pid, 1)
        self.assertEqual(self.deepest(document), 512)
        self.assertEqual(document.metadata["warnings"], [])


class RestTest(harness.E2eTest):

    def test_leaves_nothing_behind(self):
        # After a capture no BPF program or map of it is loaded.
        self.need_command("bpftool")
        before = self.loaded()
        self.profile(0.3)
        self.profile("--", "true")
        harness.wait_for(lambda: self.loaded() <= before, "programs to go")

    @staticmethod
    def loaded():
        """Ids of the programs that a capture loads."""
        shown = subprocess.run(["bpftool", "-j", "prog", "show"], check=True,
                               capture_output=True).stdout
        return {program["id"] for program in json.loads(shown)
                if program.get("name", "").startswith(("sample_", "follow_"))}


if __name__ == "__main__":
    harness.main()
