#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tar archive of scripts/package, in roots that have nothing of what it was
built with: one with busybox alone, and Debian 11's and 13's."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import harness
import reports
from service_harness import Receiver

sys.path.insert(0, os.path.join(harness.SOURCE_DIR, "tests/vm"))
import apt  # noqa: E402

BUILD = os.environ.get("KSYM_BUILD_DIR") or os.path.join(
    harness.SOURCE_DIR, "build/release")
PROGRAMS = ("gen_gsym", "gen_ksym", "ksym-fleet", "ksym-profile", "ksym-profiled",
            "ksym-symbolize")
GROUP_ID = 12345
# Names come from files, whatever else the machine would ask.
SWITCH = "passwd: missing files\ngroup: missing files\nhosts: missing files\n"
LOAD = """
#include <stdlib.h>
#include <time.h>
static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
__attribute__((noinline)) void BurnInHere(double end) {
  /* On some machines a look at the clock takes microseconds. */
  while (Now() < end) for (volatile int i = 0; i < 100000; ++i) continue;
}
int main(int argc, char** argv) {
  BurnInHere(Now() + atof(argv[argc - 1]));
  return 0;
}
"""


class Root:
    """A directory that programs take for the whole machine, with /proc and /sys."""

    def __init__(self, path):
        self.path = path

    def put(self, name, text):
        path = self.path + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        harness.write_text(path, text)

    def start(self, *command, **options):
        inside = ('mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys"'
                  ' && exec chroot "$0" "$@"')
        return subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", inside, self.path, *command],
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={"PATH": "/bin:/usr/bin:/usr/sbin"},
            preexec_fn=harness.die_with_parent, **options)

    def run(self, *command):
        process = self.start(*command)
        output, errors = process.communicate(timeout=60)
        reports.expect(process.returncode == 0,
                       f"{command}: {process.returncode}\n{output}{errors}")
        return output, errors


def make_archive(target):
    return subprocess.run(
        [harness.SOURCE_DIR + "/packaging/tarball", BUILD, target],
        text=True, check=True, stdout=subprocess.PIPE).stdout.strip()


class TarballTest(harness.E2eTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not os.path.exists(BUILD + "/packaging/linked_in/programs"):
            raise unittest.SkipTest("no programs with libraries linked in: "
                                    "scripts/package builds them")
        cls.made = tempfile.mkdtemp(prefix="ksym-tarball-")
        cls.addClassCleanup(shutil.rmtree, cls.made)
        cls.archive = make_archive(cls.made)
        subprocess.run(["tar", "-C", cls.made, "-xf", cls.archive], check=True)
        cls.tree = cls.archive.removesuffix(".tar.gz")
        cls.load = cls.made + "/load"
        subprocess.run(["gcc", "-x", "c", "-O1", "-static", "-o", cls.load, "-"],
                       input=LOAD, text=True, check=True)

    def root(self, path):
        """The root with the archive and a load in it."""
        root = Root(path)
        for name in ("proc", "sys", "tmp"):
            os.makedirs(f"{path}/{name}", exist_ok=True)
        shutil.copytree(self.tree, path + "/ksym")
        shutil.copy(self.load, path + "/load")
        root.put("/etc/nsswitch.conf", SWITCH)
        root.put("/etc/group", f"root:x:0:\nksym:x:{GROUP_ID}:\n")
        root.put("/etc/hosts", "127.0.0.1 receiver.test\n")
        return root

    def busybox_root(self):
        busybox = shutil.which("busybox")
        if busybox is None or b"INTERP" in subprocess.run(
                ["readelf", "-lW", busybox], check=True,
                stdout=subprocess.PIPE).stdout:
            self.skipTest("needs busybox-static (scripts/setup vm)")
        os.makedirs(self.path("root/bin"))
        shutil.copy(busybox, self.path("root/bin/busybox"))
        return self.root(self.path("root"))

    def debian_root(self, suite):
        """Made once, of packages that are only unpacked, and kept."""
        if shutil.which("mmdebstrap") is None:
            self.skipTest("needs mmdebstrap (scripts/setup vm)")
        kept = f"{os.path.dirname(BUILD)}/roots/{suite}.tar"
        if not os.path.exists(kept):
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            try:
                apt.run("mmdebstrap", "--variant=extract",
                        "--include=base-files,bash,coreutils,libc-bin,libc6,"
                        "libgcc-s1,libstdc++6,zlib1g", "--format=tar", suite,
                        kept + ".part",
                        *apt.Mirrors().sources(suite))
            except apt.Failure as failure:
                self.skipTest(f"no Debian {suite}: {failure}")
            os.rename(kept + ".part", kept)
        os.makedirs(self.path("root"))
        subprocess.run(["tar", "-C", self.path("root"), "--exclude=./dev/*",
                        "-xf", kept], check=True)
        return self.root(self.path("root"))

    def check_capture(self, root):
        """Frames of a program and of the kernel have names."""
        _, errors = root.run("/ksym/bin/ksym-profile", "-F", "499", "-o",
                             "/tmp/out.folded", "--", "/load", "1")
        folded = reports.Folded(
            harness.read_bytes(root.path + "/tmp/out.folded"))
        self.assertGreater(folded.total(), 20, errors)
        self.assertGreater(folded.share("load", "main;BurnInHere"), 0.9, errors)

    def check_service(self, root):
        """It writes files, opens its socket for its group, pushes to a host by
        name, and ends; no library is loaded for any of that."""
        with contextlib.closing(socket.create_server(
                ("127.0.0.1", 0))) as place:
            port = place.getsockname()[1]
        receiver = Receiver(port)
        receiver.start()
        self.addCleanup(receiver.stop)
        root.put("/tmp/config.json", """{
          "frequency_hz": 99, "interval_seconds": 1,
          "files": {"directory": "/tmp/files", "format": "folded"},
          "history": {"directory": "/tmp/history"},
          "http": {"listen": ["unix:/tmp/http.sock"]},
          "push": ["http://receiver.test:%d/take"],
          "push_spool": {"directory": "/tmp/spool"}}""" % port)
        service = root.start("/ksym/bin/ksym-profiled", "--config",
                             "/tmp/config.json")
        self.addCleanup(service.kill)
        harness.wait_for(lambda: receiver.posts or service.poll() is not None,
                         "a push")
        if service.poll() is not None:
            self.fail(service.stderr.read())
        status = os.stat(root.path + "/tmp/http.sock")
        self.assertEqual(status.st_gid, GROUP_ID)
        maps = harness.read_text(f"/proc/{service.pid}/maps")
        self.assertIn("/ksym/bin/ksym-profiled", maps)
        self.assertNotIn(".so", maps)
        service.send_signal(signal.SIGTERM)
        _, errors = service.communicate(timeout=20)
        # 1: on a busy machine it may have no time for the last profile.
        self.assertIn(service.returncode, (0, 1), errors)

    def check_names(self, root):
        """Addresses get names, and symbol files are made."""
        symbols = subprocess.run(["nm", self.load], text=True, check=True,
                                 stdout=subprocess.PIPE).stdout
        address = re.search(r"(?m)^0*(\w+) T BurnInHere$", symbols)[1]
        output, _ = root.run("/ksym/bin/ksym-symbolize", "-e", "/load",
                             "0x" + address)
        self.assertIn("BurnInHere", output)
        for program in PROGRAMS:
            root.run("/ksym/bin/" + program, "--version")

    def check_all(self, root):
        self.check_capture(root)
        self.check_names(root)
        self.check_service(root)

    def test_busybox(self):
        # No C library, no loader, no user but root.
        self.check_all(self.busybox_root())

    def test_debian_11(self):
        # An older C library than what it was built with.
        self.check_all(self.debian_root("bullseye"))

    def test_debian_13(self):
        # A newer one.
        self.check_all(self.debian_root("trixie"))

    def test_debuginfod(self):
        # What would load a library says that it cannot, and the rest works.
        root = self.busybox_root()
        process = root.start(
            "/bin/busybox", "env", "DEBUGINFOD_URLS=http://receiver.test:1",
            "/ksym/bin/ksym-symbolize", "--debuginfod", "-e", "/load", "0x1")
        _, errors = process.communicate(timeout=60)
        self.assertIn("loads none", errors)

    def test_quick(self):
        # From the archive to a page of five seconds: within ten.
        begin = time.monotonic()
        target = self.path("quick")
        os.makedirs(target)
        subprocess.run(["tar", "-C", target, "-xf", self.archive], check=True)
        program = f"{target}/{os.path.basename(self.tree)}/bin/ksym-profile"
        subprocess.run([program, "-o", target + "/cpu.html", "5"], check=True,
                       stderr=subprocess.DEVNULL)
        took = time.monotonic() - begin
        self.assertGreater(os.path.getsize(target + "/cpu.html"), 10000)
        print(f"archive to page: {took:.2f} s", file=sys.stderr)

    def test_content(self):
        there = {os.path.join(directory, name).removeprefix(self.tree + "/")
                 for directory, _, names in os.walk(self.tree) for name in names}
        wanted = {"bin/" + program for program in PROGRAMS} | {
            "LICENSE", "INSTALL.md", "etc/ksym/ksym-profiled.json",
            "lib/systemd/system/ksym-profiled.service",
            "lib/sysusers.d/ksym-profiled.conf",
            "lib/tmpfiles.d/ksym-profiled.conf", "lib/ksym/perf-event-paranoid",
            "lib/ksym/ksym-profile-ui",
            "share/man/man8/ksym-profile.8", "share/man/man8/ksym-profiled.8",
            "share/man/man1/ksym-fleet.1",
            "share/man/man1/ksym-symbolize.1", "share/man/man1/gen_ksym.1",
            "share/man/man1/gen_gsym.1",
            "share/bash-completion/completions/ksym-profile",
            "share/zsh/site-functions/_ksym-profile",
            "share/fish/vendor_completions.d/ksym-profile.fish"}
        self.assertEqual(wanted - there, set())
        for program in ["lib/ksym/ksym-profile-ui",
                        *("bin/" + program for program in PROGRAMS)]:
            headers = subprocess.run(
                ["readelf", "-lW", f"{self.tree}/{program}"], text=True,
                check=True, stdout=subprocess.PIPE).stdout
            self.assertNotIn("INTERP", headers)

    def test_unit(self):
        # The service is where it says, when the archive is below /usr/local.
        unit = harness.read_text(
            self.tree + "/lib/systemd/system/ksym-profiled.service")
        for path in re.findall(r"(?m)^Exec\w+=\W*(/\S+)", unit):
            self.assertRegex(path, "^/usr/local/")
            inside = path.removeprefix("/usr/local")
            self.assertTrue(os.access(self.tree + inside, os.X_OK), path)
        self.assertIn("--config /etc/ksym/ksym-profiled.json", unit)

    def test_licenses(self):
        # Of each library a notice and its source, none of the tests' own, and
        # the texts that notices refer to.
        directory = self.tree + "/licenses/"
        sources = harness.read_text(directory + "SOURCES")
        for package in ("libc6-dev", "libelf-dev", "libbpf-dev", "libfmt-dev",
                        "libcpp-httplib-dev", "libssl-dev", "libstdc++-12-dev",
                        "nettle-dev", "libiberty-dev", "nlohmann-json3-dev"):
            self.assertRegex(sources, r"(?m)^%s: \S+ \d" % re.escape(package))
            self.assertTrue(os.path.exists(directory + package + ".txt"), package)
        self.assertNotIn("googletest", sources)
        for name in os.listdir(directory):
            for text in re.findall(r"common-licenses/([\w.-]*\w)",
                                   harness.read_text(directory + name)):
                self.assertTrue(os.path.exists(directory + text), (name, text))

    def test_same_bytes(self):
        again = make_archive(self.path("again"))
        self.assertEqual(harness.read_bytes(again),
                         harness.read_bytes(self.archive))


if __name__ == "__main__":
    harness.main()
