# SPDX-License-Identifier: Apache-2.0
"""ksym-profiled: the running service, its files, signals and configuration."""

import glob
import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import cgroups
import harness
import reports
from service_harness import SERVICE, ServiceCase


LINES_SOURCE = """\
volatile unsigned long g_sink;
[[gnu::always_inline]] inline unsigned long Inner(unsigned long value) {
  for (int i = 0; i < 1000; ++i)
    value = value * 6364136223846793005u + 1;
  return value;
}
[[gnu::noinline]] unsigned long Outer(unsigned long v) { return Inner(v) + 7; }
int main() { for (;;) g_sink = Outer(g_sink); }
"""
# Each is a record of the kernel's.
RENAMES = ("import ctypes\nset_name = ctypes.CDLL(None).prctl\n"
           "while True: set_name(15, b'renamed')")


class ServiceTest(ServiceCase):

    def test_lines(self):
        # Lines and inlined calls come when the debug data have been read, and
        # profiles before that have names.
        self.need_command("g++")
        source = self.path("lines.cc")
        harness.write_text(source, LINES_SOURCE)
        program = self.path("lines")
        subprocess.run(["g++", "-O2", "-g", "-o", program, source], check=True,
                       timeout=60)
        self.configure(format="json")
        service = self.start_service("--symbols-lines", "true",
                                     "--symbols-inlines", "true")
        self.start([program])

        def lines_seen():
            places = set()
            for path in self.files("json"):
                with open(path, encoding="utf-8") as file:
                    for frame in json.load(file)["frames"]:
                        if frame.get("file") == source:
                            places.add((frame["name"].split("(")[0],
                                        frame["line"],
                                        frame.get("inlined", False)))
            return {("Inner", 4, True), ("Outer", 7, False)} <= places

        harness.wait_for(lines_seen, "lines in a profile")
        self.assertNotEqual(glob.glob(self.path("cache") + "/*.gsym"), [])
        service.end()
        self.totals(service)

    def test_profiles_appear(self):
        # A profile per interval, aligned to the clock; together they have
        # every sample that was taken, and each sample is in one of them.
        self.configure()
        spin = self.workload("spin")
        service = self.start_service()
        self.wait_files(5)
        seconds = service.end()
        self.assertEqual(service.process.returncode, 0, service.log())
        self.assertLess(seconds, 2)
        taken, named, written, failed = self.totals(service)
        files = self.files()
        self.assertEqual((len(files), failed), (written, 0))
        profiles = [reports.Folded(harness.read_bytes(path))
                    for path in files]
        self.assertEqual(sum(p.total() for p in profiles), named)
        self.assertGreater(taken, 100)
        self.assertGreater(profiles[1].share("spin", "main"), 0.9)
        # The first begins with the service, the last ends with it. On a loaded
        # machine some are late.
        late_ms = sorted(int(os.path.basename(path).split(".")[1].rstrip("Z"))
                         for path in files[1:])
        self.assertLess(late_ms[len(late_ms) // 2], 500, files)
        self.assertEqual(os.stat(files[0]).st_mode & 0o111, 0)
        spin.stop()

    def test_signals(self):
        # SIGUSR1 writes at once, SIGHUP takes the new file into force or
        # keeps the old one and says why, SIGTERM writes the rest.
        self.configure(interval_seconds=3600)
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(self.path("notify"))
        manager.settimeout(20)
        service = self.start_service(
            manager=self.path("notify"),
            environment={"WATCHDOG_USEC": "2000000"})
        self.assertIn("READY=1", manager.recv(4096).decode())
        self.assertEqual(manager.recv(4096), b"WATCHDOG=1")
        time.sleep(0.5)
        self.assertEqual(self.files(), [])
        service.process.send_signal(signal.SIGUSR1)
        self.wait_files(1)

        harness.write_text(self.config_path, "{\n\"frequency_hz\": 0}")
        service.process.send_signal(signal.SIGHUP)
        service.wait_log(
            self.config_path + ":2: frequency_hz: 0 is not from 1 to 1000")
        self.assertIn("not reloaded", service.log())
        service.process.send_signal(signal.SIGUSR1)
        self.wait_files(2)

        self.configure(frequency_hz=49, interval_seconds=3600, format="json")
        service.process.send_signal(signal.SIGHUP)
        service.wait_log("reloaded: ")
        time.sleep(0.5)
        self.assertLess(service.end(), 2)
        self.assertEqual(service.process.returncode, 0, service.log())
        documents = [reports.Document(harness.read_bytes(path))
                     for path in self.files("json")]
        self.assertEqual(documents[-1].metadata["frequency_hz"], 49)
        self.totals(service)
        states = []
        manager.settimeout(0)
        try:
            while True:
                states.append(manager.recv(4096).decode().split("\n")[0])
        except BlockingIOError:
            pass
        states = [state for state in states if state != "WATCHDOG=1"]
        self.assertEqual(states, ["RELOADING=1", "READY=1", "RELOADING=1",
                                  "READY=1", "STOPPING=1"])

    def test_lost_reports(self):
        # Who has the kernel report without end costs others no names, also when
        # the service is late and reports are lost again and again.
        spin = self.workload("spin")
        self.configure(format="json")
        service = self.start_service()
        self.wait_files(2, "json")
        for _ in range(2 * os.cpu_count()):
            self.start([sys.executable, "-c", RENAMES])
        begin = time.monotonic()
        while (time.monotonic() - begin < 6 or
               "reports of mapped files were lost" not in service.log()):
            self.assertLess(time.monotonic() - begin, harness.RUN_SECONDS)
            service.process.send_signal(signal.SIGSTOP)
            time.sleep(0.5)
            service.process.send_signal(signal.SIGCONT)
            time.sleep(0.05)
        service.end()
        named = 0
        for path in self.files("json")[1:]:
            document = json.loads(harness.read_bytes(path))
            for stack in document["stacks"]:
                if stack["pid"] != spin.pid:
                    continue
                reasons = [document["frames"][i].get("reason")
                           for i in stack["user"]]
                self.assertNotIn("no-process", reasons, path)
                named += stack["count"]
        self.assertGreater(named, 50)

    def test_full_disk(self):
        # A full disk costs the profiles that did not fit, says so, and
        # nothing after there is room again.
        os.mkdir(self.directory)
        self.mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", self.directory)
        filler = os.path.join(self.directory, "filler")
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, (8 << 20) - 16384)
        self.configure(frequency_hz=499)
        self.workload("paths")
        service = self.start_service()
        service.wait_log("was not written")
        self.assertIn("No space left", service.log())
        os.unlink(filler)
        service.wait_log("profiles are written again")
        service.end()
        taken, _, written, failed = self.totals(service)
        self.assertGreater(failed, 0)
        self.assertEqual(len(self.files()), written)
        self.assertGreater(taken, 100)
        for path in self.files():
            reports.Folded(harness.read_bytes(path))

    def test_killed(self):
        # After SIGKILL every file that is there is whole, and the next run
        # goes on and removes what was half written.
        self.configure(frequency_hz=499)
        for milliseconds in (1010, 1060, 1130):
            service = self.start_service()
            time.sleep(milliseconds / 1000)
            service.end(signal.SIGKILL)
        service = self.start_service()
        service.process.send_signal(signal.SIGUSR1)
        harness.wait_for(lambda: self.files(), "a file")
        service.end()
        self.totals(service)
        everything = [name for _, _, names in os.walk(self.directory)
                      for name in names]
        self.assertEqual(len(everything), len(self.files()), everything)
        for path in self.files():
            reports.Folded(harness.read_bytes(path))

    def test_unit_capabilities(self):
        # As another user with the unit's capabilities and no others it names
        # kernel and user frames of root's processes, also of a program that
        # only root may read and that was deleted.
        self.configure(frequency_hz=499, format="json")
        unit = harness.read_text(os.path.join(
            harness.SOURCE_DIR, "systemd/ksym-profiled.service.in"))
        names = re.search(r"(?m)^AmbientCapabilities=(.*)$", unit)[1].split()
        program = self.program("spin", "hidden")
        os.chmod(program, 0o700)
        spin = self.start([program], ready=True)
        os.unlink(program)
        self.workload("faults")
        service = self.start_service(prefix=harness.as_nobody(
            *(name.removeprefix("CAP_").lower() for name in names)))
        self.wait_files(2, "json")
        self.assertLess(service.end(), 2)
        self.assertEqual(service.process.returncode, 0, service.log())
        self.assertNotIn("warning", service.log())
        document = reports.Document(
            harness.read_bytes(self.files("json")[1]))
        self.assertGreater(document.leaves(pid=spin.pid)["Hot"], 10,
                           document.leaves(pid=spin.pid))
        self.assertTrue([frame for frame in document.of_kind("kernel")
                         if "reason" not in frame])

    def test_labels(self):
        # A process in a container's cgroup has its labels, also one that
        # ended long before anybody could look at it.
        mount = cgroups.second_version()
        if mount is None:
            self.skipTest("no cgroups of the second version to write to")
        container = "c0" * 32
        path = "/ksym-test.slice/docker-%s.scope" % container
        cgroup = mount + path
        os.makedirs(cgroup)
        self.addCleanup(os.removedirs, cgroup)
        self.labels = ["host", "comm", "pid", "tid", "cgroup", "unit",
                       "container_id"]
        self.configure(frequency_hz=499, format="json", interval_seconds=3600)
        service = self.start_service()
        for mebibytes in (40, 400):
            zeros = self.path("zeros")
            with open(zeros, "wb") as file:
                file.truncate(mebibytes << 20)
            subprocess.run(
                ["/bin/sh", "-c", "echo $$ > %s/cgroup.procs && exec sha1sum "
                 "%s" % (cgroup, zeros)], stdout=subprocess.DEVNULL,
                check=True)
        status, body = self.get("/debug/pprof/profile?seconds=1")
        self.assertEqual(status, 200)
        self.assertIn(os.uname().nodename.encode(), gzip.decompress(body))
        self.assertLess(service.end(), 2)
        document = reports.Document(harness.read_bytes(self.files("json")[0]))
        inside = {stack["pid"]: stack for stack in document.stacks
                  if stack.get("cgroup") == path}
        self.assertEqual(
            len([s for s in inside.values() if s["comm"] == "sha1sum"]), 2,
            inside)
        for stack in inside.values():
            self.assertEqual(stack["unit"], "docker-%s.scope" % container)
            self.assertEqual(stack["container_id"], container)
        self.assertTrue(all("tid" in stack for stack in document.stacks))
        for stack in document.stacks:
            self.assertEqual(stack.get("self", False),
                             stack["pid"] == service.process.pid)
        self.assertIn(service.process.pid, document.pids())

    def test_limits(self):
        # Memory over its limit lowers the rate; the profiles say theirs.
        self.configure(frequency_hz=400, format="json")
        self.workload("spin")
        service = self.start_service("--limits-memory-bytes", "1000000")
        harness.wait_for(lambda: self.metrics()["ksym_frequency_hz"] == 200,
                         "a lower rate", seconds=40)
        self.assertIn("over limits.memory_bytes: level 1, sampling at 200 Hz",
                      service.log())
        self.assertEqual(self.metrics()["ksym_guard_level"], 1)
        self.wait_files(len(self.files("json")) + 3, "json")
        self.assertLess(service.end(), 2)
        self.assertEqual(service.process.returncode, 0, service.log())
        self.totals(service)
        rates = [json.loads(harness.read_bytes(path))["metadata"]
                 ["frequency_hz"] for path in self.files("json")]
        self.assertEqual(sorted(rates, reverse=True), rates)
        self.assertEqual(set(rates), {400, 200})

    def test_check_config(self):
        # --check-config says what is wrong with the file or the flags, and
        # flags win over the file.
        def check(*arguments):
            done = subprocess.run(
                [SERVICE, "--config", self.config_path, "--check-config",
                 *arguments], capture_output=True, text=True, check=False,
                timeout=harness.RUN_SECONDS)
            return done.returncode, done.stderr

        self.configure()
        self.assertEqual(check(), (0, ""))
        self.assertEqual(check("--files-format", "svg")[0], 2)
        harness.write_text(self.config_path, '{"files": {"fromat": 1}}')
        status, stderr = check()
        self.assertEqual(status, 2)
        self.assertIn(self.config_path + ":1: files.fromat: unknown key",
                      stderr)
        os.unlink(self.config_path)
        status, stderr = check()
        self.assertEqual(status, 2)
        self.assertIn(self.config_path, stderr)

    def test_journal_priorities(self):
        # Where stderr is the journal each line begins with its priority.
        harness.write_text(self.config_path, "{")
        log = self.path("journal")
        with open(log, "w") as file:
            status = os.fstat(file.fileno())
            stream = "%d:%d" % (status.st_dev, status.st_ino)
            subprocess.run([SERVICE, "--config", self.config_path],
                           stderr=file, check=False,
                           env=dict(os.environ, JOURNAL_STREAM=stream))
        self.assertRegex(harness.read_text(log), r"\A<3>error: .*:1: ")


if __name__ == "__main__":
    harness.main()
