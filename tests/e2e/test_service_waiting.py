# SPDX-License-Identifier: Apache-2.0
"""ksym-profiled samples threads that wait as well, where it is asked to."""

import collections
import gzip
import json
import math
import os
import signal
import sys
import threading
import time

import harness
import refuse_bpf
import reports
from service_harness import ServiceCase

LIFE_SECONDS = 5
HZ = 99
WAITING_HZ = 49


class ServiceWaitingTest(ServiceCase):

    def setUp(self):
        super().setUp()
        if not harness.is_since(5, 8):
            self.skipTest("needs Linux 5.8")
        self.waiting = {"enabled": True, "frequency_hz": WAITING_HZ}

    def waits(self):
        workload = self.workload("waits", LIFE_SECONDS, self.dir)
        self.addCleanup(os.kill, int(workload.output[0].split()[1]),
                        signal.SIGKILL)
        return workload

    def blocked_said(self, workload):
        """Runs the known waits; for how long each thread was blocked."""
        os.kill(workload.pid, signal.SIGUSR1)
        said = {}
        # One that does not end would keep this from ending.
        deadline = threading.Timer(harness.RUN_SECONDS, workload.process.kill)
        deadline.start()
        self.addCleanup(deadline.cancel)
        while True:
            line = workload.process.stdout.readline().decode().split()
            if line == ["done"]:
                return said
            self.assertTrue(line, "the workload did not end")
            if line[0] == "place":
                continue
            running, runnable, life = map(int, line[1:4])
            said[line[0]] = life - running - runnable

    def recent(self, begin, **parameters):
        """The samples of the profiles since then."""
        query = "".join("&%s=%s" % pair for pair in parameters.items())
        status, body = self.get("/profile?from=%d%s" % (begin, query))
        self.assertEqual(status, 200, body)
        return body

    def wait_interval(self):
        """Until a profile has all that was before."""
        made = self.metrics()["ksym_profiles_total"]
        harness.wait_for(
            lambda: self.metrics()["ksym_profiles_total"] >= made + 2,
            "two profiles")

    def kinds(self, metadata):
        """Where there is one, of CPU time, it is not named."""
        return [kind["name"] for kind in
                metadata.get("kinds", [{"name": "cpu"}])]

    def values(self, document, pid):
        """How long threads of the process waited, by name."""
        sums = collections.Counter()
        for stack in document.stacks:
            if stack["pid"] == pid:
                sums[stack["comm"]] += stack.get("value", 0)
        return sums

    def test_known_waits(self):
        # The time of known waits is there, with its reasons, and threads that
        # sleep all the time are in each interval; who asks for nothing gets
        # CPU time alone.
        self.configure(frequency_hz=HZ, format="json")
        workload = self.waits()
        spin = self.workload("spin")
        service = self.start_service()
        begin = time.time()
        said = self.blocked_said(workload)
        end = time.time()
        self.wait_interval()
        body = self.recent(begin, kind="blocked", format="json")
        document = reports.Document(body)
        self.assertEqual(self.kinds(document.metadata), ["blocked"])
        values = self.values(document, workload.pid)
        tolerance = self.tolerance()
        for comm, reason in [("sleep", "clock_nanosleep"), ("pipe", "read"),
                             ("condvar", "futex"), ("poll", "poll")]:
            with self.subTest(comm):
                self.assertLess(abs(values[comm] - said[comm]), tolerance)
                names = {name for stack in document.stacks
                         if stack["pid"] == workload.pid
                         and stack["comm"] == comm
                         for name in document.names(stack)}
                self.assertIn("[blocked: %s]" % reason, names)
        for stack in document.stacks:
            if stack["comm"] == "sleeper":
                self.assertIn("Sleeper", document.names(stack))
                self.assertIn("[blocked: pause]", document.names(stack))
        with self.subTest("each interval"):
            self.check_intervals(workload, begin, end)
        with self.subTest("labels"):
            self.check_labels(begin, workload)
        with self.subTest("kinds"):
            self.check_kinds(begin, spin)
        with self.subTest("metrics"):
            self.check_metrics()
        self.assertLess(service.end(), 2)
        self.assertEqual(service.process.returncode, 0, service.log())
        self.totals(service)

    def tolerance(self):
        """Nanoseconds by which a thread's time may be off. Each period has a
        point that is waited at or not, and on a busy machine one stack stands
        for several."""
        metrics = self.metrics()
        taken = sum(metrics['ksym_waiting_samples_total{kind="%s"}' % kind]
                    for kind in ("runnable", "blocked"))
        thinned = metrics["ksym_waiting_thinned_total"]
        stands_for = 0.25 if thinned == 0 else 1.25 + 2 * thinned / taken
        periods = LIFE_SECONDS * WAITING_HZ
        sigma = math.sqrt(periods * stands_for) * 1e9 / WAITING_HZ
        return 4 * sigma + 0.05e9

    def check_intervals(self, workload, begin, end):
        whole = 0
        for path in self.files("json"):
            document = reports.Document(harness.read_bytes(path))
            start = document.metadata["start_unix_ns"]
            duration = document.metadata["duration_ns"]
            if start < (begin + 0.5) * 1e9 or start + duration > end * 1e9:
                continue
            whole += 1
            # The walk and the end of the interval are not one moment.
            slept = self.values(document, workload.pid)["sleeper"]
            self.assertLess(abs(slept - duration), 0.1 * duration + 0.05e9)
        self.assertGreaterEqual(whole, 2)

    def check_labels(self, begin, workload):
        document = reports.Document(
            self.recent(begin, kind="all", format="json"))
        cgroups = {(stack["sample_kind"], stack.get("cgroup"))
                   for stack in document.stacks
                   if stack["pid"] == workload.pid}
        self.assertEqual({kind for kind, _ in cgroups},
                         {"cpu", "runnable", "blocked"})
        self.assertEqual(len({cgroup for _, cgroup in cgroups}), 1, cgroups)

    def check_kinds(self, begin, spin):
        until = {"until": int(time.time())}
        usual = self.recent(begin, **until)
        self.assertEqual(usual, self.recent(begin, kind="cpu", **until))
        self.assertNotIn(b"[blocked", usual)
        self.assertGreater(reports.Folded(usual).share("spin", "main"), 0.9)
        document = reports.Document(self.recent(begin, format="json"))
        self.assertEqual(document.metadata["frequency_hz"], HZ)
        self.assertEqual(self.kinds(document.metadata), ["cpu"])
        self.assertIn(spin.pid, document.pids())
        self.assertFalse(document.of_kind("wait"))
        status, body = self.get("/profile?from=%d&kind=none" % begin)
        self.assertEqual(status, 400)
        self.assertIn(b"cpu, runnable and blocked", body)
        for kind, is_there in [("", False), ("&kind=blocked", True)]:
            status, body = self.get("/debug/pprof/profile?seconds=1" + kind)
            self.assertEqual(status, 200)
            # The walk comes when the interval ends, which is 1 s as well. The
            # whole word of the string table: functions have it in their names.
            self.assertEqual(b"\x32\x07blocked" in gzip.decompress(body),
                             is_there)

    def check_metrics(self):
        metrics = self.metrics()
        self.assertEqual(metrics["ksym_waiting_frequency_hz"], WAITING_HZ)
        for kind in ("runnable", "blocked"):
            for name in ("samples", "seconds"):
                self.assertGreater(metrics[
                    'ksym_waiting_%s_total{kind="%s"}' % (name, kind)], 0)
        self.assertGreater(metrics["ksym_waiting_sleepers"], 0)
        self.assertGreater(metrics["ksym_waiting_walks_total"], 3)
        for name in ("thinned", "unseen", "crowded", "untaken", "put_off"):
            self.assertIn("ksym_waiting_%s_total" % name, metrics)

    def test_reload(self):
        # SIGHUP turns it off and on; CPU sampling goes on.
        self.configure(frequency_hz=HZ)
        self.workload("spin")
        service = self.start_service()
        for enabled in (False, True):
            self.waiting["enabled"] = enabled
            self.configure(frequency_hz=HZ)
            service.process.send_signal(signal.SIGHUP)
            rate = WAITING_HZ if enabled else 0
            harness.wait_for(
                lambda: self.metrics()["ksym_waiting_frequency_hz"] == rate,
                "the reload")
            begin = time.time() + 1
            self.wait_interval()
            time.sleep(1)
            self.wait_interval()
            document = json.loads(
                self.recent(begin, kind="all", format="json"))
            self.assertEqual(self.kinds(document["metadata"]),
                             ["cpu", "runnable", "blocked"] if enabled
                             else ["cpu"])
            self.assertIn(b"spin;", self.recent(begin))
        self.assertLess(service.end(), 2)
        self.totals(service)

    def test_refused(self):
        # Where the kernel refuses it, as it is loaded or as it begins, that is
        # said, and CPUs are sampled all the same.
        for command in (refuse_bpf.LINK_CREATE,
                        refuse_bpf.RAW_TRACEPOINT_OPEN):
            with self.subTest(command):
                self.configure(frequency_hz=HZ)
                self.workload("spin")
                service = self.start_service(
                    prefix=[sys.executable, "-B", refuse_bpf.__file__,
                            command])
                self.assertIn("threads that wait are not sampled, only CPUs: ",
                              service.log())
                self.wait_interval()
                self.assertEqual(self.metrics()["ksym_waiting_frequency_hz"],
                                 0)
                self.assertIn(b"spin;", self.recent(time.time() - 10))
                self.assertLess(service.end(), 2)
                self.totals(service)

    def test_limits(self):
        # Over a limit the samples of waits go first; the rate stays.
        self.configure(frequency_hz=HZ)
        service = self.start_service("--limits-memory-bytes", "1000000")
        service.wait_log("over limits.memory_bytes: level 0, sampling at %d Hz,"
                         " without waits" % HZ)
        harness.wait_for(
            lambda: self.metrics()["ksym_waiting_frequency_hz"] == 0,
            "no waits")
        metrics = self.metrics()
        self.assertEqual(metrics["ksym_guard_level"], 0)
        self.assertEqual(metrics["ksym_frequency_hz"], HZ)
        self.assertLess(service.end(), 2)
        self.totals(service)


if __name__ == "__main__":
    harness.main()
