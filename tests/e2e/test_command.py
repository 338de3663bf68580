# SPDX-License-Identifier: Apache-2.0
"""The COMMAND form, and how a capture ends."""

import fcntl
import os
import signal
import struct
import subprocess
import termios
import time

import harness

PIPE_BYTES = 4096


def waiting_bytes(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


class CommandTest(harness.E2eTest):

    def test_children_are_followed(self):
        # Everything that COMMAND forks and executes is profiled, and nothing
        # else.
        self.workload("spin")
        storm = os.path.join(harness.WORKLOADS, "storm")
        document = self.document("-F", 999, "--", storm, "100", status=7)
        # A child runs /proc/self/exe; before its exec COMMAND is a profiler.
        self.assertLessEqual({s["comm"] for s in document.stacks},
                             {"storm", "exe", "ksym-profile"})
        self.assertGreater(len(document.pids()), 50)
        self.assertGreater(document.share(
            lambda s: "StormLeaf" in document.names(s)), 0.3)

    def test_through_a_shell(self):
        # A shell's children are followed as well.
        spin = os.path.join(harness.WORKLOADS, "spin")
        folded = self.folded("-F", 499, "--", "sh", "-c",
                             "timeout 1 %s & wait" % spin)
        self.assertGreater(folded.share("spin", "main;Outer;Middle;Hot"), 0.9)
        self.assertLessEqual(folded.owners(), {"sh", "timeout", "spin",
                                               "ksym-profile"})

    def test_output_beside_the_report(self):
        # While the report is on stdout the command's stdout is stderr.
        storm = os.path.join(harness.WORKLOADS, "storm")
        run = self.profile("--", storm, "1", status=7)
        self.assertIn("stormed", run.stderr_lines)
        self.assertNotIn(b"stormed", run.stdout)
        self.check_folded(run)

    def test_output_with_a_report_file(self):
        # With -o FILE the command keeps its stdout.
        storm = os.path.join(harness.WORKLOADS, "storm")
        run = self.profile("-o", self.path("out"), "--", storm, "1",
                           status=7)
        self.assertEqual(run.stdout, b"stormed\n")
        self.check_folded(run, harness.read_bytes(self.path("out")))

    def test_status_is_the_commands(self):
        # The command's status is printed, and is that of the run if a report
        # was made; of a command that a signal killed 128 and its number.
        for command, words, status in [
                (["true"], "exited with status 0", 0),
                (["false"], "exited with status 1", 1),
                (["sh", "-c", "exit 42"], "exited with status 42", 42),
                (["sh", "-c", "kill -9 $$"], "killed by signal 9", 137)]:
            with self.subTest(command=command):
                run = self.profile("--", *command, status=status)
                self.assertIn(words, run.stderr)
                self.assertIsNotNone(run.summary())

    def test_failure_is_ours(self):
        # Where no report can be made the status is ours, whatever the
        # command's is.
        run = self.profile_raw("--format", "json", "-o", "/dev/full", "--",
                               "sh", "-c", "exit 42")
        self.assertEqual(run.status, 1, str(run))
        self.assertIn("No space left", run.stderr)

    def test_no_such_command(self):
        # A command that cannot be run: status 1, its name, no report.
        for name in ["/no/such/program", "no-such-program-anywhere", self.dir]:
            with self.subTest(name):
                run = self.profile_raw("--", name)
                self.assertEqual((run.status, run.stdout), (1, b""), str(run))
                self.assertIn(name, run.stderr_lines[-1])
                quiet = self.profile_raw("-q", "--", name)
                self.assert_failure(quiet, name)

    def test_arguments_are_the_commands(self):
        # What stands behind -- is not read as options.
        run = self.profile("-o", self.path("out"), "--", "echo", "-F", "0",
                           "--", "--help")
        self.assertEqual(run.stdout, b"-F 0 -- --help\n")

    def test_command_reads_stdin_and_gets_signals(self):
        # The command has the signal mask and handlers of an ordinary one.
        run = self.profile("-o", self.path("out"), "--", "sh", "-c",
                           "grep -E '^Sig(Blk|Ign)' /proc/self/status")
        for line in run.stdout.decode().splitlines():
            self.assertEqual(int(line.split()[1], 16) & 0x7fff, 0, line)

    def test_descriptors_do_not_leak(self):
        # The command inherits no descriptor of the profiler.
        run = self.profile("-o", self.path("out"), "--", "ls", "-l",
                           "/proc/self/fd")
        self.assertNotIn(b"anon_inode", run.stdout)
        self.assertNotIn(self.dir.encode(), run.stdout)

    def test_stopped_before_the_command_ends(self):
        # SIGTERM ends the capture with a report; the command is left alone.
        pid_file = self.path("pid")
        running = self.background(
            "--", "sh", "-c", "echo $$ > %s.new; mv %s.new %s; exec sleep 100"
            % (pid_file, pid_file, pid_file))
        harness.wait_for(lambda: os.path.exists(pid_file), "the command")
        running.signal(signal.SIGTERM)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        self.check_folded(run)
        pid = int(harness.read_text(pid_file))
        os.kill(pid, signal.SIGKILL)  # fails if it is gone


    def test_interrupted_with_its_command(self):
        # Ctrl-C on a terminal goes to both; there is a report all the same.
        running = self.background("--", "sleep", "100",
                                  start_new_session=True)
        running.wait_started()
        time.sleep(0.3)
        os.killpg(running.process.pid, signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        self.check_folded(run)


class SignalTest(harness.E2eTest):

    def test_signals_end_the_capture(self):
        # SIGINT and SIGTERM end a capture, of any duration, with its report.
        spin = self.workload("spin")
        for number in [signal.SIGINT, signal.SIGTERM]:
            for duration in [[], [1000]]:
                with self.subTest(number=number, duration=duration):
                    running = self.background("-F", 499, "-p", spin.pid,
                                              *duration)
                    running.wait_started()
                    time.sleep(0.5)
                    running.signal(number)
                    run = running.finish()
                    self.assertEqual(run.status, 0, str(run))
                    folded = self.check_folded(run)
                    self.assertEqual(folded.owners(), {"spin"})

    def test_second_signal_aborts(self):
        # While the report cannot be written a second SIGINT ends the program.
        self.workload("paths")
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        running = self.background("-F", 999, stdout=write)
        os.close(write)
        running.wait_started()
        time.sleep(1)
        running.signal(signal.SIGINT)
        time.sleep(0.5)
        self.assertIsNone(running.process.poll())
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().status, -signal.SIGINT)

    def test_second_signal_with_the_first(self):
        # Neither is lost where nobody had a turn to see the first one.
        self.workload("spin")
        running = self.background("-F", 99, 1000)
        running.wait_started()
        running.signal(signal.SIGSTOP)
        running.signal(signal.SIGINT)
        running.signal(signal.SIGTERM)
        running.signal(signal.SIGCONT)
        self.assertIn(running.finish().status,
                      (-signal.SIGINT, -signal.SIGTERM))

    def report_that_waits(self):
        """A capture that is over and cannot write its report: a pipe is full.
        And the pipe's other end."""
        self.workload("paths")
        read, write = os.pipe()
        pipe = open(read, "rb")
        self.addCleanup(pipe.close)
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        running = self.background("-F", 999, 1, stdout=write)
        os.close(write)
        harness.wait_for(lambda: waiting_bytes(pipe) == PIPE_BYTES,
                         "a full pipe")
        return running, pipe

    def test_signal_while_the_report_is_written(self):
        # A signal after the end of the capture's time takes nothing away: the
        # report is whole and the status that of a report.
        for number in [signal.SIGINT, signal.SIGTERM]:
            with self.subTest(number=number):
                running, pipe = self.report_that_waits()
                running.signal(number)
                with self.assertRaises(subprocess.TimeoutExpired):
                    running.process.wait(0.3)
                data = pipe.read()
                run = running.finish()
                self.assertEqual(run.status, 0, str(run))
                self.assertGreater(len(data), PIPE_BYTES)
                self.check_folded(run, data)

    def test_second_signal_while_the_report_is_written(self):
        # The second one ends it at once, whichever the first was.
        for first, second in [(signal.SIGINT, signal.SIGTERM),
                              (signal.SIGTERM, signal.SIGTERM)]:
            with self.subTest(first=first, second=second):
                running, _ = self.report_that_waits()
                running.signal(first)
                with self.assertRaises(subprocess.TimeoutExpired):
                    running.process.wait(0.3)
                running.signal(second)
                self.assertEqual(running.finish().status, -second)

    def test_stop_and_continue(self):
        # A profiler that was stopped and continued goes on and counts right.
        spin = self.workload("spin")
        running = self.background("-F", 499, "-p", spin.pid)
        running.wait_started()
        running.signal(signal.SIGSTOP)
        time.sleep(0.7)
        running.signal(signal.SIGCONT)
        time.sleep(0.3)
        running.signal(signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        self.assertGreater(self.check_folded(run).total(), 10)


if __name__ == "__main__":
    harness.main()
