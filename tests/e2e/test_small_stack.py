# SPDX-License-Identifier: Apache-2.0
"""Programs under a limit of 128 KiB on stacks, which a shell, a unit or a
container may have set."""

import os
import resource
import signal
import subprocess
import time

import harness
import reports
import service_harness

STACK_BYTES = 128 << 10
GEN_GSYM = os.environ.get("GEN_GSYM") or os.path.join(
    harness.SOURCE_DIR, "build/release/gen/gen_gsym")
GEN_KSYM = os.path.join(os.path.dirname(GEN_GSYM), "gen_ksym")
# As deep as a name of 1,024 bytes can nest, which is the longest one shown.
DEEP_NAME = "_Z1f" + "P" * 1015 + "i"


def limit_stack():
    harness.die_with_parent()
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, STACK_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class SmallStackTest(service_harness.ServiceCase):

    def run_program(self, *arguments):
        done = subprocess.run(
            [*map(str, arguments)], stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=harness.RUN_SECONDS,
            preexec_fn=limit_stack)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def test_capture_and_files(self):
        # A capture with lines, its replay, and every format that it can be
        # turned into.
        self.workload("spin")
        raw = self.path("capture.raw")
        folded = reports.Folded(self.run_program(
            harness.PROFILER, "--lines", "--inlines", "--raw", raw,
            "--format", "folded", "0.5"))
        self.assertGreater(folded.share("spin", "main;Outer;Middle;Hot"), 0.9)
        pprof = self.path("capture.pb.gz")
        self.run_program(harness.PROFILER, "--replay", raw, "-o", pprof)
        for form in ["folded", "text", "json", "pprof", "flamegraph", "svg",
                     "speedscope", "perf-script"]:
            with self.subTest(form):
                self.run_program(harness.PROFILER, "convert", pprof,
                                 "--format", form, "-o", self.path("out"))
        self.assertIn(b"Hot", self.run_program(harness.PROFILER, "report",
                                               pprof))
        self.run_program(harness.PROFILER, "diff", pprof, pprof, "-o",
                         self.path("out.html"))
        self.assertIn(b"Hot", self.run_program(
            harness.SYMBOLIZER, "--profile", raw, "--format", "folded"))

    def test_command(self):
        # A program that is started has the limit as it was.
        self.run_program(harness.PROFILER, "-q", "-o", self.path("out.folded"),
                         "--", "sh", "-c", "ulimit -s > " + self.path("limit"))
        self.assertEqual(int(harness.read_text(self.path("limit"))),
                         STACK_BYTES >> 10)

    def test_signal(self):
        # The signal that ends a capture still does so, with its report.
        output = self.path("out.folded")
        with subprocess.Popen(
                [harness.PROFILER, "-o", output, "60"],
                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                preexec_fn=limit_stack) as process:
            process.stderr.readline()  # "Sampling at"
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 0, said)
        reports.Folded(harness.read_bytes(output))

    def test_generators(self):
        # Symbol files are made, and read.
        gsym, kernel = self.path("spin.gsym"), self.path("kernel.ksym")
        self.run_program(GEN_GSYM, self.program("spin"), "-o", gsym)
        self.run_program(GEN_GSYM, "--verify", gsym, self.program("spin"))
        self.run_program(GEN_KSYM, "/proc/kallsyms", "-o", kernel)
        self.run_program(GEN_KSYM, "--stats", kernel)

    def test_deep_name(self):
        # The deepest name that is demangled.
        self.need_command("gcc")
        source, library = self.path("deep.c"), self.path("deep.so")
        harness.write_text(
            source, 'int F(void) __asm__("%s");\nint F(void) { return 1; }\n'
            % DEEP_NAME)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source],
                       check=True)
        symbols = subprocess.run(["nm", library], check=True, text=True,
                                 capture_output=True).stdout
        address = next(line.split()[0] for line in symbols.splitlines()
                       if DEEP_NAME in line)
        name = self.run_program(harness.SYMBOLIZER, "-e", library,
                                "0x" + address)
        self.assertIn(b"f(int***", name)

    def test_service(self):
        # It samples, names, writes, answers and ends.
        self.workload("spin")
        self.configure(format="folded")
        service = service_harness.Service(
            ["sh", "-c", "ulimit -s %d; exec \"$@\"" % (STACK_BYTES >> 10),
             "sh", service_harness.SERVICE, "--config", self.config_path])
        self.addCleanup(service.kill)
        service.wait_log("a profile every")
        files = self.wait_files(3)
        folded = reports.Folded(harness.read_bytes(files[1]))
        self.assertGreater(folded.share("spin", "main;Outer;Middle;Hot"), 0.9)
        status, body = self.get("/profile?seconds=2&format=json")
        self.assertEqual(status, 200)
        reports.Document(body)
        self.assertLess(service.end(), 3)
        self.assertEqual(service.process.returncode, 0, service.log())
        self.totals(service)


if __name__ == "__main__":
    harness.main()
