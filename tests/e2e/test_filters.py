# SPDX-License-Identifier: Apache-2.0
"""What is left out: processes, threads, CPUs, cgroups, kinds of stacks."""

import os
import re

import harness


class ProcessFilterTest(harness.E2eTest):

    def test_several_pids(self):
        # -p takes the named processes and no other.
        a, b, _ = (self.workload("spin") for _ in range(3))
        document = self.document("-F", 199, "-p",
                                 "%d,%d" % (a.pid, b.pid), 1.5)
        self.assertEqual(document.pids(), {a.pid, b.pid})

    def test_many_pids(self):
        # The number of pids has no limit of its own, and the right one is
        # found among thousands.
        spin = self.workload("spin")
        self.workload("spin")
        others = range(4_000_000, 4_015_000)
        pids = ",".join(map(str, [*others, spin.pid]))
        document = self.document("-q", "-F", 199, "-p", pids, 1)
        self.assertEqual(document.pids(), {spin.pid})

    def test_absent_pid(self):
        # A process that does not exist is an error at once; one of several is
        # a warning.
        run = self.profile_raw("-p", 4_000_000, 30)
        self.assert_failure(run, "4000000")
        spin = self.workload("spin")
        run = self.profile("-p", "4000000,4000001,%d" % spin.pid, 0.3)
        self.assertEqual(len(run.warnings), 1, str(run))
        self.assertIn("4000000", run.warnings[0])

    def test_tids(self):
        # -L takes the named threads and no other thread of their process.
        threads = self.workload("threads", 40)
        tids = sorted(map(int, os.listdir("/proc/%d/task" % threads.pid)))
        wanted = tids[1:3]
        document = self.document("-F", 999, "--by", "tid", "-L",
                                 ",".join(map(str, wanted)), 2)
        self.assertEqual(document.pids(), {threads.pid})
        self.assertEqual({s["tid"] for s in document.stacks}, set(wanted))


class CpuFilterTest(harness.E2eTest):

    def test_cpus(self):
        # -C takes samples on the named CPUs only.
        self.need_two_cpus()
        spin = self.workload("spin")
        os.sched_setaffinity(spin.pid, {1})
        elsewhere = self.document("-F", 199, "-C", 0, "-p", spin.pid, 1)
        self.assertEqual(elsewhere.metadata["cpus"], "0")
        self.assertEqual(elsewhere.samples["taken"], 0)
        there = self.document("-F", 199, "-C", 1, "-p", spin.pid, 1)
        self.assertEqual(there.metadata["cpus"], "1")
        self.assertGreater(there.samples["taken"], 5)

    def test_lists_and_ranges(self):
        # Ranges may name CPUs that are not there; all are listed.
        self.need_two_cpus()
        self.assertEqual(self.document("-C", "0,1", 0.1).metadata["cpus"],
                         "0-1")
        self.assertRegex(self.document("-C", "0-500", 0.1).metadata["cpus"],
                         "^0-")

    def test_no_such_cpu(self):
        # Only absent CPUs: one line that says which there are.
        self.assert_failure(self.profile_raw("-C", "4000-4001", 1),
                            "4000-4001", "online")


class CgroupFilterTest(harness.E2eTest):

    def busy_in(self, cgroup):
        spin = self.workload("spin")
        harness.write_text(os.path.join(cgroup, "cgroup.procs"),
                           str(spin.pid))
        return spin

    def test_cgroup(self):
        # --cgroup takes the processes in a cgroup and below, and no other.
        cgroup = self.cgroup()
        below = os.path.join(cgroup, "below")
        os.mkdir(below)
        inside = {self.busy_in(cgroup).pid, self.busy_in(below).pid}
        self.workload("spin")
        document = self.document("-F", 199, "--cgroup", cgroup, 1.5)
        self.assertEqual(document.pids(), inside)

    def test_no_cgroup(self):
        # A path that is no cgroup is refused by name.
        self.assert_failure(
            self.profile_raw("--cgroup", self.path("none"), 1),
            self.path("none"))
        self.assert_failure(self.profile_raw("--cgroup", self.dir, 1),
                            self.dir)

    def test_cgroup_map(self):
        # --cgroupmap takes the cgroups whose ids are in a pinned map.
        cgroup = self.cgroup()
        below = os.path.join(cgroup, "below")
        os.mkdir(below)
        inside = self.busy_in(cgroup)
        self.busy_in(below)
        path = os.path.join(self.bpf_fs(), "cgroups")
        self.pinned_map(path, [os.stat(cgroup).st_ino])
        document = self.document("-F", 199, "--cgroupmap", path, 1.5)
        self.assertEqual(document.pids(), {inside.pid})

    def test_mount_namespace_map(self):
        # --mntnsmap takes the mount namespaces that are in a pinned map.
        self.need_command("unshare")
        self.workload("spin")
        inside = self.workload("spin", prefix=["unshare", "--mount"])
        namespace = os.stat("/proc/%d/ns/mnt" % inside.pid).st_ino
        path = os.path.join(self.bpf_fs(), "namespaces")
        self.pinned_map(path, [namespace], value_size=4)
        document = self.document("-F", 199, "--mntnsmap", path, 1.5)
        self.assertEqual(document.pids(), {inside.pid}, [
            sorted({str(s)[:200] for s in document.stacks})])
        # Names come from the process's own namespace.
        self.assertIn("Hot", {f["name"] for f in document.frames})

    def test_wrong_maps(self):
        # A path without a map, or with one of another shape, is refused.
        for option in ["--cgroupmap", "--mntnsmap"]:
            with self.subTest(option):
                self.assert_failure(
                    self.profile_raw(option, self.path("none"), 1),
                    self.path("none"))
        path = os.path.join(self.bpf_fs(), "small")
        self.pinned_map(path, [], key_size=4)
        self.assert_failure(self.profile_raw("--cgroupmap", path, 1), path)


class StackKindTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        self.start(["dd", "if=/dev/urandom", "of=/dev/null", "bs=4k"])

    def test_user_only(self):
        # -U: there is no kernel frame, and user frames stay.
        document = self.document("-F", 499, "-U", 1)
        self.assertEqual(document.of_kind("kernel"), [])
        self.assertGreater(len(document.of_kind("user")), 0)
        self.assertEqual({s["kernel_state"] for s in document.stacks},
                         {"none"})

    def test_kernel_only(self):
        # -K: there is no user frame, and kernel frames stay.
        document = self.document("-F", 499, "-K", 1)
        self.assertEqual(document.of_kind("user"), [])
        self.assertGreater(len(document.of_kind("kernel")), 0)
        self.assertEqual({s["user_state"] for s in document.stacks}, {"none"})

    def test_both(self):
        # Without either dd has stacks of user frames and kernel frames.
        document = self.document("-F", 499, 1)
        self.assertGreater(document.total(
            lambda s: s["comm"] == "dd" and s["user"] and s["kernel"]), 5)


class IdleTest(harness.E2eTest):

    def test_idle_is_left_out(self):
        # Without -I nothing of pid 0 is in the report.
        document = self.document("-F", 199, 0.5)
        self.assertNotIn(0, document.pids())

    def test_idle(self):
        # With -I idle CPUs are there as swapper, with kernel stacks only.
        for _ in range(3):
            before = self.idle_ticks()
            document = self.document("-I", "-F", 199, 1)
            if self.idle_ticks() - before >= 20:
                break
        else:
            self.skipTest("the machine has no idle CPU now")
        idle = [s for s in document.stacks if s["pid"] == 0]
        self.assertEqual({s["comm"] for s in idle}, {"swapper"})
        self.assertFalse(any(s["user"] for s in idle))
        self.assertTrue(any(s["kernel"] for s in idle))

    @staticmethod
    def idle_ticks():
        line = re.search(r"^cpu +(.*)$", harness.read_text("/proc/stat"),
                         re.M)
        return int(line[1].split()[3])


if __name__ == "__main__":
    harness.main()
