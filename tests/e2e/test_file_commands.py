# SPDX-License-Identifier: Apache-2.0
"""ksym-profile report, diff and convert on real captures, and what other
programs say of what they write."""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import xml.etree.ElementTree

import harness

HOT = "Hot"
OUTPUTS = ["out.folded", "out.json", "out.txt", "out.pb.gz", "out.html",
           "out.svg", "out.speedscope.json", "out.perf"]


class FileCommandsTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.spin = self.workload("spin")
        self.json = self.path("capture.json")
        self.raw = self.path("capture.raw")
        run = self.profile("-F", 1999, "-p", self.spin.pid, "-o", self.json,
                           "--raw", self.raw, 0.5)
        self.emitted = run.summary()[1]
        self.assertGreater(self.emitted, 20)

    def run_command(self, *arguments, data=None, status=0):
        """Runs it as nobody and returns what it prints."""
        profiler = self.copy(harness.PROFILER, "ksym-profile")
        given = {"stdin": subprocess.DEVNULL} if data is None else {
            "input": data}
        done = subprocess.run(
            [*harness.as_nobody(), profiler, *map(str, arguments)],
            capture_output=True, check=False, timeout=harness.RUN_SECONDS,
            **given)
        self.assertEqual(done.returncode, status, done)
        return done.stdout, done.stderr.decode()

    def convert(self, name):
        """The capture in the format that the name says."""
        profiler = [harness.PROFILER, "convert", self.json, "-o",
                    self.path(name)]
        subprocess.run(profiler, check=True)
        return self.path(name)

    def test_report(self):
        # The table has the hottest function first and every sample, whichever
        # format it is made of.
        for source in [self.json, self.raw, *map(self.convert, [
                "out.folded", "out.pb.gz", "out.perf"])]:
            with self.subTest(source=source):
                table, errors = self.run_command("report", source, "--top", 0)
                heading, _, *rows = table.decode().splitlines()
                self.assertEqual(errors, "")
                self.assertTrue(
                    heading.startswith("%d samples" % self.emitted), heading)
                self.assertEqual(rows[0].split()[4], HOT)
                self.assertEqual(sum(int(row.split()[2]) for row in rows),
                                 self.emitted)

    def rows(self, *arguments):
        """The table's lines as words: shares, counts, name."""
        table, _ = self.run_command("report", *arguments)
        return [line.split() for line in table.decode().splitlines()[2:]]

    def test_selections(self):
        # By command, by callers and of what matches only.
        self.assertEqual(self.rows(self.json, "--by", "comm")[0][3:],
                         [str(self.emitted), "spin"])
        callers = self.rows(self.json, "--callers", HOT)
        self.assertEqual(callers[0][4], "Middle")
        self.assertGreater(float(callers[0][0]), 99)
        self.assertIn("main", [row[4] for row in callers])
        hot = self.rows(self.json, "--filter", "^(Hot|Middle)$")
        self.assertEqual(hot[0][4], HOT)
        self.assertLessEqual(int(hot[0][3]), self.emitted)
        for option, word in [("--filter", "no sample"),
                             ("--callers", "no function nowhere")]:
            _, errors = self.run_command("report", self.json, option, "nowhere")
            self.assertIn(word, errors)
        for option in (["--filter", "a(b"], ["--by", "command"]):
            self.run_command("report", self.json, *option, status=2)

    def test_several_files(self):
        # Files and directories are added up, for diff on both sides; what was not
        # sampled in the same way is not.
        directory = self.path("directory")
        os.makedirs(directory + "/below")
        for target in ("directory/a.json", "directory/below/b.json"):
            shutil.copy(self.json, self.path(target))
        harness.write_text(directory + "/notes.txt", "no profile")
        harness.write_text(directory + "/broken.json", "{")
        for path in (directory, directory + "/below"):
            os.chmod(path, 0o755)
        twice, errors = self.run_command("report", directory)
        self.assertIn("broken.json", errors)
        self.assertEqual(twice, self.run_command("report", self.json,
                                                 self.json)[0])
        self.assertTrue(twice.decode().startswith(
            "%d samples" % (2 * self.emitted)))
        for arguments in ([directory, self.json],
                          [self.json, self.json, "--", self.json, directory]):
            same, _ = self.run_command("diff", *arguments)
            self.assertIn(b"no function differs", same)
        self.run_command("diff", self.json, self.json, self.json, status=2)
        self.run_command("diff", "--", self.json, status=2)
        other = self.path("other.json")
        self.profile("-F", 99, "-p", self.spin.pid, "-o", other, 0.3)
        _, errors = self.run_command("report", self.json, other, status=1)
        self.assertIn("not sampled in the same way", errors)
        os.mkdir(self.path("empty"))
        _, errors = self.run_command("report", self.path("empty"), status=1)
        self.assertIn("no profile is in it", errors)

    def test_diff_of_commands(self):
        # Commands are compared by their CPU seconds, although one of them was
        # longer and did the same.
        spin = os.path.join(harness.WORKLOADS, "spin")
        for name, wait in [("short.json", 0), ("long.json", 1)]:
            self.profile("-F", 499, "-o", self.path(name), "--", "sh", "-c",
                         "timeout 1 %s; sleep %d" % (spin, wait))
        table, _ = self.run_command("diff", self.path("short.json"),
                                    self.path("long.json"), "--by", "comm")
        self.assertIn(b"self time in CPU seconds; all: ", table)
        page = self.path("page.html")
        self.run_command("diff", self.path("short.json"),
                         self.path("long.json"), "-o", page)
        self.assertIn('"unit":"CPU seconds"', harness.read_text(page))

    def test_fits_the_terminal(self):
        # Names are shortened to the terminal's width; a pipe gets all of them.
        for columns in (60, 200):
            for arguments in (["report", self.json],
                              ["diff", self.json, self.path("o.json")]):
                if "diff" in arguments:
                    other = self.workload("deep", "50")
                    self.profile("-F", 1999, "-p", other.pid, "-o",
                                 self.path("o.json"), 0.3)
                ours, theirs = pty.openpty()
                fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                            struct.pack("HHHH", 24, columns, 0, 0))
                with subprocess.Popen([harness.PROFILER, *arguments],
                                      stdin=subprocess.DEVNULL,
                                      stdout=theirs) as child:
                    os.close(theirs)
                    text = b""
                    while True:
                        try:
                            text += os.read(ours, 65536)
                        except OSError:
                            break
                os.close(ours)
                self.assertEqual(child.returncode, 0)
                lines = re.sub(r"\x1b\[[\d;]*m", "", text.decode()).splitlines()
                self.assertLessEqual(max(map(len, lines[1:])), columns, lines)

    def test_colours(self):
        # The hottest line is coloured at a terminal, and nowhere else unless
        # it is asked for; what is printed is the same otherwise.
        def at_terminal(*options):
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                        struct.pack("HHHH", 24, 500, 0, 0))
            with subprocess.Popen(
                    [harness.PROFILER, "report", self.json, *options],
                    stdin=subprocess.DEVNULL, stdout=theirs) as child:
                os.close(theirs)
                text = b""
                while True:
                    try:
                        text += os.read(ours, 65536)
                    except OSError:  # EIO: nobody has the other end any more
                        break
            os.close(ours)
            self.assertEqual(child.returncode, 0)
            return text.decode().replace("\r\n", "\n")

        plain = self.run_command("report", self.json)[0].decode()
        self.assertNotIn("\x1b", plain)
        coloured = at_terminal()
        self.assertRegex(coloured, r"\x1b\[1;31m[^\n]*%s" % HOT)
        self.assertEqual(re.sub(r"\x1b\[[\d;]*m", "", coloured), plain)
        self.assertEqual(at_terminal("--color", "never"), plain)
        self.assertEqual(
            self.run_command("report", self.json, "--color",
                             "always")[0].decode(), coloured)

    def test_convert_keeps_everything(self):
        # JSON says all, so that it comes out as it went in; the other formats
        # keep the stacks.
        with open(self.json, "rb") as file:
            document = file.read()
        self.assertEqual(
            self.run_command("convert", "--format", "json", "-",
                             data=document)[0], document)
        direct, _ = self.run_command("convert", "-a", self.json)
        for name in ["out.pb.gz", "out.perf"]:
            again, _ = self.run_command("convert", "-a", self.convert(name))
            self.assertEqual(again, direct, name)

    def test_diff(self):
        # A profile does not differ from itself; against another program's its
        # hot function is gone.
        same, _ = self.run_command("diff", self.json, self.json)
        self.assertIn(b"no function differs", same)
        other = self.workload("deep", "50")
        self.profile("-F", 499, "-p", other.pid, "-o",
                     self.path("other.json"), 0.5)
        table, _ = self.run_command("diff", self.json,
                                    self.path("other.json"))
        hot = next(line for line in table.decode().splitlines()
                   if line.split()[3:4] == [HOT])
        self.assertLess(float(hot.split()[0]), 0)

    def test_reads_perf(self):
        # What perf script prints of perf's own capture, with the same share of
        # samples in the hot function.
        if not shutil.which("perf"):
            self.skipTest("there is no perf (Debian's linux-perf)")
        data = self.path("perf.data")
        subprocess.run(
            ["perf", "record", "-q", "-e", "cpu-clock", "-F", "499", "-g",
             "-o", data, "-p", str(self.spin.pid), "--", "sleep", "0.5"],
            check=True, capture_output=True)
        text = subprocess.run(["perf", "script", "-i", data], check=True,
                              capture_output=True).stdout
        samples = len(re.findall(rb"^\S.*cpu-clock", text, re.M))
        self.assertGreater(samples, 20)
        table, errors = self.run_command("report", "-", data=text)
        self.assertEqual(errors, "")
        lines = table.decode().splitlines()
        self.assertTrue(lines[0].startswith("%d samples" % samples), lines[0])
        self.assertEqual(lines[2].split()[4], HOT)

    def test_consumers(self):
        # Every format is what it claims to be.
        files = {name: self.convert(name) for name in OUTPUTS}
        self.assertTrue(all(map(os.path.getsize, files.values())))
        picture = xml.etree.ElementTree.parse(files["out.svg"])
        titles = [title.text for title in picture.iter(
            "{http://www.w3.org/2000/svg}title")]
        self.assertIn("all: %d samples, 100.00 %%" % self.emitted, titles)
        self.assertTrue(any(title.startswith(HOT) for title in titles))
        with open(files["out.speedscope.json"], encoding="utf-8") as file:
            scope = json.load(file)
        frames = len(scope["shared"]["frames"])
        for profile in scope["profiles"]:
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertEqual(sum(profile["weights"]), profile["endValue"])
            for stack in profile["samples"]:
                self.assertTrue(all(0 <= index < frames for index in stack))
        if shutil.which("go"):
            top = subprocess.run(
                ["go", "tool", "pprof", "-sample_index=samples", "-top",
                 files["out.pb.gz"]], check=True, capture_output=True,
                env={**os.environ, "HOME": self.path("home")})
            self.assertIn(HOT, top.stdout.decode())

    def test_bad_input(self):
        # What cannot be read is named with its cure; a reader that goes away
        # is no failure.
        for data, message in [(b"", "is empty"),
                              (b"no profile\n", "line 1"),
                              (b"PERFILE2....", "perf script"),
                              (b"{\"a\":1}", "not of ksym-profile"),
                              (b"KSYMRAW\n1234", "raw capture")]:
            _, errors = self.run_command("report", "-", data=data, status=1)
            self.assertIn(message, errors)
            self.assertIn("standard input", errors)
        _, errors = self.run_command("report", "/nowhere", status=1)
        self.assertIn("/nowhere", errors)
        for wrong in [["report"], ["diff", "a"], ["convert", "a", "-o", "b.c"],
                      ["report", "a", "--by", "x"],
                      ["report", "a", "--color", "x"]]:
            _, errors = self.run_command(*wrong, status=2)
            self.assertIn("(see --help)", errors)
        piped = subprocess.run(
            "'%s' convert '%s' --format json | head -c 1" %
            (harness.PROFILER, self.json), shell=True, check=True,
            capture_output=True)
        self.assertEqual(piped.stderr, b"")


if __name__ == "__main__":
    harness.main()
