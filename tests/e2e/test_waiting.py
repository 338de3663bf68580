# SPDX-License-Identifier: Apache-2.0
"""Where threads wait, for how long and why: --off-cpu and --wall, in each way
in which a kernel can have them sampled."""

import collections
import gzip
import json
import math
import os
import re
import signal

import harness
import reports
from known_waits import HZ, LIFE_SECONDS, THREAD, KnownWaitsTest

# Threads live so long that outlive a capture, however late it begins.
LONG_SECONDS = 60
PERIOD_NS = 1e9 / HZ
SUM = re.compile(r"(\d+) threads: ([\d.]+) s running, ([\d.]+) s runnable, "
                 r"([\d.]+) s blocked; samples come to ([\d.]+) %")
# How much larger the variance of thinned stacks may be than that of stacks
# that all stand for as many points.
THINNED_SPREAD = 2
# From a thread's reading of its own sums, on average, until its end: a nap and
# what others take of the CPU.
READ_NS = 50e6


class WaitingTest(KnownWaitsTest):
    """The way that this kernel is sampled in."""

    EVENT = "irq_work_entry"

    def test_known_waits(self):
        document, run, said = self.run_waits(*self.way("--off-cpu"),
                                             kinds=("3", "more"))
        self.assertEqual({kind["event"] for kind in document.metadata["kinds"]},
                         {self.EVENT})
        times = self.thread_times(run)
        with self.subTest("the kernel's sums"):
            self.check_times(times, said)
        with self.subTest("the same in JSON"):
            self.check_thread_sums(document, run)
        with self.subTest("estimates"):
            self.check_estimates(document, run, said)
        with self.subTest("in step"):
            self.check_step(document, said)
        with self.subTest("reasons"):
            self.check_reasons(document)
        with self.subTest("stacks"):
            self.check_stacks(document)
        with self.subTest("all of the time"):
            share = float(SUM.search(run.stderr).group(5))
            self.assertGreater(share, 97.0, str(run))
            self.assertLess(share, 103.0, str(run))

    def check_thread_sums(self, document, run):
        states = ("running_ns", "runnable_ns", "blocked_ns")
        lines = sorted(tuple(map(int, found[:5]))
                       for found in THREAD.findall(run.stderr))
        self.assertEqual([tuple(thread[key] for key in ("pid", "tid") + states)
                          for thread in document.json["threads"]], lines)
        sums = document.metadata["thread_times"]
        self.assertEqual(sums["threads"], len(lines))
        self.assertEqual(sums["not_listed"], 0)
        for place, state in enumerate(states):
            self.assertEqual(sums[state], sum(line[2 + place]
                                              for line in lines))

    def check_times(self, times, said):
        waited_since = 0
        for name, (running, runnable, life) in said.items():
            if name == "threads":
                continue  # its threads have its name
            with self.subTest(name):
                of = times[name]
                # The thread read its sums when it was about to end: what
                # they are more in the end it has lived since.
                since = sum(of) - life
                self.assertGreater(since, 0)
                more = (of.running - running, of.runnable - runnable)
                self.assertGreaterEqual(min(more), 0)
                self.assertLessEqual(sum(more), since)
                # Mostly it is soon.
                waited_since += since
        self.assertLess(waited_since / len(said), READ_NS)
        # Those that were there all the time lived equally long.
        whole = [sum(times[name]) for name in ("waits", "sleeper", "stopped")]
        self.assertLess(max(whole) - min(whole), 0.001 * max(whole))
        self.assertEqual(times["sleeper"].running, 0)

    def check_estimates(self, document, run, said):
        times = self.thread_times(run)
        # A thread may wait for long before it has its name.
        names = {int(found[1]): found[5] for found in
                 THREAD.findall(run.stderr)}
        sampled = collections.Counter()
        # Each period has a point that is waited at or not. Where stacks are
        # thinned out one that is taken stands for several, by chance. A row
        # tells the mean of what its stacks stand for only: they differ, which
        # makes the variance larger (60 % where half stand for one and half
        # for four). How much a stack stands for is judged by those of all
        # threads: one that chance left without large ones has too small a sum
        # and would show too small a variance as well.
        all_points = excess = 0
        for stack in document.stacks:
            points = stack.get("value", 0) / PERIOD_NS
            sampled[names.get(stack["tid"])] += stack.get("value", 0)
            all_points += points
            excess += points * max(points / stack["count"] - 1, 0)
        thinned = THINNED_SPREAD * excess / all_points
        for name in said:
            with self.subTest(name):
                waited = times[name].runnable + times[name].blocked
                variance = LIFE_SECONDS * HZ / 4 + thinned * waited / PERIOD_NS
                sigma = PERIOD_NS * math.sqrt(variance)
                self.assertLess(abs(sampled[name] - waited),
                                3.5 * sigma + 6e6)
        with self.subTest("sleeper"):
            self.assertLess(abs(self.values(document, "sleeper")
                                - times["sleeper"].blocked), 3 * PERIOD_NS)

    @staticmethod
    def tolerance(document, comm, waited):
        """Of a sum at the usual rate. A capture on a loaded machine can be
        long, and then more is left to chance; so is it where stacks are thinned
        out."""
        period = 1e9 / document.metadata["frequency_hz"]
        # As in check_estimates().
        excess = max(stack["value"] / period / stack["count"] - 1
                     for stack in document.stacks
                     if stack["comm"] == comm and "value" in stack)
        variance = waited / period * (1 / 4 + THINNED_SPREAD * max(excess, 0))
        return 0.1e9 + 3.5 * period * math.sqrt(variance)

    def check_step(self, document, said):
        """Two waits that fill each period of the sampling."""
        for place, truth in said.places.items():
            sampled = sum(stack["value"] for stack in document.stacks
                          if "value" in stack and place in [
                              frame["name"] for frame in document.user(stack)])
            stands_for = max(stack["value"] / PERIOD_NS / stack["count"]
                             for stack in document.stacks if "value" in stack)
            sigma = PERIOD_NS * math.sqrt(LIFE_SECONDS * HZ / 4 * stands_for)
            self.assertLess(abs(sampled - truth), 3.5 * sigma, place)

    def check_reasons(self, document):
        for comm, reason in [("sleep", "clock_nanosleep"),
                             ("condvar", "futex"), ("second", "futex"),
                             ("third", "futex"), ("pipe", "read"),
                             ("poll", "poll"), ("sleeper", "pause")]:
            with self.subTest(comm):
                sums = self.reasons(document, comm)
                blocked = {name: ns for name, ns in sums.items()
                           if name.startswith("[blocked")}
                wanted = {"[blocked: %s]" % reason}
                # A lock's holder sleeps.
                if reason == "futex":
                    wanted.add("[blocked: clock_nanosleep]")
                self.assertTrue(blocked, sums)
                wrong = sum(ns for name, ns in blocked.items()
                            if name not in wanted)
                # Each of them begins and ends with something else.
                self.assertLess(wrong, 0.05 * sum(blocked.values()), sums)
        self.assertEqual(set(self.reasons(document, "stopped")),
                         {"[blocked: stopped]"})
        self.assertIn("[blocked: vfork, D]", self.reasons(document, "vfork"))
        for comm, reason in [("exec", "[blocked: wait4]"),
                             ("exit", "[blocked: wait4]"),
                             ("migrate", "[blocked: clock_nanosleep]")]:
            self.assertIn(reason, self.reasons(document, comm))
        self.assertIn("[runnable: preempted]",
                      self.reasons(document, "spin1"))
        self.assertIn("[runnable: yield]", self.reasons(document, "yield"))

    def check_stacks(self, document):
        known = [stack for stack in document.stacks
                 if stack["user_state"] != "none"]
        whole = sum(stack["count"] for stack in known
                    if stack["user_state"] == "whole")
        total = sum(stack["count"] for stack in known)
        ends = collections.Counter()
        for stack in known:
            ends[stack.get("user_end")] += stack["count"]
        self.assertGreater(whole, 0.99 * total, ends)
        for comm, function in [("sleep", "Wait_sleep"), ("pipe", "Wait_pipe"),
                               ("condvar", "Wait_condvar"),
                               ("third", "Wait_third"),
                               ("sleeper", "Sleeper")]:
            with self.subTest(comm):
                stacks = [stack for stack in document.stacks
                          if stack["comm"] == comm]
                right = sum(
                    stack["value"] for stack in stacks if function in
                    [frame["name"] for frame in document.user(stack)])
                self.assertGreater(
                    right, 0.95 * sum(stack["value"] for stack in stacks),
                    [(stack["count"], document.names(stack))
                     for stack in stacks][:3])
        names = {frame["name"] for frame in document.of_kind("kernel")}
        own = [name for name in names
               if "bpf_prog" in name or name == "__schedule"]
        # The profiler's own programs are no part of what they see.
        self.assertEqual(own, [])

    def test_wall_has_all_time(self):
        document, run, _ = self.run_waits(*self.way("--wall"))
        times = self.thread_times(run)
        kinds = [kind["name"] for kind in document.metadata["kinds"]]
        self.assertEqual(kinds, ["cpu", "runnable", "blocked"])
        running = PERIOD_NS * document.total(
            lambda stack: stack["sample_kind"] == "cpu"
            and stack["comm"] == "spin1")
        # Events of a loaded machine come late.
        self.assertLess(abs(running - times["spin1"].running),
                        0.1 * times["spin1"].running + 20 * PERIOD_NS)
        for frames in (document.names(stack) for stack in document.stacks
                       if stack["sample_kind"] == "cpu"):
            self.assertFalse([name for name in frames
                              if name.startswith(("[blocked", "[runnable"))])

    def test_outputs(self):
        workload, _ = self.waits(LONG_SECONDS)
        os.kill(workload.pid, signal.SIGUSR1)
        raw = self.path("waits.raw")
        self.profile(*self.way("--off-cpu"), "-p", workload.pid, "--raw", raw,
                     "--parked", "-o", self.path("a.folded"), 1)
        folded = reports.Folded(harness.read_bytes(self.path("a.folded")))
        # Pages of a stack can be taken away while its thread sleeps, so not
        # all are whole.
        slept = [frames for frames, _ in folded.of("sleep")
                 if "[blocked: clock_nanosleep]" in frames]
        line = next((frames for frames in slept if "Wait_sleep" in frames),
                    None)
        self.assertTrue(line, slept)
        at = line.index("[blocked: clock_nanosleep]")
        self.assertIn("Wait_sleep", line[:at])
        self.assertIn("entry_SYSCALL_64_after_hwframe", line[at:])
        # Microseconds of a thread that slept all the time: a second, or more
        # where others keep the profiler from ending.
        total = sum(count for _, count in folded.of("sleeper"))
        self.assertGreater(total, 0.97e6)
        self.assertLess(total, 3e6)
        again = reports.Folded(self.profile("--replay", raw, "-f",
                                            "--parked").stdout)
        self.assertEqual(sorted(again.lines), sorted(folded.lines))
        one = reports.Folded(self.profile(
            "--replay", raw, "-f", "--value", "runnable").stdout)
        self.assertLess(one.total(), folded.total())
        self.assertFalse([frames for frames, _ in one.lines
                          if any("[blocked" in name for name in frames)])
        page = self.path("a.html")
        self.profile("--replay", raw, "-o", page)
        data = json.loads(harness.read_bytes(page).split(b' id="data">')[1]
                          .split(b"</script>")[0])
        self.assertIn("time of threads, off-cpu", data["title"])
        self.assertEqual([kind["name"] for kind in data["kinds"]],
                         ["runnable", "blocked"])
        self.assertAlmostEqual(
            sum(sum(kind["leaves"][2::3]) for kind in data["kinds"]) / 1e9,
            folded.total() / 1e6, delta=0.01)
        self.profile("--replay", raw, "--value", "blocked", "-o", page)
        self.assertNotIn(b'"kinds":[', harness.read_bytes(page))
        # One place is one stack: nobody ends in the scheduler.
        self.assertFalse([frames for frames, _ in folded.lines
                          if frames[-1] in ("schedule", "schedule_timeout",
                                            "do_nanosleep")])

    def test_parked(self):
        """A thread that waits at one place is one frame, whose time stays
        in the sums, until it is asked for."""
        workload, stopped = self.waits(LONG_SECONDS)
        os.kill(workload.pid, signal.SIGUSR1)
        raw = self.path("waits.raw")
        run = self.profile(*self.way("--off-cpu"), "-F", HZ, "-p",
                           "%d,%d" % (workload.pid, stopped), "--raw", raw,
                           "-f", 1)
        folded = reports.Folded(run.stdout)
        said = re.search(r"parked: (\d+) threads waited ([\d.]+) s.*; --parked",
                         run.stderr)
        self.assertTrue(said, run.stderr)
        for comm in ("sleeper", "stopped"):
            with self.subTest(comm):
                self.assertEqual([frames for frames, _ in folded.of(comm)],
                                 [["[parked]"]])
        for comm in ("spin1", "spin2", "spin3", "yield", "vfork"):
            with self.subTest(comm):
                self.assertFalse([frames for frames, _ in folded.of(comm)
                                  if "[parked]" in frames])
        time_parked = sum(count for frames, count in folded.lines
                          if "[parked]" in frames)
        self.assertAlmostEqual(time_parked / 1e6, float(said[2]), delta=0.01)
        shown = reports.Folded(self.profile("--replay", raw, "-f",
                                            "--parked").stdout)
        self.assertTrue([frames for frames, _ in shown.of("sleeper")
                         if "Sleeper" in frames])
        self.assertNotIn("[parked]", str(shown.lines))
        self.assertAlmostEqual(shown.total() / 1e6, folded.total() / 1e6,
                               delta=0.01)
        again = self.profile("--replay", raw, "-f")
        # A replay has names that a capture beside much load did not wait for.
        has_names = "not read in time" not in run.stderr
        if has_names:
            self.assertEqual(again.stdout, run.stdout)
        document = self.check_document(self.profile(
            "--replay", raw, "--format", "json"))
        if has_names:
            self.assertAlmostEqual(self.parked_ns(document) / 1e9,
                                   float(said[2]), delta=0.001)
        # Both pictures have it closed; that of the page opens.
        for picture, opens in (("a.html", True), ("a.svg", False)):
            run = self.profile("--replay", raw, "-o", self.path(picture))
            self.assertEqual("a click on [parked] shows where" in run.stderr,
                             opens)
            page = harness.read_bytes(self.path(picture))
            self.assertIn(b"[parked]", page)
            if has_names:
                self.assertEqual(b"Sleeper" in page, opens)
            self.profile("--replay", raw, "--parked", "-o", self.path(picture))
            page = harness.read_bytes(self.path(picture))
            self.assertNotIn(b'"[parked]"' if opens else b"[parked]", page)
            if has_names:
                self.assertIn(b"Sleeper", page)
        converted = self.check_document(self.profile(
            "convert", raw, "--format", "json"))
        self.assertEqual(self.parked_ns(converted), self.parked_ns(document))
        for key in ("thread_times", "threads"):
            values = [found.metadata.get(key, found.json.get(key))
                      for found in (document, converted)]
            self.assertTrue(values[0])
            self.assertEqual(*values)
        # As the capture was written, and opened as it can be.
        self.assertEqual(self.profile("convert", raw, "-o", "-",
                                      "--format", "folded").stdout, again.stdout)
        self.assertEqual(
            reports.Folded(self.profile("convert", raw, "--parked", "--format",
                                        "folded").stdout).total(),
            shown.total())
        self.assertIn(b"[parked]", self.profile("report", raw).stdout)
        self.assertNotIn(b"[parked]",
                         self.profile("report", "--parked", raw).stdout)
        # A raw capture is the same beside a log, which has no names to say what
        # its samples come to.
        log = self.profile(*self.way("--off-cpu"), "-p", workload.pid,
                           "--raw", raw, "--format", "markup", 0.5)
        self.assertIn("threads: ", log.stderr)
        self.assertNotIn("samples come to", log.stderr)
        self.assertIn("parked: ", self.profile("--replay", raw).stderr)

    @staticmethod
    def parked_ns(document):
        return sum(stack["value"] for stack in document.stacks
                   if stack.get("parked"))

    def check_wakers(self, sums, said, comm, reason, is_right):
        with self.subTest(comm):
            of = {waker: count for (who, why, waker), count in sums.items()
                  if (who, why) == (comm, "[blocked: %s]" % reason)}
            # Where a wait was not seen to end nobody is named: on a loaded
            # machine some are not.
            unknown = of.pop(("[waker unknown]",), 0)
            total = sum(of.values())
            self.assertGreater(total, 10)
            self.assertLessEqual(unknown, 0.05 * total + 1, said)
            wrong = {waker: count for waker, count in of.items()
                     if not is_right(waker)}
            self.assertLessEqual(sum(wrong.values()), 0.01 * total, wrong)

    def test_wakers(self):
        document, run, _ = self.run_waits(*self.way("--off-cpu"), "--wakers")
        sums = self.wakers(document)
        said = [line for line in run.stderr.splitlines() if "waker" in line]
        timer = ("[woken by interrupt: timer]",)
        self.check_wakers(sums, said, "sleep", "clock_nanosleep",
                          lambda waker: waker == timer)
        self.check_wakers(sums, said, "poll", "poll",
                          lambda waker: waker == timer)
        self.check_wakers(
            sums, said, "pipe", "read",
            lambda waker: waker[0] == "writer" and "Wait_writer" in waker
            and "vfs_write" in waker)
        # A lock is given back by who had it.
        self.check_wakers(
            sums, said, "first", "futex",
            lambda waker: waker[0] == "second" and "Hold" in waker)
        self.check_wakers(
            sums, said, "second", "futex",
            lambda waker: waker[0] in ("first", "third") and "Hold" in waker)
        self.check_wakers(
            sums, said, "third", "futex",
            lambda waker: waker[0] == "second" and "Wait_second" in waker)
        self.check_wakers(
            sums, said, "vfork", "vfork, D",
            lambda waker: waker[0] == "vfork" and "Wait_vfork" in waker)
        # Nobody woke those that slept until the end.
        self.assertEqual([key for key in sums if key[0] == "sleeper"], [])
        # Each that has a user's stack has the whole one.
        threads = {waker: count for (_, _, waker), count in sums.items()
                   if not waker[0].startswith("[")}
        cut = sum(count for waker, count in threads.items()
                  if waker[1:2] and waker[1].startswith("[truncated"))
        self.assertLess(cut, 0.02 * sum(threads.values()))
        own = {name for waker in threads for name in waker
               if "bpf_" in name or name == "try_to_wake_up"}
        self.assertEqual(own, set())

    def test_wakers_in_outputs(self):
        workload, _ = self.waits(LONG_SECONDS)
        os.kill(workload.pid, signal.SIGUSR1)
        raw = self.path("wakers.raw")
        self.profile(*self.way("--wall"), "--wakers", "-p", workload.pid,
                     "--raw", raw, "-o", self.path("a.folded"), 1)
        folded = reports.Folded(harness.read_bytes(self.path("a.folded")))
        pipe = [frames for frames, _ in folded.of("pipe")
                if "Wait_writer" in frames]
        self.assertTrue(pipe)
        at = pipe[0].index("--")
        self.assertIn("Wait_pipe", pipe[0][:at])
        self.assertEqual(pipe[0][at + 1], "writer")
        again = reports.Folded(self.profile("--replay", raw, "-f").stdout)
        self.assertEqual(sorted(again.lines), sorted(folded.lines))
        for extension in ("pb.gz", "html", "json"):
            path = self.path("a." + extension)
            self.profile("--replay", raw, "-o", path)
            written = harness.read_bytes(path)
            if extension == "pb.gz":
                written = gzip.decompress(written)
            for name in (b"Wait_writer", b"[woken by interrupt: timer]"):
                self.assertIn(name, written)

    def test_cgroup(self):
        """Of the processes below a cgroup, those that sleep as well."""
        cgroup = self.cgroup()  # removed when the workload has ended
        workload, _ = self.waits(LONG_SECONDS)
        inner = os.path.join(cgroup, "inner")
        os.mkdir(inner)
        self.addCleanup(workload.stop)
        harness.write_text(os.path.join(inner, "cgroup.procs"),
                           str(workload.pid))
        os.kill(workload.pid, signal.SIGUSR1)
        run = self.profile(*self.way("--off-cpu"), "--cgroup", cgroup, "-v",
                           "--format", "json", "--by", "pid", 1)
        document = self.check_document(run)
        # Its children of vfork() are there as well.
        self.assertEqual({stack["comm"] for stack in document.stacks
                          if stack["pid"] != workload.pid} - {"vfork"}, set())
        times = self.thread_times(run)
        for comm in ("sleeper", "sleep"):
            with self.subTest(comm):
                waited = times[comm].runnable + times[comm].blocked
                self.assertGreater(waited, 0.9e9)
                self.assertLess(abs(self.values(document, comm) - waited),
                                self.tolerance(document, comm, waited))
        self.assertNotIn("ksym-profile", times)

    def test_quota(self):
        """A thread that would run all the time, and may for so little of it
        that it has used it up on a loaded machine as well."""
        cgroup = self.cpu_quota(0.03)  # removed when the workload has ended
        workload = self.workload("spin")
        self.addCleanup(workload.stop)
        harness.write_text(os.path.join(cgroup, "cgroup.procs"),
                           str(workload.pid))
        run = self.profile(*self.way("--off-cpu"), "-p", workload.pid,
                           "--format", "json", 2)
        document = self.check_document(run)
        sums = self.reasons(document, "spin")
        waits = sums["[runnable: quota]"]
        # Beside it others may take the CPU while it could run.
        self.assertGreater(waits, 0.9e9, sums)
        self.assertGreater(waits, 0.6 * sum(sums.values()), sums)

    def test_contradictions(self):
        for arguments in (["--off-cpu", "--wall"], ["--off-cpu", "-c", 1000],
                          ["--wall", "-e", "cycles"],
                          ["--off-cpu", "--stack-map", "stackid"]):
            run = self.profile(*arguments, 1, status=2)
            self.assertIn("contradict", run.stderr)
        run = self.profile("--wakers", 1, status=2)
        self.assertIn("--wakers needs", run.stderr)


class SchedExitTest(WaitingTest):
    """As where no interrupt can be asked for."""

    PROGRAM = "exit"
    EVENT = "sched_exit_tp"

    def setUp(self):
        super().setUp()
        if not harness.is_since(6, 15):
            self.skipTest("needs Linux 6.15")


class OldKernelTest(WaitingTest):
    """As on kernels before 5.18."""

    PROGRAM = "old"
    EVENT = "irq_work_entry"


if __name__ == "__main__":
    harness.main()
