# SPDX-License-Identifier: Apache-2.0
"""Whose file may name whom: what a user puts in the way of the names of others'
processes. A library without symbols is mapped by a process of root and by one
of a user, and the user says what its functions are called. And names that are
made to keep the profiler busy, or to end it."""

import os
import re
import shutil
import subprocess
import time

import harness
import reports
import service_harness

USER = 54321
BUILD_ID = "c0ffee0123456789abcdef0123456789abcdef01"
TRUE, EVIL = "TrueName", "EvilName"
LIBRARY = """\
#define NOINLINE __attribute__((noinline))
NOINLINE static void FUNCTION(void) {
  for (volatile unsigned long left = 200000; left != 0;) left = left - 1;
}
NOINLINE void Run(void) {
  FUNCTION();
  __asm__ volatile("");
}
"""
PROGRAM = """\
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
void Run(void);
int main(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(120);
  puts("ready");
  fflush(stdout);
  for (;;) Run();
}
"""


class HostileNamesTest(service_harness.ServiceCase):

    def setUp(self):
        super().setUp()
        for command in ("gcc", "objcopy", "strip", "unshare", "setpriv"):
            self.need_command(command)
        os.chmod(self.dir, 0o755)
        for source, text in (("library.c", LIBRARY), ("program.c", PROGRAM)):
            harness.write_text(self.path(source), text)
        self.make_library("full.so", TRUE)
        self.make_library("evil.so", EVIL)
        self.split("full.so", "true.debug")
        self.split("evil.so", "evil.debug")
        # The library that is mapped: of root, and its function has no name.
        self.libraries = self.path("lib")
        os.mkdir(self.libraries)
        self.library = os.path.join(self.libraries, "libwho.so")
        self.run_tool("strip", "-s", "-o", self.library, "full.so")
        self.run_tool("objcopy", "--add-gnu-debuglink=true.debug",
                      self.library)
        for name in ("victim", "attacker"):
            self.make_program(name, self.libraries)

    def run_tool(self, *command):
        subprocess.run(command, cwd=self.dir, check=True, timeout=60,
                       capture_output=True)

    def make_library(self, name, function):
        self.run_tool("gcc", "-shared", "-fPIC", "-g", "-O1",
                      "-fno-omit-frame-pointer", "-DFUNCTION=" + function,
                      "-Wl,-soname,libwho.so,--build-id=0x" + BUILD_ID,
                      "-o", name, "library.c")

    def split(self, library, debug):
        self.run_tool("objcopy", "--only-keep-debug", library, debug)

    def make_program(self, name, directory):
        """It maps the library of that directory."""
        self.run_tool("gcc", "-O1", "-fno-omit-frame-pointer", "-o", name,
                      "program.c", self.path("full.so"),
                      "-Wl,-rpath," + directory)

    @staticmethod
    def by_build_id(root):
        return os.path.join(root, "usr/lib/debug/.build-id", BUILD_ID[:2],
                            BUILD_ID[2:] + ".debug")

    # Processes.

    def victim(self):
        return self.start([self.path("victim")], ready=True)

    def as_user(self, script):
        """Runs a shell's script, which ends in a program, with a user and a
        mount namespace of that user."""
        user = ["setpriv", "--reuid=%d" % USER, "--regid=%d" % USER,
                "--clear-groups", "unshare", "--user", "--map-root-user",
                "--mount"]
        works = subprocess.run([*user, "true"], capture_output=True,
                               check=False)
        if works.returncode != 0:
            self.skipTest("users may make no namespaces: %s" % works.stderr)
        return self.start([*user, "sh", "-ec", script], ready=True)

    def attack_by_build_id(self):
        """In a root of the attacker's own making its build-id leads to the
        attacker's file."""
        if not os.path.isdir("/usr/lib/debug"):
            self.skipTest("there is no /usr/lib/debug to hide")
        target = self.by_build_id("/")
        return self.as_user(
            "mount -t tmpfs tmpfs /usr/lib/debug;"
            "mkdir -p %s; cp %s %s; exec %s" % (
                os.path.dirname(target), self.path("evil.debug"), target,
                self.path("attacker")))

    def attack_by_link(self):
        """The library is in a directory of the attacker's, beside a debug file
        of the attacker's."""
        return self.as_user(
            "cp {dir}/evil.debug {mine}/true.debug;"
            "touch {mine}/libwho.so;"
            "mount --bind {lib}/libwho.so {mine}/libwho.so;"
            "mount --rbind {mine} {lib};"
            "exec {dir}/attacker".format(
                dir=self.dir, lib=self.libraries, mine=self.of_user("mine")))

    def attack_by_claim(self):
        """Another library that says it has the build-id."""
        mine = self.of_user("claim")
        library = os.path.join(mine, "libwho.so")
        shutil.copy(self.path("evil.so"), library)
        os.chown(library, USER, USER)
        self.make_program("claimer", mine)
        return self.start([self.path("claimer")], ready=True, user=USER)

    def of_user(self, name):
        path = self.path(name)
        if not os.path.isdir(path):
            os.mkdir(path)
            os.chown(path, USER, USER)
        return path

    # What profiles say.

    def both(self, attack, order, *arguments):
        """The victim's leaves while the attacker's process runs, too; which
        of them is named first is the order. On a machine that others keep
        busy a capture may have few samples of either, or no time to look
        them up."""
        for _ in range(4):
            document = self.capture_both(attack, order, *arguments)
            leaves = document.leaves(comm="victim")
            if leaves["(no-symbol)"] + leaves[EVIL] > 10:
                break
        return leaves, document

    def capture_both(self, attack, order, *arguments):
        running = self.background("--format", "json", "-F", 199, *arguments, 3)
        running.wait_started()
        starts = [attack, self.victim]
        workloads = []
        for begin in starts if order == "attacker" else reversed(starts):
            workloads.append(begin())
            time.sleep(0.7)
        run = running.finish()
        for workload in workloads:
            workload.stop()
        self.assertEqual(run.status, 0, str(run))
        return reports.Document(run.stdout)

    def assert_not_named(self, leaves):
        self.assertGreater(leaves["(no-symbol)"], 10, leaves)
        self.assertNotIn(EVIL, leaves)

    def check_attack(self, attack):
        for order in ("attacker", "victim"):
            with self.subTest(first=order):
                self.assert_not_named(self.both(attack, order)[0])

    def test_debug_file_by_build_id(self):
        # A debug file that only a user's own root has names nobody else's
        # process.
        self.check_attack(self.attack_by_build_id)

    def test_debug_file_by_link(self):
        # Neither does one that is beside the library in the user's own root.
        self.check_attack(self.attack_by_link)

    def test_debug_file_of_a_user(self):
        # One that a user may put beside root's library is not taken, which a
        # warning says, and one of root's there is.
        beside = os.path.join(self.libraries, "true.debug")
        shutil.copy(self.path("evil.debug"), beside)
        os.chown(beside, USER, USER)
        self.victim()
        document = self.document("-F", 199, 1)
        self.assert_not_named(document.leaves(comm="victim"))
        self.assertIn("%s (of user %d)" % (beside, USER),
                      "".join(document.metadata["warnings"]))
        os.chown(beside, 0, 0)
        os.chmod(beside, 0o666)
        leaves = self.document("-F", 199, 1).leaves(comm="victim")
        self.assert_not_named(leaves)
        os.unlink(beside)
        shutil.copy(self.path("true.debug"), beside)
        leaves = self.document("-F", 199, 1).leaves(comm="victim")
        self.assertGreater(leaves[TRUE], 10, leaves)

    def test_claimed_build_id(self):
        # What a user's file with another's build-id says of lines and names
        # is not said of the other's frames.
        for order in ("attacker", "victim"):
            with self.subTest(first=order):
                leaves, document = self.both(
                    self.attack_by_claim, order, "--inlines", "--lines")
                self.assert_not_named(leaves)
                claimed = document.leaves(comm="claimer")
                self.assertGreater(claimed[EVIL], 0, claimed)
                self.assertFalse(
                    [stack for stack in document.stacks
                     if stack["comm"] == "victim" and
                     any("library.c" in frame.get("file", "")
                         for frame in document.user(stack))])

    def test_service(self):
        # The service, whose tables live long, has the same answers.
        for attack in (self.attack_by_build_id, self.attack_by_link):
            with self.subTest(attack=attack.__name__):
                self.check_service(attack)

    def check_service(self, attack):
        self.directory = self.path(attack.__name__)
        self.configure()
        service = self.start_service()
        workloads = [attack()]
        time.sleep(1.5)
        workloads.append(self.victim())
        time.sleep(2.5)
        service.end()
        for workload in workloads:
            workload.stop()
        lines = [line for path in self.files()
                 for line in harness.read_text(path).splitlines()
                 if line.startswith("victim;")]
        self.assertTrue([line for line in lines
                         if re.search(r";Run;libwho\.so\+0x[0-9a-f]+ ", line)],
                        lines)
        self.assertFalse([line for line in lines if EVIL in line], lines)

    def attack_by_number(self):
        """After the library was mapped, its path leads to a file that has its
        inode number, on a file system whose device cannot be compared."""
        mine = self.of_user("numbers")
        script = (
            "mount -t tmpfs tmpfs {mine}; mkdir {mine}/a;"
            "cp {dir}/evil.so {mine}/a/libwho.so; mkdir {mine}/b;"
            "{dir}/attacker & sleep 0.5;"
            "mount -t overlay -o lowerdir={mine}/a:{mine}/b overlay {lib};"
            "stat -c %i {lib}/libwho.so > {told}; wait")
        told = os.path.join(mine, "inode")
        attacker = self.as_user(script.format(
            dir=self.dir, mine=mine, lib=self.libraries, told=told))
        inside = "/proc/%d/root%s" % (attacker.pid, told)
        harness.wait_for(lambda: os.path.exists(inside) and
                         harness.read_text(inside).endswith("\n") or
                         attacker.process.poll() is not None, "the overlay", 5)
        if attacker.process.poll() is not None:
            self.skipTest("users may mount no overlay")
        self.assertEqual(int(harness.read_text(inside)),
                         os.stat(self.library).st_ino)
        return attacker

    def test_inode_number(self):
        # A file that has the inode number of root's, where a path leads to
        # it, is not taken for root's: by a profiler that may not open what is
        # mapped, but what the path of it leads to.
        self.mount("-t", "tmpfs", "tmpfs", self.libraries)
        os.mkdir(os.path.join(self.libraries, "first"))
        self.run_tool("strip", "-s", "-o", self.library, "full.so")
        profiler = self.copy(harness.PROFILER, "ksym-profile")
        os.mkdir(self.path("out"))
        os.chmod(self.path("out"), 0o777)
        report = self.path("out/report.json")
        self.attack_by_number()
        capture = self.start(
            [profiler, "-F", 199, "--format", "json", "-o", report, 2],
            prefix=harness.as_nobody("bpf", "perfmon", "syslog", "sys_ptrace",
                                     "dac_read_search"))
        time.sleep(1)
        self.victim()
        self.assertEqual(capture.process.wait(harness.RUN_SECONDS), 0)
        document = reports.Document(harness.read_bytes(report))
        attacker = document.leaves(comm="attacker")
        self.assertGreater(attacker[EVIL], 10, attacker)
        self.assert_not_named(document.leaves(comm="victim"))

    # What has to go on being named.

    def container(self, owner):
        """A root of its own with a program, its libraries and the debug file
        of one, all of them that user's."""
        root = self.path("root")
        name = os.path.join(root, "victim")
        os.makedirs(os.path.dirname(self.by_build_id(root)))
        os.makedirs(root + self.libraries)
        shutil.copy(self.path("victim"), name)
        self.copy_libraries(self.path("victim"), root)
        shutil.copy(self.library, root + self.library)
        shutil.copy(self.path("true.debug"), self.by_build_id(root))
        for directory, _, files in os.walk(root):
            for path in [directory, *(os.path.join(directory, f) for f in files)]:
                os.chown(path, owner, owner)
        return root

    def test_container(self):
        # A container of root's has its own debug files.
        root = self.container(0)
        self.start(["chroot", root, "/victim"], ready=True)
        leaves = self.document("-F", 199, 1).leaves(comm="victim")
        self.assertGreater(leaves[TRUE], 10, leaves)

    def test_container_of_a_user(self):
        # So has one that a user made.
        root = self.container(USER)
        self.as_user("exec chroot %s /victim" % root)
        leaves = self.document("-F", 199, 1).leaves(comm="victim")
        self.assertGreater(leaves[TRUE], 10, leaves)


def doubling(times):
    """A C++ name that has a type with 2 ** times types in it, and an expansion
    whose pack is looked for in all of them."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    name = "FviiE"
    for i in range(times):
        name = "Fv" + name + "S" + digits[i] + "_E"
    return "_Z1fIJiEEvDp" + name


class HostileManglingTest(harness.E2eTest):
    FUNCTION = """\
__attribute__((noinline)) void F%d(void) __asm__("%s");
void F%d(void) {
  for (volatile unsigned long left = 200000; left != 0;) left = left - 1;
}
"""
    # Each took a demangler years; the last one is Rust's as any other.
    NAMES = ["_RC0YYYYQYYYYQFFFFFGFFFYYQYYYYYYYYQQYY_RYQYYYYYYYYQYYYYYdbbbb"
             "YYYQbQ", doubling(36), "_D1b" + 60 * "FS1a" + "i"]
    TRUE_NAME = "_RINvC1a1bKo123456789abcdef01234_E"

    def test_bounded(self):
        # A profile is there in time, and has all of them.
        self.need_command("gcc")
        names = [*self.NAMES, self.TRUE_NAME]
        calls = "".join("F%d(); " % i for i in range(len(names)))
        source = "".join(self.FUNCTION % (i, name, i)
                         for i, name in enumerate(names))
        source += PROGRAM.replace("void Run(void);",
                                  "static void Run(void) { %s}" % calls)
        harness.write_text(self.path("program.c"), source)
        subprocess.run(["gcc", "-O1", "-fno-omit-frame-pointer", "-o",
                        self.path("victim"), self.path("program.c")],
                       check=True, timeout=60)
        self.start([self.path("victim")], ready=True)
        document = self.document("-F", 199, 2)
        shown = document.leaves(comm="victim")
        for name in [*self.NAMES, "a::b::<0x123456789abcdef01234>"]:
            self.assertGreater(shown[name], 0, shown)


if __name__ == "__main__":
    harness.main()
