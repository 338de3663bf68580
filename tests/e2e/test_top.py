# SPDX-License-Identifier: Apache-2.0
"""The live table: what a person sees at a terminal, and which keys do what."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import harness
import refuse_bpf
import reports

# All that may be written to the terminal besides text.
KNOWN = re.compile(
    rb"\x1b\[(?:(?P<row>\d+);1H|(?P<style>[\d;]*)m|(?P<erase>2[JK])"
    rb"|\?(?P<mode>1049|25|7)(?P<on>[hl]))")
CTRL_Z = "\x1a"


def number(cell):
    return 0 if cell == "-" else float(cell)


class Screen:
    """What a terminal shows, of a program that is to use few sequences."""

    def __init__(self):
        self.lines = {}
        self.row = 1
        self.modes = {b"1049": b"l", b"25": b"h", b"7": b"h"}
        self.rest = b""
        self.printed = b""  # on the first screen

    def feed(self, data):
        data = self.rest + data
        self.rest = b""
        while data:
            if data.startswith(b"\x1b"):
                found = KNOWN.match(data)
                if not found:
                    reports.expect(len(data) < 12,
                                   "a strange sequence: %r" % data[:20])
                    self.rest = data
                    return
                data = data[found.end():]
                self.take(found)
                continue
            text, escape, rest = data.partition(b"\x1b")
            data = escape + rest
            if self.modes[b"1049"] == b"l":
                self.printed += text
                continue
            reports.expect(not re.search(rb"[\x00-\x1f\x7f]", text),
                           "control bytes: %r" % text)
            self.lines[self.row] = self.lines.get(self.row, b"") + text

    def take(self, found):
        if found["row"]:
            self.row = int(found["row"])
        elif found["erase"] == b"2J":
            self.lines = {}
        elif found["erase"] == b"2K":
            self.lines[self.row] = b""
        elif found["mode"]:
            self.modes[found["mode"]] = found["on"]

    def is_restored(self):
        return self.modes == {b"1049": b"l", b"25": b"h", b"7": b"h"}

    def text(self):
        last = max(self.lines, default=0)
        return [self.lines.get(row, b"").decode()
                for row in range(1, last + 1)]


class Terminal:
    """The program at a terminal of its own."""

    def __init__(self, *arguments, size=(24, 80), **options):
        self.ours, theirs = pty.openpty()
        self.size = size
        self.resize(*size)
        self.before = termios.tcgetattr(self.ours)
        self.screen = Screen()

        options.setdefault("env", {**os.environ, "TERM": "xterm"})

        def take_terminal():
            harness.die_with_parent()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [harness.PROFILER, "top", *map(str, arguments)], stdin=theirs,
            stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=take_terminal, **options)
        os.close(theirs)

    def resize(self, rows, columns):
        self.size = (rows, columns)
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.ours, keys.encode())

    def read(self, seconds):
        """Takes what comes; false when there is no program any more."""
        ready, _, _ = select.select([self.ours], [], [], seconds)
        if not ready:
            return True
        try:
            self.screen.feed(os.read(self.ours, 65536))
        except OSError:
            return False
        return True

    def wait(self, condition, what, seconds=20):
        """Until the lines are as wanted; the time that it took."""
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            lines = self.screen.text()
            if condition(lines):
                return time.monotonic() - begin
            self.read(0.02)
        raise AssertionError("waited for %s:\n%s" % (what, "\n".join(lines)))

    def wait_row(self, row, what):
        self.wait(lambda lines: len(lines) > 3 and lines[3]
                  and row(lines[3].split()), what)

    def finish(self):
        """The exit status."""
        while self.read(1) and self.process.poll() is None:
            pass
        while self.read(0.05) and select.select([self.ours], [], [], 0)[0]:
            pass
        return self.process.wait(10)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)


class TopTest(harness.E2eTest):

    def top(self, *arguments, **options):
        terminal = Terminal(*arguments, cwd=self.dir, **options)
        self.addCleanup(terminal.kill)
        return terminal

    def check_end(self, terminal, status=0):
        self.assertEqual(terminal.finish(), status, terminal.screen.printed)
        self.assertTrue(terminal.screen.is_restored(), terminal.screen.modes)
        self.assertEqual(termios.tcgetattr(terminal.ours), terminal.before)

    def test_hot_function(self):
        # The function that runs all the time is the first one, with what it gets
        # of a CPU, and its command and its thread have the same; q ends it at
        # once.
        spin = self.workload("spin")
        top = self.top("-p", spin.pid)
        top.wait_row(lambda row: row[-2:] == ["Hot", "[spin]"]
                     and 0.02 < number(row[0]) < 1.2, "Hot")
        self.assertIn("process %d, 99 Hz" % spin.pid, top.screen.text()[0])
        top.press("c")
        top.wait_row(lambda row: row[-2:] == ["1", "spin"], "the command")
        top.press("t")
        top.wait_row(lambda row: row[3:] == [str(spin.pid), str(spin.pid),
                                             "spin", "Hot", "[spin]"],
                     "the thread")
        begin = time.monotonic()
        top.press("q")
        self.check_end(top)
        self.assertLess(time.monotonic() - begin, 2)

    def test_waits(self):
        # Sorted by blocked time come those that wait, with the numbers of
        # threads, and a filter finds them; parked threads are one function,
        # which a key hides.
        waits = self.workload("waits", 40, self.dir)
        os.kill(waits.pid, signal.SIGUSR1)
        top = self.top("-p", waits.pid, "--sort", "blocked", "-w", 5)
        top.wait_row(lambda row: number(row[2]) > 0.5,
                     "waits")
        self.assertIn(">BLOCKED", top.screen.text()[2])
        # Two that wait for a lock, and the first one if it is not parked.
        top.press("s/hold [wai\r")
        top.wait_row(lambda row: row[-2:] == ["Hold", "[waits]"]
                     and 0.5 < number(row[3]) < 4, "waits for locks")
        self.assertIn(">total", top.screen.text()[2])
        self.assertIn("filter: hold [wai  1 rows", top.screen.text()[-1])
        top.press("\x1b")  # a lone ESC
        top.wait(lambda lines: "quit" in lines[-1], "the keys")
        top.press("/[parked\r")
        top.wait_row(lambda row: row[-1:] == ["[parked]"], "parked threads")
        top.press("k")
        top.wait(lambda lines: "(hidden)" in lines[1] and not lines[3], "none")
        top.press("q")
        self.check_end(top)

    def test_ended_process(self):
        # A process that ends leaves no empty table, but why there is nothing;
        # so does one that nobody has waited for.
        spin = self.workload("spin")
        top = self.top("-p", spin.pid, "-w", 1)
        top.wait_row(lambda row: row[-2:-1] == ["Hot"], "Hot")
        spin.process.kill()
        top.wait(lambda lines: "no sample: process %d has ended" % spin.pid
                 in lines, "why there is nothing")
        spin.process.wait()
        top.wait(lambda lines: "no sample: process %d does not exist any more"
                 % spin.pid in lines, "that it is gone")
        top.press("q")
        self.check_end(top)

    def test_resize(self):
        # Each size has its own layout at once, and no line is wider.
        spin = self.workload("spin")
        top = self.top("-p", spin.pid, size=(24, 80))
        top.wait_row(lambda row: row[-2:-1] == ["Hot"], "Hot")
        for rows, columns in ((10, 40), (40, 120), (3, 10), (24, 80)):
            top.resize(rows, columns)
            top.wait(lambda lines: len(lines) == rows
                     and max(map(len, lines)) <= columns,
                     "%d rows of %d columns" % (rows, columns))
            narrow = columns < 60
            self.assertEqual("runnable" in top.screen.text()[2], not narrow)
        top.press("q")
        self.check_end(top)

    def test_page(self):
        # w writes a page of the window, with the function in it, and replaces
        # nothing; a directory that cannot be written is said.
        spin = self.workload("spin")
        top = self.top("-p", spin.pid)
        top.wait_row(lambda row: row[-2:-1] == ["Hot"], "Hot")
        top.press("w")
        top.wait(lambda lines: "wrote ./ksym-top-" in lines[-1], "the page")
        name = re.search(r"ksym-top-\d{8}-\d{6}\.html",
                         top.screen.text()[-1]).group()
        page = harness.read_text(self.path(name))
        self.assertTrue(page.startswith("<!doctype html>"), page[:50])
        self.assertTrue(page.rstrip().endswith("</html>"), page[-50:])
        self.assertIn('"Hot"', page)
        self.assertEqual(os.listdir(self.dir), [name])
        # All names of the next seconds are taken.
        now = time.time()
        taken = {"ksym-top-%s.html" % time.strftime(
            "%Y%m%d-%H%M%S", time.localtime(now + i)) for i in range(20)}
        for other in taken - {name}:
            harness.write_text(self.path(other), "kept")
        top.press("w")
        top.wait(lambda lines: "no page: ksym-top-" in lines[-1], "the error")
        for other in taken - {name}:
            self.assertEqual(harness.read_text(self.path(other)), "kept")
        top.press("q")
        self.check_end(top)

    def test_signals_end_it(self):
        # Whatever ends it, the terminal is as it was; also while it starts.
        spin = self.workload("spin")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
                       signal.SIGQUIT):
            with self.subTest(number):
                top = self.top("-p", spin.pid)
                top.wait_row(lambda row: row[-2:-1] == ["Hot"], "Hot")
                top.process.send_signal(number)
                self.check_end(top)
        with self.subTest("Ctrl-C"):
            top = self.top("-p", spin.pid)
            top.wait(lambda lines: lines, "the screen")
            top.press("\x03")
            self.check_end(top)

    def test_fault(self):
        # A fault of its own leaves the terminal as it was, too.
        top = self.top()
        top.wait(lambda lines: lines, "the screen")
        top.process.send_signal(signal.SIGSEGV)
        self.check_end(top, -signal.SIGSEGV)

    def test_suspend(self):
        # Ctrl-Z gives the terminal back, and who goes on has the table again.
        spin = self.workload("spin")
        top = self.top("-p", spin.pid)
        top.wait_row(lambda row: row[-2:-1] == ["Hot"], "Hot")
        for _ in range(2):
            top.press(CTRL_Z)
            pid, status = os.waitpid(top.process.pid, os.WUNTRACED)
            self.assertEqual(pid, top.process.pid)
            self.assertTrue(os.WIFSTOPPED(status))
            while select.select([top.ours], [], [], 0.1)[0]:
                top.read(0)
            self.assertTrue(top.screen.is_restored(), top.screen.modes)
            self.assertEqual(termios.tcgetattr(top.ours), top.before)
            top.screen.lines = {}
            top.process.send_signal(signal.SIGCONT)
            top.wait_row(lambda row: row[-2:-1] == ["Hot"], "Hot again")
        # As if it was stopped without being asked.
        top.process.send_signal(signal.SIGSTOP)
        os.waitpid(top.process.pid, os.WUNTRACED)
        top.screen.lines = {}
        top.process.send_signal(signal.SIGCONT)
        top.wait_row(lambda row: row[-2:-1] == ["Hot"], "Hot again")
        top.press("q")
        self.check_end(top)

    def test_stalled_terminal(self):
        # A terminal that takes nothing does not keep it from ending, nor does a
        # warning that it has for later.
        spin = self.workload("spin")
        for arguments in ([], ["-p", "%d,4194000" % spin.pid]):
            with self.subTest(arguments):
                top = self.top("-d", 0.2, *arguments)
                top.wait(lambda lines: len(lines) > 5, "a table")
                for _ in range(100):  # nobody reads: its buffer becomes full
                    top.press("?")
                    time.sleep(0.05)
                begin = time.monotonic()
                top.process.send_signal(signal.SIGTERM)
                self.assertEqual(top.process.wait(10), 0)
                self.assertLess(time.monotonic() - begin, 2)
                self.assertEqual(termios.tcgetattr(top.ours), top.before)
                self.assertIsNone(spin.process.poll())

    def test_keys_are_quick(self):
        # A key is answered within a tenth of a second, whatever is named.
        self.workload("spin")
        top = self.top()
        top.wait(lambda lines: len(lines) > 5, "a table")
        times = []
        for i in range(20):
            top.press("?")
            times.append(top.wait(lambda lines: "threads: 1.00" in lines[0],
                                  "the help"))
            top.press("x")
            times.append(top.wait(lambda lines: "running" in lines[1],
                                  "the table"))
            time.sleep(0.05 * (i % 3))
        times.sort()
        print("keys: median %.1f ms, longest %.1f ms" % (
            1e3 * times[len(times) // 2], 1e3 * times[-1]))
        self.assertLess(times[len(times) // 2], 0.1)
        top.press("q")
        self.check_end(top)

    def test_hostile_names(self):
        # Names cannot reach the terminal as commands: Screen knows all that
        # may come, and refuses the rest.
        name = "\x1b[31m\x1b]0;x\x07\n\u202e"
        program = self.program("spin", "spin" + name)
        spin = self.start([program], ready=True)
        top = self.top("-p", spin.pid, "-d", 0.3)
        top.wait_row(lambda row: row[-1].startswith("[spin?[31m"), "Hot")
        for view in "ctf":
            top.press(view)
            time.sleep(0.5)
            top.read(0)
        top.press("/\x1b[31m\u202eq")
        top.wait(lambda lines: lines[-1].startswith("/q_"), "the filter")
        top.press("\rq")
        self.check_end(top)

    def test_batch(self):
        # Tables as text for pipes, as many as were asked for, without a
        # sequence for terminals; whoever has seen enough is no failure.
        spin = self.workload("spin")
        run = self.profile("top", "-p", spin.pid, "--batch", 2, "-d", 0.5)
        text = run.stdout.decode()
        self.assertNotIn("\x1b", text)
        tables = text.split("\n\n")
        self.assertEqual(len(tables), 2, text)
        for table in tables:
            lines = table.splitlines()
            self.assertTrue(lines[0].startswith("ksym-profile top: process"))
            self.assertIn(">RUNNING", lines[2])
            seconds = float(re.search(r"last ([\d.]+) s", lines[0]).group(1))
            self.assertGreater(seconds, 0.2)
        self.assertEqual(lines[3].split()[-2:], ["Hot", "[spin]"])
        self.assertLessEqual(len(lines), 23)
        with subprocess.Popen(
                [harness.PROFILER, "top", "--batch", "50", "-d", "0.2"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            child.stdout.readline()
            child.stdout.close()
            self.assertEqual(child.wait(20), 0, child.stderr.read())

    def test_cgroup(self):
        # Only what is in a cgroup.
        path = self.cgroup()
        inside = self.workload("spin")
        self.workload("spin")
        harness.write_text(os.path.join(path, "cgroup.procs"),
                           str(inside.pid))
        run = self.profile("top", "--cgroup", path, "--batch", 1, "-w", 2,
                           "--view", "threads")
        rows = run.stdout.decode().splitlines()[3:]
        self.assertEqual([row.split()[3] for row in rows], [str(inside.pid)])

    def test_without_waits(self):
        # Where the kernel refuses what waits need, what runs is shown, and the
        # second line says why.
        spin = self.workload("spin")
        for command in (refuse_bpf.LINK_CREATE,
                        refuse_bpf.RAW_TRACEPOINT_OPEN):
            with self.subTest(command):
                run = self.profile(
                    "top", "-p", spin.pid, "--batch", 1,
                    prefix=[sys.executable, "-B", refuse_bpf.__file__,
                            str(command)])
                lines = run.stdout.decode().splitlines()
                self.assertIn("; waits are not sampled: ", lines[1])
                self.assertEqual(lines[3].split()[-2:], ["Hot", "[spin]"])

    def test_terminal_that_only_prints(self):
        top = Terminal(env={**os.environ, "TERM": "dumb"})
        os.set_blocking(top.ours, False)
        self.assertEqual(top.process.wait(timeout=20), 1)
        text = os.read(top.ours, 4096).decode()
        self.assertIn("TERM=dumb", text)
        self.assertIn("--batch", text)
        self.assertNotIn("\x1b", text)

    def test_refusals(self):
        # What cannot be shown is said in one line, and nothing is sampled.
        self.assert_failure(self.profile("top", status=1),
                            "no terminal", "--batch")
        for arguments in (["--batch", 0], ["-d", 0.1], ["-d", 61],
                          ["-w", 0], ["-w", 301], ["-F", 0],
                          ["--view", "files"], ["--sort", "parked"],
                          ["-p", ""], ["-p", 1, "-L", 1], ["--wall"]):
            with self.subTest(arguments):
                run = self.profile("top", *arguments, status=2)
                self.assertEqual(run.stdout, b"")
                self.assertEqual(len(run.stderr_lines), 1, run)
        self.assert_failure(
            self.profile("top", "--batch", 1, "-p", 4194000, status=1),
            "4194000")


if __name__ == "__main__":
    harness.main()
