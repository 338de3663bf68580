# SPDX-License-Identifier: Apache-2.0
"""Programs whose files are deleted, replaced, upgraded, in memory only, or in
another root: the right name, or none and why, and never a wrong one."""

import os
import shutil
import subprocess

import harness
import reports

# relay with these arguments stays itself for a minute.
FOR_A_MINUTE = ["60000", "/nowhere"]


class FileTest(harness.E2eTest):

    def relay(self, path, **options):
        """The program at `path` says its work's name; both are alike."""
        return self.start([path, path, *FOR_A_MINUTE], ready=True, **options)

    def put(self, which, path):
        """Puts relay_a or relay_b at `path`, as installers do: a new file
        under another name that is renamed."""
        new = self.program("relay_" + which, os.path.basename(path) + ".new")
        os.rename(new, path)

    def capture(self, workloads, *arguments, **options):
        return self.document(
            "-F", 999, "-p", ",".join(str(w.pid) for w in workloads),
            *arguments, **options)

    def capture_by_path(self, workloads):
        """Without the privilege to open mapped files themselves."""
        profiler = self.copy(harness.PROFILER, "ksym-profile")
        done = subprocess.run(
            [*harness.as_nobody("bpf", "perfmon", "sys_ptrace", "syslog"),
             profiler, "-F", "999", "--format", "json", "-p",
             ",".join(str(w.pid) for w in workloads), "1"],
            capture_output=True, check=False, timeout=harness.RUN_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return reports.Document(done.stdout)

    def assert_named(self, document, workload, *names):
        self.assert_leaves(document.leaves(workload.pid), *names)


class ReplacedFileTest(FileTest):

    def test_before_the_capture(self):
        # Processes whose file was deleted, or replaced by another program,
        # have the names of what they run.
        deleted = self.relay(self.program("relay_a", "deleted"))
        os.unlink(self.path("deleted"))
        path = self.program("relay_a", "replaced")
        old = self.relay(path)
        self.put("b", path)
        new = self.relay(path)
        document = self.capture([deleted, old, new], 1)
        self.assert_named(document, deleted, "Work_a")
        self.assert_named(document, old, "Work_a")
        self.assert_named(document, new, "Work_b")

    def test_during_the_capture(self):
        # Likewise when that happens while the capture runs, and when the
        # file is not there any more when the names are looked up.
        running = self.background("-F", 999, "--format", "json")
        running.wait_started()
        path = self.program("relay_a", "upgraded")
        workloads = {}
        for which in "ab":
            self.put(which, path)
            workloads[which] = self.relay(path)
            harness.time.sleep(0.3)
        os.unlink(path)
        gone = self.relay(self.program("relay_b", "gone"))
        harness.time.sleep(0.3)
        gone.stop()
        os.unlink(self.path("gone"))
        running.signal(harness.signal.SIGINT)
        run = running.finish()
        self.assertEqual(run.status, 0, str(run))
        document = reports.Document(run.stdout)
        for which, workload in workloads.items():
            self.assert_named(document, workload, "Work_" + which)
        self.assert_named(document, gone, "Work_b")

    def test_without_the_privilege_to_open_it(self):
        # Who may not open mapped files themselves finds them by their paths;
        # then one that was deleted or replaced is no file, and says why.
        kept = self.relay(self.program("relay_a", "kept"))
        deleted = self.relay(self.program("relay_a", "deleted"))
        os.unlink(self.path("deleted"))
        path = self.program("relay_a", "replaced")
        replaced = self.relay(path)
        self.put("b", path)
        document = self.capture_by_path([kept, deleted, replaced])
        self.assert_named(document, kept, "Work_a")
        self.assert_named(document, deleted, "(gone)")
        self.assert_named(document, replaced, "(file-changed)")

    def test_library_that_takes_the_place_of_another(self):
        # A library that is loaded where another one was: no sample has the
        # other one's name, in the report and in a replay of it. In the time
        # between two drains in which that happens there is no name.
        libraries = [self.copy(os.path.join(harness.WORKLOADS, name), name)
                     for name in ("plugin_a.so", "plugin_b.so")]
        fast = self.workload("plugins", 20, *libraries)
        slow = self.workload("plugins", 600, *libraries)
        raw = self.path("raw")
        live = self.capture([fast, slow], "--raw", raw, 2)
        for document in live, self.document("--replay", raw):
            for own, other in ("ab", "ba"):
                for workload in fast, slow:
                    leaves = document.leaves(workload.pid, "in " + own)
                    self.assertGreater(sum(leaves.values()), 50, leaves)
                    self.assertEqual(leaves["Plugin_" + other], 0, leaves)
                    self.assertEqual(leaves["(no-process)"], 0, leaves)
            named = document.leaves(slow.pid)
            self.assertGreater(named["Plugin_a"] + named["Plugin_b"], 10,
                               named)

    def test_in_memory_only(self):
        # A program that is in memory only (memfd_create, fexecve) has its
        # names.
        spin = self.start(
            [os.path.join(harness.WORKLOADS, "memexec"),
             os.path.join(harness.WORKLOADS, "spin")], ready=True)
        document = self.capture([spin], 0.7)
        self.assert_named(document, spin, "Hot")


class OtherRootTest(FileTest):

    def setUp(self):
        super().setUp()
        self.root = self.path("root")
        for name in ("spin", "relay_a"):
            self.copy_with_libraries(name, self.root)

    def child_of(self, workload):
        """The process in the namespace that `workload` made."""
        return int(harness.read_text("/proc/%d/task/%d/children" % (
            workload.pid, workload.pid)).split()[0])

    def test_chroot(self):
        # A process with another root has its names, and its files are those
        # in its root, whatever is at the same path outside of it. They are
        # shown by the paths that it sees itself.
        inside = self.start(["chroot", self.root, "/spin"], ready=True)
        running = self.background("-F", 999, "--format", "json")
        running.wait_started()
        later = self.start(["chroot", self.root, "/spin"], ready=True)
        harness.time.sleep(0.7)
        later.stop()
        running.signal(harness.signal.SIGINT)
        document = reports.Document(running.finish().stdout)
        for workload in inside, later:
            self.assert_named(document, workload, "Hot")
        hot = [f for f in document.of_kind("user") if f["name"] == "Hot"]
        self.assertEqual({f["module"] for f in hot}, {"/spin"})

    def test_debug_file_in_a_chroot(self):
        # A separate debug file is looked for beside the program in the
        # process's root, not outside of it.
        inside = os.path.join(self.root, "spin")
        debug = os.path.join(self.root, ".debug", "spin.debug")
        os.makedirs(os.path.dirname(debug))
        for command in [["objcopy", "--only-keep-debug", inside, debug],
                        ["strip", "--strip-all", inside],
                        ["objcopy", "--add-gnu-debuglink=" + debug, inside]]:
            self.need_command(command[0])
            subprocess.run(command, check=True)
        spin = self.start(["chroot", self.root, "/spin"], ready=True)
        document = self.capture([spin], 0.7)
        self.assert_named(document, spin, "Hot")

    def test_namespaces(self):
        # Processes in pid and mount namespaces with another root, by chroot
        # and by pivot_root, have their names, from the start on and later,
        # while they live and after.
        self.need_command("pivot_root")
        pivot = ("mount --bind {0} {0} && cd {0} && mkdir -p old && "
                 "pivot_root . old && exec ./spin").format(self.root)
        unshare = ["unshare", "--pid", "--mount", "--fork", "--kill-child"]
        commands = [[*unshare, "--root", self.root, "/spin"],
                    [*unshare, "sh", "-c", pivot]]
        before = [self.start(c, ready=True) for c in commands]
        pids = [self.child_of(w) for w in before]
        running = self.background("-F", 1999, "--format", "json")
        running.wait_started()
        later = [self.start(c, ready=True) for c in commands]
        pids += [self.child_of(w) for w in later]
        harness.time.sleep(0.8)
        for workload in later:
            workload.stop()
        running.signal(harness.signal.SIGINT)
        document = reports.Document(running.finish().stdout)
        for pid in pids:
            self.assert_leaves(document.leaves(pid), "Hot")


class OverlayTest(FileTest):

    def setUp(self):
        super().setUp()
        if "overlay" not in harness.read_text("/proc/filesystems"):
            self.skipTest("the kernel has no overlayfs")
        os.chmod(self.dir, 0o755)
        self.lower, self.upper, self.merged = map(
            self.path, ("lower", "upper", "merged"))
        # Two file systems, as layers of containers may be, that number their
        # files alike.
        for path in (self.lower, self.upper):
            os.mkdir(path)
            self.mount("-t", "tmpfs", "tmpfs", path)
        os.mkdir(os.path.join(self.lower, "files"))
        for name in ("upper", "work"):
            os.mkdir(os.path.join(self.upper, name))

    def mount_overlay(self):
        os.mkdir(self.merged)
        self.mount("-t", "overlay", "overlay", "-o",
                   "lowerdir={0}/files,upperdir={1}/upper,workdir={1}/work"
                   .format(self.lower, self.upper), self.merged)

    def put_in(self, layer, which, name):
        path = os.path.join(layer, name)
        shutil.copy(os.path.join(harness.WORKLOADS, "relay_" + which), path)
        return path

    def start_all(self):
        for name in ("kept", "copied", "upgraded", "deleted"):
            self.put_in(os.path.join(self.lower, "files"), "a", name)
        self.mount_overlay()
        kept, copied, upgraded, deleted = (
            os.path.join(self.merged, name)
            for name in ("kept", "copied", "upgraded", "deleted"))
        os.chmod(copied, 0o700)  # which copies it to the upper layer
        os.chmod(copied, 0o755)
        workloads = {name: self.relay(os.path.join(self.merged, name))
                     for name in ("kept", "copied", "upgraded", "deleted")}
        os.unlink(deleted)
        self.put_in(self.merged, "b", "new")
        os.rename(os.path.join(self.merged, "new"), upgraded)
        workloads["new"] = self.relay(upgraded)
        return workloads

    def test_by_the_mapped_file(self):
        # On overlayfs, too, each process has the names of what it runs: from
        # the lower layer, copied up, upgraded or deleted meanwhile.
        workloads = self.start_all()
        document = self.capture(workloads.values(), 1)
        for name, workload in workloads.items():
            self.assert_named(document, workload,
                              "Work_b" if name == "new" else "Work_a")

    def test_by_the_path(self):
        # Likewise when files are found by their paths; what is not there any
        # more says so.
        workloads = self.start_all()
        document = self.capture_by_path(workloads.values())
        for name, found in [("kept", "Work_a"), ("copied", "Work_a"),
                            ("upgraded", "(file-changed)"),
                            ("deleted", "(gone)"), ("new", "Work_b")]:
            with self.subTest(name):
                self.assert_named(document, workloads[name], found)

    def test_files_with_one_number(self):
        # Two files of different layers that have the same inode number, and
        # one device as far as anybody can see, do not have each other's
        # names.
        files = os.path.join(self.lower, "files")
        for i in range(30):  # the upper layer has some files of its own
            harness.write_text(os.path.join(files, "filler-%d" % i), "")
        lower = self.put_in(files, "a", "a")
        self.mount_overlay()
        upper = os.path.join(self.merged, "b")
        for _ in range(50):
            self.put_in(self.merged, "b", "b")
            if os.stat(upper).st_ino == os.stat(lower).st_ino:
                break
            os.rename(upper, upper + "-%d" % os.stat(upper).st_ino)
        else:
            self.skipTest("no two files have the same number here")
        a = self.relay(os.path.join(self.merged, "a"))
        b = self.relay(upper)
        by_path = self.capture_by_path([a, b])
        for document in self.capture([a, b], 0.7), by_path:
            self.assert_named(document, a, "Work_a")
            self.assert_named(document, b, "Work_b")


if __name__ == "__main__":
    harness.main()
