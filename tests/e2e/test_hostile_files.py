# SPDX-License-Identifier: Apache-2.0
"""What others put in the way of files that a user names: to be read, and to be
written."""

import gzip
import os
import resource
import signal
import subprocess
import time

import harness
import service_harness

GEN_GSYM = os.environ.get("GEN_GSYM") or os.path.join(
    harness.SOURCE_DIR, "build/release/gen/gen_gsym")
GEN_KSYM = os.path.join(os.path.dirname(GEN_GSYM), "gen_ksym")
STRANGER = 54321
FOLDED = "secret;main 7\n"
MAP = "ffffffff81000000 T startup_64\nffffffff81000100 T _text2\n"


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def pprof(lines, references, samples=1):
    """One location of so many inlined calls, so many times in a stack."""
    location = field(1, 1) + field(4, b"") * lines
    sample = field(1, b"\1" * references) + field(2, 1)
    return gzip.compress(
        field(6, b"") + field(6, b"samples") + field(6, b"count") +
        field(1, field(1, 1) + field(2, 2)) + field(4, location) +
        field(2, sample) * samples)


class HostileFilesTest(harness.E2eTest):

    def run_program(self, *arguments, prefix=(), memory=None, limits=None,
                    **options):
        def prepare():
            if memory:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            for kind, size in (limits or {}).items():
                resource.setrlimit(kind, (size, size))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            [*prefix, *map(str, arguments)], capture_output=True, check=False,
            timeout=harness.RUN_SECONDS, preexec_fn=prepare, **options)

    def assert_refused(self, done, *words):
        """It ended by itself, with a line that says why."""
        self.assertEqual(done.returncode, 1, done)
        for word in words:
            self.assertIn(word, done.stderr.decode())

    def test_inputs_that_want_memory(self):
        # Profiles whose few bytes stand for gigabytes, and numbers that no
        # type has, are errors, within 1 GB.
        for name, data in {
                "number.json": b'{"metadata": 1e999}',
                "deep.json": b'{"a":' + b"[" * 50_000_000,
                "stack.pb.gz": pprof(100_000, 100_000),
                "stacks.pb.gz": pprof(1000, 60, samples=20_000),
                "lines.pb.gz": pprof(20_000_000, 1),
                "strings.pb.gz": gzip.compress(field(6, b"") * 100_000_000, 1),
        }.items():
            with self.subTest(name=name):
                path = self.path(name)
                with open(path, "wb") as file:
                    file.write(data)
                self.assert_refused(
                    self.run_program(harness.PROFILER, "report", path,
                                     memory=1 << 30), name)

    def test_caller_reads_with_own_rights(self):
        # With the capabilities that a capture needs, from setcap, the program
        # reads no file for its caller that the caller may not read.
        self.need_command("setcap")
        profiler = self.copy(harness.PROFILER, "ksym-profile")
        done = subprocess.run(
            ["setcap", "cap_bpf,cap_perfmon,cap_syslog,cap_sys_ptrace,"
             "cap_dac_read_search+ep", profiler], capture_output=True,
            check=False)
        if done.returncode != 0:
            self.skipTest("no capabilities on files: %s" % done.stderr)
        secret, kernel = self.path("secret.folded"), self.path("kernel.map")
        harness.write_text(secret, FOLDED)
        harness.write_text(kernel, MAP)
        os.chmod(secret, 0o600)
        os.chmod(kernel, 0o600)
        raw = self.path("capture.raw")
        self.profile("--raw", raw, "-o", self.path("x.folded"), 0.1)
        os.chmod(raw, 0o644)
        # With all bounding capabilities: without, exec(2) refuses the file.
        nobody = ["setpriv", "--reuid=%d" % harness.NOBODY,
                  "--regid=%d" % harness.NOBODY, "--clear-groups",
                  "--inh-caps=-all"]
        for arguments in [["report", secret], ["convert", secret],
                          ["diff", secret, secret], ["--replay", secret],
                          ["--replay", raw, "--kernel-symbols", kernel],
                          ["--kernel-symbols", kernel, "0.1"]]:
            with self.subTest(arguments=arguments):
                done = self.run_program(profiler, *arguments, prefix=nobody)
                self.assert_refused(done, "Permission denied")
        os.chmod(kernel, 0o644)
        for arguments in [["--replay", raw], ["0.1"]]:
            done = self.run_program(profiler, *arguments, "--kernel-symbols",
                                    kernel, prefix=nobody)
            self.assertEqual(done.returncode, 0, done)

    def common_directory(self):
        """As /tmp is."""
        directory = self.path("common")
        os.mkdir(directory)
        os.chmod(directory, 0o1777)
        return directory

    def writers(self, path):
        """Each program, writing to a path."""
        source, kernel = self.path("in.folded"), self.path("in.map")
        harness.write_text(source, FOLDED)
        harness.write_text(kernel, MAP)
        return [
            [harness.PROFILER, "convert", source, "--format", "folded", "-o",
             path],
            [harness.PROFILER, "-o", path, "--format", "folded", "0.1"],
            [harness.PROFILER, "--raw", path, "-o", self.path("y.folded"),
             "0.1"],
            [GEN_KSYM, kernel, "-o", path],
            [GEN_GSYM, self.program("spin"), "-o", path]]

    def test_links_of_others(self):
        # In a directory where everybody may write, a link of somebody else is
        # not followed and a file of somebody else not replaced.
        victim = self.path("victim")
        harness.write_text(victim, "precious")
        directory = self.common_directory()
        link, file = directory + "/out", directory + "/file"
        os.symlink(victim, link)
        os.lchown(link, STRANGER, STRANGER)
        dangling = directory + "/dangling"
        os.symlink(self.path("created"), dangling)
        os.lchown(dangling, STRANGER, STRANGER)
        harness.write_text(file, "bait")
        os.chown(file, STRANGER, STRANGER)
        # Without the kernel's help.
        self.set_sysctl("fs.protected_symlinks", 0)
        for path in [link, dangling, file]:
            for command in self.writers(path):
                with self.subTest(path=path, command=command):
                    self.assert_refused(self.run_program(*command),
                                        "Permission denied")
        self.assertEqual(harness.read_text(victim), "precious")
        self.assertEqual(harness.read_text(file), "bait")
        self.assertFalse(os.path.exists(self.path("created")))

    def test_own_links(self):
        # One's own are followed there as everywhere, and so are those of the
        # directory's owner.
        directory = self.common_directory()
        os.chown(directory, STRANGER, STRANGER)
        for owner in [0, STRANGER]:
            target, link = self.path("t%d" % owner), directory + "/l%d" % owner
            harness.write_text(target, "old")
            os.symlink(target, link)
            os.lchown(link, owner, owner)
            command = self.writers(link)[0]
            self.assertEqual(self.run_program(*command).returncode, 0)
            self.assertEqual(harness.read_text(target), FOLDED)
            self.assertTrue(os.path.islink(link))

    def test_size_limit(self):
        # A limit on the size of files is an error as any other, and nothing
        # half written stays.
        source = self.path("large.folded")
        harness.write_text(source, "".join(
            "app;function_with_a_name_%d 1\n" % i for i in range(1000)))
        directory = self.path("out")
        os.mkdir(directory)
        for command in [
                [harness.PROFILER, "convert", source, "-o", directory + "/x.svg"],
                [GEN_GSYM, self.program("spin"), "-o", directory + "/gsym"]]:
            with self.subTest(command=command):
                done = self.run_program(
                    *command, limits={resource.RLIMIT_FSIZE: 256})
                self.assert_refused(done, "File too large")
                self.assertEqual(os.listdir(directory), [])

    def test_endless_line(self):
        # A line without end is refused within bounded memory.
        done = self.run_program(GEN_KSYM, "/dev/zero", "-o", self.path("out"),
                                memory=512 << 20)
        self.assert_refused(done, "/dev/zero", "line")

    def test_messages_that_cannot_be_written(self):
        # Where nobody can read a message the status still says what happened.
        missing = self.path("missing")
        with open("/dev/full", "wb") as full:
            for arguments, status in [
                    ([harness.PROFILER, "-F", "0"], 2),
                    ([harness.PROFILER, "report", missing], 1),
                    ([harness.PROFILER, "--replay", missing], 1),
                    ([harness.SYMBOLIZER, "--no-such-option"], 2),
                    ([harness.SYMBOLIZER, "-e", missing, "0x1"], 1),
                    ([harness.SYMBOLIZER, "--profile", missing], 1),
                    ([service_harness.SERVICE, "--config", missing], 2),
                    ([GEN_GSYM, "--no-such-option"], 2),
                    ([GEN_GSYM, missing, "-o", missing], 1),
                    ([GEN_KSYM, "--no-such-option"], 2),
                    ([GEN_KSYM, missing, "-o", missing], 1)]:
                for close in ["", "exec 2>&-; "]:
                    with self.subTest(arguments=arguments, close=close):
                        done = subprocess.run(
                            ["sh", "-c", close + 'exec "$@"', "sh",
                             *arguments], stdin=subprocess.DEVNULL,
                            stdout=full, stderr=full, check=False,
                            timeout=harness.RUN_SECONDS)
                        self.assertEqual(done.returncode, status)

    def test_no_memory(self):
        # A program that gets no memory ends with a line that says so.
        path = self.path("large.folded")
        harness.write_text(path, "".join(
            "app;main;function_with_a_long_name_%d 1\n" % i
            for i in range(400_000)))
        for command in [[harness.PROFILER, "report", path],
                        [harness.PROFILER, "convert", path, "-o",
                         self.path("out.json")],
                        [GEN_KSYM, "/proc/kallsyms", "-o", self.path("map")]]:
            with self.subTest(command=command):
                self.assert_refused(
                    self.run_program(*command, memory=40 << 20),
                    "not enough memory")

    def test_file_that_is_cut(self):
        # A GSYM file that becomes shorter while it is mapped ends the program
        # with a message.
        gsym = self.path("spin.gsym")
        subprocess.run([GEN_GSYM, self.program("spin"), "-o", gsym],
                       check=True, capture_output=True)
        with subprocess.Popen(
                [harness.SYMBOLIZER, "--gsym", gsym], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                preexec_fn=harness.die_with_parent) as process:
            process.stdin.write(b"0x1\n")
            process.stdin.flush()
            process.stdout.readline()
            time.sleep(0.2)
            os.truncate(gsym, 0)
            _, errors = process.communicate(b"0x500000\n", timeout=30)
        self.assertNotEqual(process.returncode, -signal.SIGBUS)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn(b"became shorter", errors)


if __name__ == "__main__":
    harness.main()
