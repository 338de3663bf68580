# SPDX-License-Identifier: Apache-2.0
"""Kernel symbols that come and go while ksym-profile samples."""

import os
import re
import time

import harness
import reports

TAG = re.compile(r"^[0-9a-f]{16}$")


def resident_kb(pid):
    text = harness.read_text("/proc/%d/status" % pid)
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1))


class KernelSymbolsTest(harness.E2eTest):

    def wait_done(self, workload):
        line = workload.process.stdout.readline().decode()
        self.assertEqual(line, "done\n")

    def test_program_loaded_and_unloaded_within(self):
        # A BPF program that exists for a part of the capture has its name
        # and its tag in its own process's stacks, and in no others.
        report = self.path("report.json")
        running = self.background("-F", 499, "-o", report)
        running.wait_started()
        time.sleep(0.3)
        burner = self.workload("bpf_burner", "ksym_burn", "burn", 1.5)
        self.wait_done(burner)
        time.sleep(0.3)
        running.signal(harness.signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        document = reports.Document(harness.read_bytes(report))

        def burns(stack):
            return "bpf_prog_ksym_burn" in document.names(stack)

        # On an emulated machine there are few.
        self.assertGreater(document.total(burns), 30)
        for stack in document.stacks:
            if burns(stack):
                self.assertEqual(stack["comm"], "ksym_burn")
        frames = [f for f in document.frames
                  if f["name"] == "bpf_prog_ksym_burn"]
        for frame in frames:
            self.assertEqual(frame["module"], "[bpf]")
            self.assertRegex(frame["build_id"], TAG)

        def reasons(stack):
            return {f.get("reason") for f in document.kernel(stack)} - {None}

        # libbpf tries the kernel out with programs of its own, whose place may
        # be the one that the program gets within the same interval: then that
        # interval, which is long on a busy machine, has no name for it.
        self.assertLess(document.share(
            lambda s: reasons(s) - {"ambiguous"},
            lambda s: s["comm"] == "ksym_burn"), 0.02)

    def test_program_from_before(self):
        # One that was there before the capture is known from the table, and
        # is still known while its last samples are named.
        burner = self.workload("bpf_burner", "ksym_before", "burn", 2)
        time.sleep(0.5)
        folded = self.folded("-F", 499, 2.5)
        self.wait_done(burner)
        self.assertGreater(
            folded.share("ksym_before", "bpf_prog_ksym_before"), 0.5)

    def test_slow_table(self):
        # A capture goes on while the kernel takes long to write its table: a
        # program that came, went and was deleted meanwhile has its names.
        table, report = self.path("kallsyms"), self.path("report.json")
        os.mkfifo(table)
        running = self.background(
            "-F", 299, "-o", report,
            prefix=["unshare", "-m", "sh", "-c",
                    'mount --bind "$0" /proc/kallsyms && exec "$@"', table])
        running.wait_started()
        time.sleep(1.5)  # by now naming would wait for it
        program = self.program("spin", "short_lived")
        spin = self.start([program], ready=True)
        time.sleep(1)
        spin.stop()
        os.unlink(program)
        with open(table, "wb") as pipe:
            pipe.write(harness.read_bytes("/proc/kallsyms"))
        time.sleep(0.5)
        running.signal(harness.signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        document = reports.Document(harness.read_bytes(report))
        leaves = document.leaves(pid=spin.pid)
        self.assertGreater(leaves["Hot"], 100, leaves)
        self.assertGreater(document.share(
            lambda s: all("reason" not in f for f in document.kernel(s)),
            lambda s: s["kernel"]), 0.9)

    def test_storm(self):
        # Programs that come and go 1000 times, at places that they inherit
        # from each other: nothing is lost uncounted, no frame has the name of
        # another's program, and memory stays flat.
        report = self.path("report.json")
        # Without unwind tables: they grow with whatever else runs here.
        running = self.background("-F", 999, "--unwind", "fp", "-o", report)
        running.wait_started()
        names = ["ksym_storm_a", "ksym_storm_b"]
        early = [self.workload("bpf_burner", name, "storm", 50)
                 for name in names]
        for burner in early:
            self.wait_done(burner)
        before = resident_kb(running.process.pid)
        late = [self.workload("bpf_burner", name, "storm", 500)
                for name in names]
        for burner in late:
            self.wait_done(burner)
        after = resident_kb(running.process.pid)
        running.signal(harness.signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        # Document checks taken = emitted + lost.
        document = reports.Document(harness.read_bytes(report))
        self.assertLess(after - before, 4096)
        for name in names:
            program = "bpf_prog_" + name
            owners = {s["comm"] for s in document.stacks
                      if program in document.names(s)}
            self.assertLessEqual(owners, {name})
        named = document.total(
            lambda s: any(n.startswith("bpf_prog_ksym_storm")
                          for n in document.names(s)))
        self.assertGreater(named, 10)


if __name__ == "__main__":
    harness.main()
