# SPDX-License-Identifier: Apache-2.0
"""What all threads do now, and who has what they wait for: dump."""

import json
import os
import re
import signal
import time

import harness
import reports

SLEEPERS = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "workloads", "sleepers.py")
# The state, the reason and a function of each kind of thread that hangs.
KNOWN = {
    "sleep": ("blocked", "clock_nanosleep", "Hang_sleep"),
    "pipe": ("blocked", "read", "Hang_pipe"),
    "poll": ("blocked", "poll", "Hang_poll"),
    "condvar": ("blocked", "futex", "Hang_condvar"),
    "vfork": ("blocked", "vfork, D", "Hang_vfork"),
    "first": ("blocked", "clock_nanosleep", "Hang_first"),
    "second": ("blocked", "futex", "Hang_second"),
    "third": ("blocked", "futex", "Hang_third"),
    "ring0": ("blocked", "futex", "Hang_ring0"),
    "ring1": ("blocked", "futex", "Hang_ring1"),
    "ring2": ("blocked", "futex", "Hang_ring2"),
    "self": ("blocked", "futex", "Hang_self"),
    "heir": ("blocked", "clock_nanosleep", "Hang_heir"),
    "wants_heir": ("blocked", "futex", "Hang_wants_heir"),
    "shared": ("blocked", "futex", "Hang_shared"),
    "foreign": ("blocked", "futex", "Hang_foreign"),
    "nobody": ("blocked", "futex", "Hang_nobody"),
    "strange": ("blocked", "futex", "Hang_strange"),
}
# Whose lock is whose.
HOLDERS = {"second": "first", "third": "second", "ring0": "ring1",
           "ring1": "ring2", "ring2": "ring0", "self": "self",
           "wants_heir": "heir", "shared": "holder"}


class Dump:
    """A dump as JSON, held against itself."""

    def __init__(self, data):
        self.json = json.loads(data)
        self.frames = self.json["frames"]
        self.threads = self.json["threads"]
        self.by_tid = {thread["tid"]: thread for thread in self.threads}
        reports.expect(len(self.by_tid) == len(self.threads), "tids twice")
        used = set()
        for thread in self.threads:
            used.update(thread.get("user", []), thread.get("kernel", []))
        reports.expect(used == set(range(len(self.frames))),
                       "frames that no thread uses, or the reverse")

    def named(self, comm):
        return [thread for thread in self.threads if thread["comm"] == comm]

    def names(self, thread, key="user"):
        return [self.frames[i]["name"] for i in thread.get(key, [])]


class DumpTest(harness.E2eTest):

    def hang(self):
        """The workload, and its processes by name."""
        workload = self.workload("hang", str(os.getpid()))
        pids = {line.split()[0]: int(line.split()[1], 0)
                for line in workload.output if line.split()[1:]}
        for name in ("holder", "stopped"):
            self.addCleanup(os.kill, pids[name], signal.SIGKILL)
        return workload, pids

    def dump(self, *arguments):
        run = self.profile("dump", "--format", "json", *arguments)
        return Dump(run.stdout)

    def test_loads_at_once(self):
        # What the programs need of the kernel's types is in the small BTF.
        for _ in range(2):
            run = self.profile("dump", "-v", "-p", os.getpid())
            self.assertNotIn("load failed", run.stderr)

    def test_known_threads(self):
        workload, pids = self.hang()
        time.sleep(0.5)
        dump = self.dump("-p", "%d,%d,%d" % (workload.pid, pids["holder"],
                                             pids["stopped"]))
        for comm, (state, reason, function) in KNOWN.items():
            with self.subTest(comm):
                thread, = dump.named(comm)
                self.assertEqual(thread["state"], state)
                # A sleep that was stopped and went on has this name.
                if thread["reason"] != "restart_syscall":
                    self.assertEqual(thread["reason"], reason)
                self.assertEqual(thread["user_state"], "whole")
                self.assertIn(function, dump.names(thread))
                self.assertTrue(dump.names(thread, "kernel"))
                # It has hung since it began, or since the half second ago.
                self.assertGreater(thread["waited_ns"], 400e6)
                self.assertLess(thread["waited_ns"], 60e9)
        with self.subTest("stopped"):
            thread, = dump.named("stopped")
            self.assertEqual((thread["state"], thread["reason"]),
                             ("blocked", "stopped"))
        with self.subTest("spin"):
            thread, = dump.named("spin")
            self.assertIn(thread["state"], ("running", "runnable"))
            self.assertIn("Hang_spin", dump.names(thread))
        with self.subTest("holders"):
            self.check_holders(dump, pids)
        with self.subTest("deadlocks"):
            ring = [dump.named("ring%d" % i)[0]["tid"] for i in range(3)]
            alone = [dump.named("self")[0]["tid"]]
            self.assertEqual(sorted(dump.json["deadlocks"]),
                             sorted([ring, alone]))

    def check_holders(self, dump, pids):
        for comm in KNOWN:
            with self.subTest(comm):
                thread, = dump.named(comm)
                lock = thread.get("lock")
                self.assertEqual(lock is not None, thread["reason"] == "futex")
                holder = (lock or {}).get("holder")
                if comm not in HOLDERS:
                    # The words of hostile locks and of others name nobody.
                    self.assertIsNone(holder)
                else:
                    self.assertEqual(dump.by_tid[holder]["comm"],
                                     HOLDERS[comm])
        second, = dump.named("second")
        self.assertEqual(int(second["lock"]["address"], 0), pids["chain0"])

    def test_whole_machine(self):
        """The holder is found though nobody was chosen; other processes'
        threads are named by no lie."""
        workload, _ = self.hang()
        dump = self.dump()
        self.assertIn(os.getpid(), dump.by_tid)
        self.assertIn(2, dump.by_tid)
        self.assertEqual(dump.by_tid[2]["reason"], "kernel thread")
        self.assertIn("kthreadd", dump.names(dump.by_tid[2], "kernel"))
        shared = [thread for thread in dump.named("shared")
                  if thread["pid"] == workload.pid]
        self.assertEqual(dump.by_tid[shared[0]["lock"]["holder"]]["comm"],
                         "holder")
        for comm in ("foreign", "nobody", "strange"):
            for thread in dump.named(comm):
                self.assertNotIn("holder", thread["lock"])
        with_user = [thread for thread in dump.threads
                     if thread.get("user_state", "none") != "none"]
        whole = [thread for thread in with_user
                 if thread["user_state"] == "whole"]
        self.assertGreaterEqual(len(whole), 0.95 * len(with_user))

    def test_text(self):
        workload, _ = self.hang()
        text = self.profile("dump", "-p", workload.pid).stdout.decode()
        lines = text.splitlines()
        self.assertRegex(lines[0], r"^\d+ threads of 1 process: \d+ running, "
                                   r"\d+ runnable, \d+ blocked$")
        at = text.index("DEADLOCK: 3 threads, each of which waits")
        self.assertIn("DEADLOCK: 1 thread waits for a lock that it holds",
                      text)
        self.assertLess(at, text.index("Hang_sleep"))
        self.assertRegex(text, r"for the mutex at 0x[0-9a-f]+, which \d+ "
                               r"'ring1' has \(blocked\)")
        # The chain's holder is no part of a deadlock.
        self.assertRegex(text, r"which \d+ 'first' has \(blocked\)")
        twins = re.search(r"(\d+) threads?, blocked: clock_nanosleep, for [^\n]*"
                          r"\n(  [^\n]*\n)*  twin \(%d\): \d+ \d+ \d+\n"
                          % workload.pid, text)
        self.assertTrue(twins, text)
        self.assertGreaterEqual(int(twins.group(1)), 3)

    def test_other_formats(self):
        workload, _ = self.hang()
        page = self.path("threads.html")
        run = self.profile("dump", "-p", workload.pid, "-o", page)
        self.assertIn(b"Hang_condvar", harness.read_bytes(page))
        self.assertRegex(run.stderr, r"\d+ threads of 1 process: ")
        self.assertIn("2 deadlocks\n", run.stderr)
        self.assertIn("wrote " + page, run.stderr)
        folded = reports.Folded(self.profile(
            "dump", "-p", workload.pid, "--format", "folded").stdout)
        by_thread = {frames[0]: count for frames, count in folded.lines}
        self.assertEqual(set(by_thread.values()), {1})
        waited = reports.Folded(self.profile(
            "dump", "-p", workload.pid, "--format", "folded", "--value",
            "waited").stdout)
        self.assertGreater(waited.total(), len(folded.lines))

    def test_reports_of_files(self):
        """A dump as pprof is a profile; as JSON it is none, and the refusal
        says so."""
        workload, _ = self.hang()
        for name, status in (("a.pb.gz", 0), ("a.json", 1)):
            path = self.path(name)
            self.profile("dump", "-p", workload.pid, "-o", path)
            run = self.profile("report", path, status=status)
            if status == 0:
                self.assertIn(b"samples", run.stdout)
            else:
                self.assertIn("dump them as pprof", run.stderr)

    def test_python_threads(self):
        """Threads of Python have its functions, in their places."""
        workload = self.start(["python3", SLEEPERS],
                              ready=True)
        dump = self.dump("-p", workload.pid)
        chains = []
        for thread in dump.threads:
            self.assertEqual(thread["user_state"], "whole", thread)
            frames = [dump.frames[i] for i in thread["user"]]
            names = [frame["name"].split(" (")[0] for frame in frames
                     if frame.get("kind") == "python"]
            self.assertNotIn("[torn]", dump.names(thread))
            chains.append(names[::-1])
        begin = ["Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"]
        self.assertEqual(sorted(chains), sorted([
            ["main", "<module>"],
            ["Worker.step", "Worker.in_lock", *begin],
            ["Condition.wait", "Queue.get", "Worker.step", "Worker.in_queue",
             *begin],
            ["Worker.in_recv.<locals>.<lambda>", "Worker.step",
             "Worker.in_recv", *begin],
            ["Worker.in_sort.<locals>.<lambda>", "Worker.in_sort", *begin]]))
        lines = reports.Folded(self.profile(
            "--off-cpu", "--parked", "-p", workload.pid, 1).stdout)
        self.assertTrue(lines.lines)
        for frames, _ in lines.lines:
            self.assertTrue({"<module> (sleepers.py)",
                             "Thread.run (threading.py)"} & set(frames), frames)

    def test_file_system_hangs(self):
        """Who waits for a file system that does not answer is shown with the
        kernel's stack, and does not keep the dump from its end."""
        server, directory = self.silent_fs("-1")
        os.kill(server.pid, signal.SIGUSR1)
        victim = self.start(["cat", directory + "/program"])
        time.sleep(0.5)
        begin = time.monotonic()
        dump = self.dump()
        self.assertLess(time.monotonic() - begin, 10)
        thread = dump.by_tid[victim.pid]
        self.assertEqual(thread["state"], "blocked")
        names = dump.names(thread, "kernel")
        self.assertTrue([name for name in names if "fuse" in name], names)

    def test_usage(self):
        for arguments in (["-p", "1", "-L", "1"], ["-p", "x"], ["-p", ""],
                          ["--format", "nothing"], ["-o", "a.nothing"],
                          ["--value", "cpu"], ["-q", "-v"], ["extra"]):
            with self.subTest(arguments):
                run = self.profile("dump", *arguments, status=2)
                self.assertEqual(len(run.stderr_lines), 1)
                self.assertIn("(see --help)", run.stderr)
        run = self.profile("dump", "-p", 4194303, status=1)
        self.assertIn("there is no process 4194303", run.stderr)
        self.assertIn(b"--value", self.profile("dump", "--help").stdout)

    def test_one_thread(self):
        workload, _ = self.hang()
        tids = [int(tid) for tid in os.listdir("/proc/%d/task" % workload.pid)]
        dump = self.dump("-L", tids[-1])
        self.assertEqual(list(dump.by_tid), [tids[-1]])

    def test_processes_go_on(self):
        """Nothing is stopped: a program runs while it is dumped."""
        workload = self.workload("spin")

        def ticks():
            with open("/proc/%d/stat" % workload.pid) as file:
                return int(file.read().rsplit(")", 1)[1].split()[11])
        before = ticks()
        for _ in range(3):
            self.dump("-p", workload.pid)
        self.assertGreater(ticks(), before)


if __name__ == "__main__":
    harness.main()
