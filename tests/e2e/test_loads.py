# SPDX-License-Identifier: Apache-2.0
"""The loads that other tests and benchmarks run beside."""

import os
import signal
import subprocess
import sys
import time

import harness
import load_option
import loads
from loads import hostile

STARTER = ("import sys, time; sys.path.insert(0, sys.argv[1]); import loads\n"
           "with loads.running(sys.argv[2], sys.argv[3], sys.argv[4]):\n"
           "    print('ready', flush=True)\n"
           "    time.sleep(60)\n")


def processes_of(groups):
    """How many processes the groups have that are not zombies."""
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = harness.read_text(f"/proc/{name}/stat")
        except OSError:
            continue  # it has ended
        state, _, group = stat.rpartition(")")[2].split()[:3]
        count += int(group) in groups and state not in "ZX"
    return count


class LoadsTest(harness.E2eTest):

    NEEDS_ROOT = False

    def test_run_and_end(self):
        # All processes of a load work while the block lasts, and none is left
        # after it.
        for kind in ("spin16", "storm", "churn", "build"):
            with self.subTest(kind=kind):
                with loads.running(kind, load_option.PROGRAMS,
                                   self.dir) as load:
                    groups = {g.process.pid for g in load.generators}
                    least = sum(g.processes for g in load.generators)
                    self.assertGreaterEqual(processes_of(groups), least)
                    before = load.turns()
                    self.assertGreaterEqual(before, least)
                    harness.wait_for(lambda load=load, before=before:
                                     load.turns() > before, "more work")
                harness.wait_for(lambda groups=groups:
                                 processes_of(groups) == 0, "the end")
                self.assertEqual(os.listdir(self.dir), [])

    def test_own_time(self):
        # Spinners know the time that was theirs: nearly all of the CPUs' where
        # little else runs, and never more.
        if not load_option.is_calm():
            self.skipTest("another load runs")
        with loads.running("spin16", load_option.PROGRAMS) as load:
            before, begin = load.own_seconds(), time.monotonic()
            time.sleep(1)
            own = load.own_seconds() - before
            share = own / (time.monotonic() - begin) / len(
                os.sched_getaffinity(0))
        self.assertLess(share, 1.02)
        self.assertGreater(share, 0.3)

    def test_the_starter_is_killed(self):
        # A load does not outlive who started it, nor do its perf maps.
        for kind in ("spin16", "names"):
            with self.subTest(kind=kind):
                starter = subprocess.Popen(
                    [sys.executable, "-B", "-c", STARTER,
                     os.path.dirname(os.path.abspath(__file__)), kind,
                     load_option.PROGRAMS, self.dir], stdout=subprocess.PIPE)
                self.addCleanup(starter.wait)
                self.addCleanup(starter.kill)
                self.assertEqual(starter.stdout.readline(), b"ready\n")
                starter.stdout.close()
                children = harness.read_text(
                    f"/proc/{starter.pid}/task/{starter.pid}/children")
                groups = set(map(int, children.split()))
                self.assertTrue(groups)
                workers = {int(pid) for group in groups for pid in
                           harness.read_text(f"/proc/{group}/task/{group}/"
                                             "children").split()}
                maps = [f"/tmp/perf-{pid}.map" for pid in workers]
                self.assertEqual(any(map(os.path.exists, maps)),
                                 kind == "names")
                starter.send_signal(signal.SIGKILL)
                harness.wait_for(lambda groups=groups:
                                 processes_of(groups) == 0, "the end")
                self.assertFalse(any(map(os.path.exists, maps)))

    def test_a_load_that_ends_is_an_error(self):
        # What measures beside a load that is not there any more would say that
        # all is well.
        with self.assertRaisesRegex(loads.Failed, "status 3 of: exit 3"):
            with loads.running("calm", load_option.PROGRAMS) as load:
                load.start("rounds", 1, 0, "exit 3")
        with self.assertRaisesRegex(loads.Failed, "ended"):
            with loads.running("spin16", load_option.PROGRAMS) as load:
                os.killpg(load.generators[0].process.pid, signal.SIGKILL)
                load.generators[0].process.wait()

    def test_hostile_programs_run(self):
        # They have the sections and symbols that they were asked to have, and
        # the kernel runs them.
        spinners = os.path.join(load_option.PROGRAMS, "spinners")
        self.need_command("readelf")
        sections = hostile.many_sections(spinners, self.path("sections"),
                                         count=70_000, name_bytes=5000)
        symbols = hostile.many_symbols(spinners, self.path("symbols"),
                                       count=1234)
        header = subprocess.run(["readelf", "-hW", sections], check=True,
                                capture_output=True, text=True).stdout
        self.assertIn("(70000)", header)
        table = subprocess.run(["readelf", "-sW", symbols], check=True,
                               capture_output=True, text=True).stdout
        self.assertEqual(table.count(" FUNC "), 1234)
        with loads.running("calm", load_option.PROGRAMS) as load:
            for program in (sections, symbols):
                load.start(program, 1)
        self.assertEqual(len(hostile.long_path(self.dir)), hostile.PATH_BYTES)


if __name__ == "__main__":
    harness.main()
