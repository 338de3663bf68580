# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: running the profiler, workloads, and what
they must put back in the end.

Every run is checked for what always holds: taken = emitted + lost, and the
counts in the report add up to what was emitted.
"""

import ctypes
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cgroups
import load_option
import reports

SOURCE_DIR = os.environ.get("KSYM_SOURCE_DIR") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROFILER = os.environ.get("KSYM_PROFILE") or os.path.join(
    SOURCE_DIR, "build/release/daemon/ksym-profile")
SYMBOLIZER = os.environ.get("KSYM_SYMBOLIZE") or os.path.join(
    SOURCE_DIR, "build/release/daemon/ksym-symbolize")
WORKLOADS = os.environ.get("KSYM_E2E_WORKLOADS") or os.path.join(
    SOURCE_DIR, "build/release/tests/e2e/workloads")

NOBODY = 65534
SKIPPED = 77  # ctest's SKIP_RETURN_CODE
# A run that takes longer hangs; a loaded machine is far below.
RUN_SECONDS = 60
# A process that did not have the CPU time wanted of it by then waits for
# something.
CPU_TIME_SECONDS = 100

# Where the workloads that are told apart by their names spend their time.
WORK_FUNCTIONS = {"Hot", "Work_a", "Work_b", "Survivor", "ChildWork",
                  "GrandchildWork", "StormLeaf", "Plugin_a", "Plugin_b",
                  "LazyCompile:~first a.js:1", "second;(part) 7"}

SUMMARY = re.compile(r"(\d+) samples taken, (\d+) emitted, (\d+) lost")


class Run:
    """A finished run of the profiler."""

    def __init__(self, arguments, status, stdout, stderr):
        self.arguments = arguments
        self.status = status
        self.stdout = stdout
        self.stderr = stderr.decode("utf-8", "surrogateescape")

    @property
    def stderr_lines(self):
        return self.stderr.splitlines()

    @property
    def warnings(self):
        return [line for line in self.stderr_lines if "warning:" in line]

    def summary(self):
        """taken, emitted, lost of the last line; None with -q."""
        found = SUMMARY.findall(self.stderr)
        return tuple(map(int, found[-1])) if found else None

    def __str__(self):
        return "ksym-profile %s: status %s, stderr:\n%s" % (
            " ".join(map(str, self.arguments)), self.status,
            self.stderr[-2000:])


def is_since(major, minor):
    """Whether this kernel is that one or a later one."""
    release = os.uname().release.split(".")
    return (int(release[0]), int(re.match(r"\d+", release[1]).group())) >= (
        major, minor)


def read_text(path):
    with open(path) as file:
        return file.read()


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def write_text(path, text):
    with open(path, "w") as file:
        file.write(text)


def cpu_seconds(pid, of_children=False):
    """What all threads of the process had so far, also before an exec; or its
    children that have ended."""
    fields = read_text("/proc/%d/stat" % pid).rpartition(")")[2].split()
    first = 13 if of_children else 11  # user and system
    return (int(fields[first]) + int(fields[first + 1])) / os.sysconf(
        "SC_CLK_TCK")


def die_with_parent():
    """In a child before exec: nothing outlives a test that is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def as_nobody(*capabilities):
    """The words before a command that run it as nobody, with these."""
    wanted = ",".join(["-all"] + ["+" + name for name in capabilities])
    return ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY,
            "--clear-groups", "--inh-caps=" + wanted,
            "--ambient-caps=" + wanted, "--bounding-set=" + wanted]


def write_when_free(path, text, seconds):
    """The last error, or None. perf_event_max_stack is busy until the kernel
    has freed what the captures before have used, a moment after they end."""
    end = time.monotonic() + seconds
    while True:
        try:
            write_text(path, text)
            return None
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                return error
        time.sleep(0.05)


class Background:
    """A running profiler."""

    def __init__(self, arguments, prefix=(), stdout=None, **options):
        self.arguments = [str(argument) for argument in arguments]
        # Files, not pipes: nobody reads while it runs.
        self._stdout = tempfile.TemporaryFile() if stdout is None else stdout
        self._own_stdout = stdout is None
        self._stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*prefix, PROFILER, *self.arguments], stdin=subprocess.DEVNULL,
            stdout=self._stdout, stderr=self._stderr,
            preexec_fn=die_with_parent, **options)

    def stderr_so_far(self):
        # Not seek and read: the position is shared with the profiler.
        fd = self._stderr.fileno()
        return os.pread(fd, os.fstat(fd).st_size, 0).decode(
            "utf-8", "surrogateescape")

    def wait_started(self):
        """Until the events count."""
        wait_for(lambda: "Sampling at" in self.stderr_so_far()
                 or self.process.poll() is not None, "the start line")

    def signal(self, number):
        self.process.send_signal(number)

    def finish(self):
        try:
            self.process.wait(RUN_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(
                "hangs: ksym-profile " + " ".join(self.arguments)) from None
        data = b""
        if self._own_stdout:
            self._stdout.seek(0)
            data = self._stdout.read()
            self._stdout.close()
        self._stderr.seek(0)
        stderr = self._stderr.read()
        self._stderr.close()
        return Run(self.arguments, self.process.returncode, data, stderr)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def wait_for(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.01)
    raise AssertionError("waited %d s for %s" % (seconds, what))


class Workload:
    """A running program of tests/e2e/workloads, or any other command."""

    def __init__(self, command, prefix=(), ready=False, **options):
        self.process = subprocess.Popen(
            [*prefix, *map(str, command)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if ready else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, preexec_fn=die_with_parent,
            start_new_session=True, **options)
        self.pid = self.process.pid
        self.output = []
        while ready:
            line = self.process.stdout.readline().decode()
            reports.expect(line, "%s ended before it was ready" % command)
            if line == "ready\n":
                break
            self.output.append(line.strip())

    def stop(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


class E2eTest(unittest.TestCase):
    """Has a temporary directory that everybody may use, and puts everything
    back in the end."""

    NEEDS_ROOT = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not load_option.is_calm():
            cls.enterClassContext(load_option.beside())

    def setUp(self):
        if self.NEEDS_ROOT and os.geteuid() != 0:
            self.skipTest("needs root")
        self.dir = tempfile.mkdtemp(prefix="ksym-e2e-")
        os.chmod(self.dir, 0o777)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    # Running the profiler.

    def profile_raw(self, *arguments, prefix=(), **options):
        """Runs the profiler and checks nothing but that it ends."""
        return self.background(*arguments, prefix=prefix, **options).finish()

    def background(self, *arguments, prefix=(), **options):
        running = Background(arguments, prefix, **options)
        self.addCleanup(running.kill)
        return running

    def profile(self, *arguments, status=0, **options):
        run = self.profile_raw(*arguments, **options)
        self.assertEqual(run.status, status, str(run))
        return run

    def check_folded(self, run, data=None):
        folded = reports.Folded(run.stdout if data is None else data)
        summary = run.summary()
        if summary:
            taken, emitted, lost = summary
            self.assertEqual(taken, emitted + lost, str(run))
            self.assertEqual(folded.total(), emitted, str(run))
        return folded

    def folded(self, *arguments, **options):
        return self.check_folded(self.profile(*arguments, **options))

    def check_document(self, run, status=0):
        self.assertEqual(run.status, status, str(run))
        document = reports.Document(run.stdout)
        summary = run.summary()
        if summary:
            self.assertEqual(summary[0], document.samples["taken"])
        return document

    def document(self, *arguments, status=0, **options):
        return self.check_document(
            self.profile_raw("--format", "json", *arguments, **options), status)

    def document_of_cpu_time(self, workload, seconds, *arguments):
        """Captures the workload until it has had so much CPU time, which takes
        the longer the more others run: so there are as many samples beside a
        load as without one."""
        running = self.background("--format", "json", "-p", workload.pid,
                                  *arguments)
        running.wait_started()
        end = cpu_seconds(workload.pid) + seconds
        wait_for(lambda: running.process.poll() is not None
                 or cpu_seconds(workload.pid) >= end,
                 "%g s of CPU time" % seconds, CPU_TIME_SECONDS)
        running.signal(signal.SIGINT)
        return self.check_document(running.finish())

    def assert_failure(self, run, *words):
        """Exit status 1, one line that has these words, and no report."""
        self.assertEqual(run.status, 1, str(run))
        self.assertEqual(len(run.stderr_lines), 1, str(run))
        for word in words:
            self.assertIn(word, run.stderr)
        self.assertEqual(run.stdout, b"", str(run))

    def assert_leaves(self, leaves, *wanted):
        """Nearly all of the leaves are one of `wanted`, and none is where
        another workload works. The rest are in libraries, or in the program
        that called exec."""
        hits = sum(leaves[name] for name in wanted)
        self.assertGreater(hits, 10, leaves)
        self.assertGreater(hits / sum(leaves.values()), 0.9, leaves)
        self.assertFalse(WORK_FUNCTIONS & set(leaves) - set(wanted), leaves)

    # Workloads.

    def workload(self, name, *arguments, **options):
        """Starts one of tests/e2e/workloads and waits until it works."""
        return self.start([os.path.join(WORKLOADS, name), *arguments],
                          ready=True, **options)

    def start(self, command, **options):
        workload = Workload(command, **options)
        self.addCleanup(workload.stop)
        return workload

    def silent_fs(self, *arguments):
        """A directory whose files are a program's, which has the arguments;
        both. They stop to answer with SIGUSR1."""
        if not os.path.exists("/dev/fuse"):
            self.skipTest("needs /dev/fuse")
        directory = self.path("silent")
        os.mkdir(directory)
        # Not mount(): the file system is this program.
        self.addCleanup(subprocess.run, ["umount", "--lazy", directory],
                        check=False, capture_output=True)
        server = self.workload("silent_fs", directory, self.program("spin"),
                               *arguments)
        return server, directory

    def program(self, name, target=None):
        """A copy of a workload's file that every user can reach."""
        return self.copy(os.path.join(WORKLOADS, name), target or name)

    def copy(self, source, name):
        target = self.path(name)
        if not os.path.exists(target):
            shutil.copy(source, target)
            os.chmod(target, 0o755)
        return target

    def copy_with_libraries(self, name, root):
        """Copies a workload to /NAME in the directory `root`, with the
        libraries that it needs, so that it runs with that root."""
        program = os.path.join(WORKLOADS, name)
        target = os.path.join(root, name)
        os.makedirs(root, exist_ok=True)
        shutil.copy(program, target)
        self.copy_libraries(program, root)
        return target

    @staticmethod
    def copy_libraries(program, root):
        """Those that the program needs, below the directory `root`."""
        libraries = subprocess.run(["ldd", program], capture_output=True,
                                   text=True, check=False).stdout
        for path in re.findall(r"(/\S+) \(0x", libraries):
            inside = os.path.join(root, path.lstrip("/"))
            os.makedirs(os.path.dirname(inside), exist_ok=True)
            shutil.copy(path, inside)

    # The machine.

    def set_sysctl(self, name, value):
        """Until the end of the test."""
        path = "/proc/sys/" + name.replace(".", "/")
        before = read_text(path).strip()
        if before == str(value):
            return
        error = write_when_free(path, str(value), 10)
        if error:
            self.skipTest("cannot set %s: %s" % (name, error))
        self.addCleanup(self.restore_sysctl, path, before)

    def restore_sysctl(self, path, text):
        error = write_when_free(path, text, 60)
        self.assertIsNone(error, path)

    def allow_rate(self, hz):
        """Lets the kernel take `hz` samples; it may have lowered its limit."""
        path = "/proc/sys/kernel/perf_event_max_sample_rate"
        if int(read_text(path)) < hz:
            self.set_sysctl("kernel.perf_event_max_sample_rate", hz)

    def need_command(self, name):
        if shutil.which(name) is None:
            self.skipTest("needs the command " + name)

    def need_two_cpus(self):
        cpus = os.sched_getaffinity(0)
        if not {0, 1} <= cpus:
            self.skipTest("needs CPUs 0 and 1, there are %s" % cpus)

    def mount(self, *arguments):
        """Until the end of the test; the last argument is where."""
        done = subprocess.run(["mount", *arguments], capture_output=True,
                              check=False)
        if done.returncode != 0:
            self.skipTest("cannot mount %s: %s" % (
                " ".join(arguments), done.stderr.decode().strip()))
        # Its processes end when the test does, but not at once.
        self.addCleanup(subprocess.run, ["umount", "--lazy", arguments[-1]],
                        check=True)

    def cgroup(self):
        """A new cgroup v2 directory, removed in the end."""
        mount = cgroups.second_version()
        if mount is None:
            self.skipTest("no cgroups of the second version to write to")
        return self._make_cgroup(os.path.join(mount,
                                             "ksym-e2e-%d" % os.getpid()))

    def cpu_quota(self, share):
        """A new cgroup whose threads have that share of one CPU in 100 ms,
        removed in the end."""
        quota = cgroups.quota_of(share)
        if quota is None:
            self.skipTest("no cgroups bound CPU time here")
        mount, texts = quota
        return self._make_cgroup(os.path.join(
            mount, "ksym-e2e-quota-%d" % os.getpid()), texts)

    def _make_cgroup(self, path, texts=None):
        """A new cgroup of that path with these texts in its files, removed in
        the end."""
        try:
            os.mkdir(path)
            self.addCleanup(cgroups.remove, path)
            cgroups.set_files(path, texts or {})
        except OSError as error:
            self.skipTest("cannot make a cgroup: %s" % error)
        return path

    def bpf_fs(self):
        """A BPF file system of our own, unmounted in the end."""
        self.need_command("bpftool")
        path = self.path("bpf")
        os.mkdir(path)
        mounted = subprocess.run(["mount", "-t", "bpf", "bpf", path],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("cannot mount a BPF file system: %s"
                          % mounted.stderr.decode().strip())
        self.addCleanup(subprocess.run, ["umount", path], check=True)
        return path

    def pinned_map(self, path, keys, key_size=8, value_size=8):
        """A pinned BPF hash with these 64-bit keys."""
        subprocess.run(
            ["bpftool", "map", "create", path, "type", "hash", "key",
             str(key_size), "value", str(value_size), "entries", "16", "name",
             "ksym_e2e"], check=True, capture_output=True)
        for key in keys:
            subprocess.run(
                ["bpftool", "map", "update", "pinned", path, "key",
                 *map(str, key.to_bytes(key_size, sys.byteorder)), "value",
                 *["0"] * value_size], check=True, capture_output=True)


def main():
    """Runs the calling file's tests, beside the load of --load; 77 if every
    one was skipped."""
    arguments = load_option.take(sys.argv)
    for needed in [PROFILER, os.path.join(WORKLOADS, "spin")]:
        if not os.access(needed, os.X_OK):
            sys.exit("%s: there is no such program; build it first" % needed)
    program = unittest.main(verbosity=2, exit=False, argv=arguments)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    ran = result.testsRun - len(result.skipped)
    # A test with subtests may have skipped several times.
    sys.exit(SKIPPED if result.skipped and ran <= 0 else 0)
