# SPDX-License-Identifier: Apache-2.0
"""What a person at a terminal sees of ksym-profile, and what a pipe gets."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import harness
import reports

COLOURS = re.compile(r"\x1b\[[\d;]*m")


def at_terminal(columns, *arguments, **options):
    """What it prints on a terminal of that width, and its stderr."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([harness.PROFILER, *map(str, arguments)],
                          stdin=subprocess.DEVNULL, stdout=theirs,
                          stderr=subprocess.PIPE, **options) as child:
        os.close(theirs)
        text = b""
        while True:
            try:
                text += os.read(ours, 65536)
            except OSError:  # EIO: nobody has the other end any more
                break
        errors = child.stderr.read().decode()
    os.close(ours)
    reports.expect(child.returncode == 0, errors)
    return text.decode().replace("\r\n", "\n"), errors


class TerminalTest(harness.E2eTest):

    MODULE = "spin-which-has-quite-a-long-name-x86"

    def setUp(self):
        super().setUp()
        program = self.program("spin", self.MODULE)
        self.spin = self.start([program], ready=True)
        self.raw = self.path("capture.raw")
        self.run = self.profile("-F", 999, "-p", self.spin.pid, "--raw",
                                self.raw, 0.5)

    def test_table_fits(self):
        # At a terminal the hottest functions are a table with shares, modules
        # and commands that no line of which is wider; it says how to get a
        # page. Where there is room nothing is cut.
        for columns in [80, 200]:
            for source in [["-F", 999, "-p", self.spin.pid, 0.5],
                           ["--replay", self.raw]]:
                with self.subTest(columns=columns, source=source):
                    shown, _ = at_terminal(columns, *source)
                    self.assertIn("\x1b[1;31m", shown)
                    lines = COLOURS.sub("", shown).splitlines()
                    self.assertLessEqual(max(map(len, lines)), columns, shown)
                    self.assertRegex(lines[0], r"^\d+ samples, \d+ lost; ")
                    self.assertEqual(lines[1].split()[:2], ["by", "command:"])
                    self.assertEqual(lines[2].split(), [
                        "self", "total", "function", "module", "command"])
                    share, total, name, module, command = lines[3].split()
                    self.assertEqual(name, "Hot")
                    self.assertGreater(float(share[:-1]), 80)
                    self.assertGreaterEqual(float(total[:-1]),
                                            float(share[:-1]))
                    self.assertEqual(command, self.MODULE[:15]
                                     if columns == 200 else command)
                    self.assertEqual(module == self.MODULE, columns == 200)
                    self.assertTrue(module.endswith("x86"), module)
                    self.assertIn("-o cpu.html --open", lines[-1])

    def test_by_pid(self):
        # With --by pid commands have their pids.
        shown, _ = at_terminal(200, "--replay", self.raw, "--by", "pid")
        self.assertIn("(%d)" % self.spin.pid, shown)

    def test_pipe_is_folded(self):
        # A pipe and a file get folded stacks, the same bytes as with --format
        # folded, and so does a terminal that -f asks for it.
        asked = self.profile("--replay", self.raw, "--format", "folded").stdout
        piped = self.profile("--replay", self.raw).stdout
        self.assertEqual(piped, asked)
        self.assertGreater(self.check_folded(self.run).total(), 20)
        with open(self.path("out"), "wb") as file:
            subprocess.run([harness.PROFILER, "--replay", self.raw], check=True,
                           stdout=file, stderr=subprocess.DEVNULL)
        self.assertEqual(harness.read_bytes(self.path("out")), asked)
        for arguments in [["-f"], ["-o", "-"], ["--format", "folded"]]:
            shown, _ = at_terminal(80, "--replay", self.raw, *arguments)
            self.assertEqual(shown.encode(), asked)

    def test_says_what_was_written(self):
        # The last line names the file; of a device nothing is said.
        page = self.path("x.html")
        for arguments in [["-p", self.spin.pid, "0.3s"],
                          ["--replay", self.raw]]:
            run = self.profile("-o", page, *arguments)
            self.assertEqual(run.stderr_lines[-1], "ksym-profile: wrote " + page)
            os.remove(page)
        run = self.profile("-o", "/dev/null", "-p", self.spin.pid, "0.005m")
        self.assertNotIn("wrote", run.stderr)

    def test_start_line_has_the_cgroup(self):
        # The first line says that processes of a cgroup only are sampled.
        path = self.cgroup()
        run = self.profile("--cgroup", path, "0.3s")
        self.assertIn(" of all threads in cgroup %s " % path,
                      run.stderr_lines[0])


class OpenTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.bin = self.path("bin")
        os.mkdir(self.bin)
        os.chmod(self.bin, 0o755)
        self.page = self.path("page.html")
        self.opened = self.path("opened")
        self.environment = {**os.environ, "PATH": self.bin}
        self.environment.pop("SUDO_UID", None)

    def install(self, status=0):
        """An xdg-open that writes down who it is and what it shall show."""
        opener = os.path.join(self.bin, "xdg-open")
        harness.write_text(
            opener, "#!/bin/sh\n/usr/bin/id -u >%s.new\n"
            "echo \"$HOME $1\" >>%s.new\n/bin/mv %s.new %s\nexit %d\n" % (
                (self.opened,) * 4 + (status,)))
        os.chmod(opener, 0o755)

    def open(self, **environment):
        return self.profile("-o", self.page, "--open", 0.2,
                            env={**self.environment, **environment})

    def test_opens_as_the_user_behind_sudo(self):
        # The page is shown when it is there, as the user who called sudo, with
        # that one's home; without sudo as who runs it.
        self.install()
        for environment, user, home in [
                ({"SUDO_UID": str(harness.NOBODY)}, harness.NOBODY,
                 "/nonexistent"),
                ({"HOME": "/root"}, 0, "/root")]:
            run = self.open(**environment)
            self.assertNotIn("--open", run.stderr)
            self.assertEqual(harness.read_text(self.opened).splitlines(),
                             [str(user), "%s %s" % (home, self.page)])
            os.remove(self.opened)

    def test_cannot_open(self):
        # Without xdg-open, or where it fails, the page is there and a warning
        # says so; without a file to show it is wrong usage.
        run = self.open()
        self.assertIn("there is no xdg-open", run.stderr)
        self.assertGreater(os.path.getsize(self.page), 1000)
        self.install(status=3)
        self.assertIn("xdg-open failed", self.open().stderr)
        for arguments in [["--open"], ["--open", "-o", "-"]]:
            run = self.profile(*arguments, 0.1, status=2)
            self.assertIn("-o cpu.html", run.stderr)


if __name__ == "__main__":
    harness.main()
