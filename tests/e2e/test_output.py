# SPDX-License-Identifier: Apache-2.0
"""What is written, where, and in which form."""

import os
import pty
import re
import shutil
import stat
import subprocess

import harness
import reports

GEN_GSYM = os.environ.get("GEN_GSYM") or os.path.join(
    harness.SOURCE_DIR, "build/release/gen/gen_gsym")
HOT_PATH = "main;Outer;Middle;Hot"
TEXT_BLOCK = re.compile(
    r"(?:    \S.*\n)+    -                \S.* \(\d+\)\n        \d+\n")


def pprof_command():
    """Go's pprof, as a command; None where there is none."""
    if shutil.which("pprof"):
        return ["pprof"]
    go = shutil.which("go")
    if not go:
        return None
    tool = subprocess.run([go, "tool", "-n", "pprof"], capture_output=True)
    return None if tool.returncode else [tool.stdout.decode().strip()]


class FormatTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.spin = self.workload("spin")
        self.dd = self.start(
            ["dd", "if=/dev/urandom", "of=/dev/null", "bs=64k"])
        self.filter = ["-F", 499, "-p",
                       "%d,%d" % (self.spin.pid, self.dd.pid)]

    def test_folded(self):
        # Folded is the default, -f and --format folded; comm comes first.
        for arguments in [[], ["-f"], ["--format", "folded"],
                          ["-f", "--format", "folded"]]:
            with self.subTest(arguments=arguments):
                folded = self.folded(*self.filter, *arguments, 0.7)
                self.assertEqual(folded.owners(), {"spin", "dd"})
                self.assertGreater(folded.share("spin", HOT_PATH), 0.9)

    def test_json(self):
        # JSON is one document of the schema, which counts every sample.
        document = self.document(*self.filter, 0.7)
        self.assertEqual(document.pids(), {self.spin.pid, self.dd.pid})
        self.assertFalse(any("address" in f for f in document.frames))
        hot = [f for f in document.frames if f["name"] == "Hot"]
        self.assertTrue(hot)
        for frame in hot:
            self.assertEqual(frame["module"],
                             os.path.realpath("/proc/%d/exe" % self.spin.pid))
            self.assertIn("build_id", frame)

    def test_pprof(self):
        # pprof itself opens the file, and counts every sample in it.
        pprof = pprof_command()
        if not pprof:
            self.skipTest("there is no pprof (Debian's golang-go has one)")
        path = self.path("out.pb.gz")
        run = self.profile(*self.filter, "-o", path, 0.7)
        text = subprocess.run(
            [*pprof, "-sample_index=samples", "-top", path],
            check=True, capture_output=True,
            env={**os.environ, "HOME": self.path("home")}).stdout.decode()
        self.assertIn("Type: samples", text)
        total = re.search(r"of (\d+) total", text)
        self.assertEqual(int(total.group(1)), run.summary()[1])
        self.assertRegex(text, r"(?m)^ *\d+ +[\d.]+% .* Hot$")

    def test_pprof_is_not_for_terminals(self):
        # Bytes that are no text are kept from a terminal.
        control, terminal = pty.openpty()
        try:
            run = self.profile_raw("--format", "pprof", 0.1, stdout=terminal)
        finally:
            os.close(control)
            os.close(terminal)
        self.assert_failure(run, "terminal", "-o FILE")

    def test_text(self):
        # Text has bcc's blocks, and only those.
        run = self.profile(*self.filter, "--format", "text", 0.7)
        text = run.stdout.decode()
        blocks = text.split("\n\n")
        self.assertEqual(blocks.pop(), "")
        for block in blocks:
            self.assertTrue(TEXT_BLOCK.fullmatch(block + "\n"), block)
        counts = [int(block.splitlines()[-1]) for block in blocks]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual(sum(counts), run.summary()[1])
        self.assertRegex(text, r"    Hot\+0x[0-9a-f]+ \[spin\]\n"
                               r"    Middle\+0x[0-9a-f]+ \[spin\]\n"
                               r"    Outer\+0x[0-9a-f]+ \[spin\]\n"
                               r"    main\+0x[0-9a-f]+ \[spin\]\n")
        self.assertIn("- %s spin (%d)" % (" " * 14, self.spin.pid), text)

    def test_delimiter(self):
        # -d puts a mark between user and kernel frames where both are.
        folded = self.folded(*self.filter, "-d", 0.7)
        marked = [frames for frames, _ in folded.of("dd") if "-" in frames]
        self.assertTrue(marked)
        for frames in marked:
            self.assertEqual(frames.count("-"), 1)
            self.assertNotIn(frames.index("-"), [0, len(frames) - 1])
        text = self.profile(*self.filter, "-d", "--format", "text", 0.7)
        self.assertIn(b"\n    --\n", text.stdout)

    def test_annotations(self):
        # -a ends kernel frames, and no others, in _[k].
        folded = self.folded(*self.filter, "-a", "-d", 0.7)
        for frames, _ in folded.of("spin"):
            if "-" not in frames:
                continue
            split = frames.index("-")
            self.assertFalse([f for f in frames[:split] if "_[k]" in f])
        marked = [frames for frames, _ in folded.of("dd") if "-" in frames]
        self.assertTrue(marked)
        for frames in marked:
            split = frames.index("-")
            self.assertFalse([f for f in frames[:split]
                              if f.endswith("_[k]")], frames)
            self.assertFalse([f for f in frames[split + 1:]
                              if not f.endswith("_[k]")], frames)

    def test_addresses(self):
        # -A shows addresses: of the kernel's half for kernel frames.
        document = self.document(*self.filter, "-A", 0.7)
        for frame in document.frames:
            self.assertEqual(int(frame["address"], 16) >> 63,
                             int(frame["kind"] == "kernel"))
        text = self.profile(*self.filter, "-A", "--format", "text", 0.7)
        self.assertRegex(text.stdout.decode(),
                         r"    0x0000[0-9a-f]{12} Hot\+0x")

    def test_by(self):
        # --by says what the first frame is.
        tids = {"comm": "dd", "pid": "dd-%d" % self.dd.pid,
                "tid": "dd-%d/%d" % (self.dd.pid, self.dd.pid)}
        for by, owner in tids.items():
            with self.subTest(by):
                folded = self.folded(*self.filter, "--by", by, 0.7)
                self.assertIn(owner, folded.owners())
                self.assertEqual(len(folded.owners()), 2)
        document = self.document(*self.filter, "--by", "tid", 0.5)
        self.assertTrue(all("tid" in s for s in document.stacks))


class OutputFileTest(harness.E2eTest):

    def assert_format(self, path, form):
        data = harness.read_bytes(path)
        if form == "json":
            reports.Document(data)
        elif form == "folded":
            self.assertGreater(reports.Folded(data).total(), 0)
        else:
            self.assertRegex(data, rb"\n        \d+\n")

    def test_extensions(self):
        # The extension of -o names the format; --format goes before it.
        self.workload("spin")
        for name, arguments, form in [
                ("a.folded", [], "folded"), ("a.json", [], "json"),
                ("a.txt", [], "text"), ("a.other", ["-f"], "folded"),
                ("json", [], "folded"),
                ("b.txt", ["--format", "json"], "json"),
                ("b.json", ["-f"], "folded")]:
            with self.subTest(name):
                run = self.profile("-o", self.path(name), *arguments, 0.3)
                self.assertEqual(run.stdout, b"")
                self.assert_format(self.path(name), form)
        self.assertEqual(len(os.listdir(self.dir)), 7)

    def test_appears_whole(self):
        # The old file stays until the new one is complete; then no temporary
        # file is left, and the file has the usual mode.
        target = self.path("out.folded")
        harness.write_text(target, "old\n")
        old = os.stat(target).st_ino
        running = self.background("-o", target, umask=0o022)
        running.wait_started()
        self.assertEqual(harness.read_bytes(target), b"old\n")
        running.signal(harness.signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        self.assertEqual(os.listdir(self.dir), ["out.folded"])
        self.assertNotEqual(os.stat(target).st_ino, old)
        self.assertEqual(stat.S_IMODE(os.stat(target).st_mode), 0o644)
        self.check_folded(run, harness.read_bytes(target))

    def test_symbolic_link_stays(self):
        # The file behind a symbolic link is replaced, not the link.
        os.mkdir(self.path("real"))
        harness.write_text(self.path("real/out"), "old\n")
        os.symlink("real/out", self.path("link.folded"))
        self.profile("-o", self.path("link.folded"), 0.3)
        self.assertTrue(os.path.islink(self.path("link.folded")))
        self.assertNotEqual(harness.read_bytes(self.path("real/out")),
                            b"old\n")

    def test_device_stays(self):
        # A device is written to, never replaced.
        device = self.path("null")
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        for arguments in [["-o", device], ["--raw", device]]:
            with self.subTest(arguments=arguments):
                run = self.profile_raw(*arguments, 0.3)
                if "Permission denied" in run.stderr:
                    self.skipTest("devices do not work in " + self.dir)
                self.assertEqual(run.status, 0, str(run))
                self.assertTrue(stat.S_ISCHR(os.stat(device).st_mode))
                self.assertEqual(os.listdir(self.dir), ["null"])

    def test_failed_run_leaves_nothing(self):
        # A capture that could not start leaves no file behind.
        run = self.profile_raw("-o", self.path("out"), "--raw",
                               self.path("raw"), "--", self.path("no-program"))
        self.assertEqual(run.status, 1, str(run))
        self.assertIn("no-program", run.stderr_lines[-1])
        self.assertEqual(os.listdir(self.dir), [])

    def test_standard_output(self):
        # "-o -" is standard output.
        spin = self.workload("spin")
        folded = self.folded("-o", "-", "-F", 199, "-p", spin.pid, 0.5)
        self.assertEqual(folded.owners(), {"spin"})


class StandardStreamsTest(harness.E2eTest):

    def test_closed_pipe(self):
        # A reader that went away ends the report without a word or a core.
        self.workload("spin")
        for arguments in [[], ["--format", "json"], ["--", "true"]]:
            with self.subTest(arguments=arguments):
                read, write = os.pipe()
                os.close(read)
                run = self.profile_raw(
                    "-q", *(arguments if "--" in arguments
                            else [*arguments, 0.5]), stdout=write)
                os.close(write)
                self.assertEqual(run.stderr, "")
                self.assertEqual(run.status, 0, str(run))

    def test_reader_of_a_part(self):
        # So does a reader that takes the first line only.
        self.workload("paths")
        run = self.shell('"$0" -q -F 999 1 | head -n 1; '
                         'exit "${PIPESTATUS[0]}"')
        self.assertEqual(run.stderr, b"")
        self.assertEqual(run.returncode, 0)

    def shell(self, script, *arguments):
        """bash's run of a script, in which $0 is the profiler."""
        return subprocess.run(
            ["bash", "-c", script, harness.PROFILER, *arguments],
            capture_output=True, check=False, timeout=harness.RUN_SECONDS)

    def test_no_standard_output(self):
        # Without descriptor 1 there is nowhere to report to: status 1.
        run = self.shell('exec "$0" -q 0.3 >&-')
        self.assertEqual(run.returncode, 1)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)

    def test_no_standard_streams(self):
        # A closed standard descriptor is never taken for one of our files.
        raw, out = self.path("raw"), self.path("out")
        run = self.shell('exec "$0" -q --raw "$1" 0.3 >&-', raw)
        self.assertEqual(run.returncode, 1, run.stderr)
        if os.path.exists(raw):
            self.profile("--replay", raw)
        run = self.shell('exec "$0" -o "$1" 0.3 <&- >&- 2>&-', out)
        self.assertEqual(run.returncode, 0)
        reports.Folded(harness.read_bytes(out))

    def test_no_standard_streams_of_tools(self):
        # Nor is it by the tools: without stdin no addresses come, and not the
        # bytes of the program; what is read has a number of its own.
        closed = "<&- >&- 2>&-"
        run = subprocess.run(
            ["bash", "-c", 'exec "$0" -e "$1" <&-', harness.SYMBOLIZER,
             self.program("spin")],
            capture_output=True, check=False, timeout=harness.RUN_SECONDS)
        self.assertEqual((run.returncode, run.stdout), (0, b""), run)
        table = self.path("spin.gsym")
        for arguments in ["-o", "--verify"]:
            run = self.shell('exec "$1" -q %s "$2" "$3" %s' % (
                arguments, closed), GEN_GSYM, table, self.program("spin"))
            self.assertEqual(run.returncode, 0 if arguments == "-o" else 1)
        fifo = self.path("kallsyms")
        os.mkfifo(fifo)
        with subprocess.Popen(
                ["bash", "-c", 'exec "$0" "$1" -o "$2" ' + closed,
                 os.path.join(os.path.dirname(GEN_GSYM), "gen_ksym"), fifo,
                 self.path("kernel.ksym")]) as process:
            with open(fifo, "wb"):  # until then it waits in open(2)
                streams = ["/proc/%d/fd/%d" % (process.pid, fd)
                           for fd in (0, 1, 2)]
                self.assertEqual([os.readlink(path) for path in streams],
                                 3 * ["/dev/null"])
            process.wait(harness.RUN_SECONDS)

    def test_unwritable_stderr(self):
        # Who does not listen to stderr gets the report all the same.
        out = self.path("out")
        for redirection in ["2>&-", "2>/dev/full", "2> >(true)"]:
            with self.subTest(redirection):
                run = self.shell('exec "$0" -o "$1" 0.3 ' + redirection, out)
                self.assertEqual(run.returncode, 0)
                reports.Folded(harness.read_bytes(out))
                os.unlink(out)
        run = self.shell('"$0" 0.3 2>&1 | head -c 10 >/dev/null; '
                         'exit "${PIPESTATUS[0]}"')
        self.assertEqual(run.returncode, 0)
        run = self.shell('exec "$0" -C 4000 0.3 2>&-')
        self.assertEqual(run.returncode, 1)

    def test_help_cannot_be_written(self):
        # Help that nobody can read is a failure.
        for option in ["--help", "--version"]:
            with self.subTest(option):
                run = self.shell('exec "$0" %s >/dev/full' % option)
                self.assertEqual(run.returncode, 1)

    def test_full_device(self):
        # A report that could not be written is a failure with a reason.
        with open("/dev/full", "wb") as full:
            spin = self.workload("spin")
            run = self.profile_raw("-q", "-p", spin.pid, 0.5, stdout=full)
        self.assertEqual(run.status, 1, str(run))
        self.assertIn("No space left on device", run.stderr)
        self.assertEqual(len(run.stderr_lines), 1)

    def test_quiet(self):
        # -q: nothing on stderr, the same on stdout.
        run = self.profile("-q", 0.3)
        self.assertEqual(run.stderr, "")
        self.check_folded(run)

    def test_quiet_keeps_errors(self):
        # -q does not hide why there is no report.
        self.assert_failure(self.profile_raw("-q", "-C", "4000", 1), "4000")

    def test_verbose(self):
        # -v says more than a run without it, and still ends in the summary.
        plain = self.profile(0.3)
        self.assertTrue(all(line.startswith("ksym-profile: ")
                            for line in plain.stderr_lines), str(plain))
        verbose = self.profile("-v", 0.3)
        self.assertGreater(len(verbose.stderr_lines),
                           len(plain.stderr_lines))
        self.assertIsNotNone(verbose.summary())
        self.check_folded(verbose)

    def test_terminal(self):
        # On a terminal one line is redrawn while sampling; it is gone in the
        # end, and stdout has no part of it.
        master, slave = pty.openpty()
        with open(self.path("out"), "wb") as out, subprocess.Popen(
                [harness.PROFILER, "2"], stdout=out, stderr=slave,
                stdin=subprocess.DEVNULL) as process:
            os.close(slave)
            written = b""
            while True:
                try:
                    data = os.read(master, 65536)
                except OSError:  # the other end is closed
                    data = b""
                if not data:
                    break
                written += data
        os.close(master)
        self.assertEqual(process.returncode, 0)
        self.assertRegex(
            written,
            rb"\r[0-9.]+ s, \d+ samples, \d+ distinct stacks, \d+ lost")
        screen = [re.split(rb"\r\x1b\[K|\r", line)[-1]
                  for line in written.replace(b"\r\n", b"\n").split(b"\n")]
        self.assertEqual([line for line in screen if line
                          and not line.startswith(b"ksym-profile: ")], [])
        reports.Folded(harness.read_bytes(self.path("out")))


class DocumentTest(harness.E2eTest):

    def test_metadata(self):
        # The metadata describe this machine and this capture.
        host = os.uname()
        metadata = self.document("-F", 49, 0.5).metadata
        self.assertEqual(metadata["hostname"], host.nodename)
        self.assertEqual(metadata["kernel_release"], host.release)
        self.assertEqual(metadata["architecture"], host.machine)
        self.assertEqual(metadata["frequency_hz"], 49)
        self.assertEqual(
            metadata["cpus"],
            harness.read_text("/sys/devices/system/cpu/online").strip())
        version = self.profile("--version").stdout.decode().split()[1]
        self.assertEqual(metadata["version"], version)
        self.assertGreater(metadata["samples"]["time_enabled_ns"], 0)

    def test_start_time(self):
        # start_unix_ns is when the first sample could be taken.
        before = harness.time.time_ns()
        metadata = self.document(0.5).metadata
        self.assertGreaterEqual(metadata["start_unix_ns"], before)
        self.assertLess(metadata["start_unix_ns"] + metadata["duration_ns"],
                        harness.time.time_ns())


if __name__ == "__main__":
    harness.main()
