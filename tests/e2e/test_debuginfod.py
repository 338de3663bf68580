# SPDX-License-Identifier: Apache-2.0
"""--debuginfod with elfutils' own server, over a directory of debug files."""

import ctypes
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import harness


def missing():
    if not shutil.which("debuginfod"):
        return "debuginfod is not installed"
    try:
        ctypes.CDLL("libdebuginfod.so.1")
    except OSError as error:
        return f"libdebuginfod1 is not installed: {error}"
    return None


def run(*command):
    return subprocess.run([str(part) for part in command], check=True,
                          capture_output=True, text=True, timeout=60).stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class DebuginfodTest(harness.E2eTest):

    def setUp(self):
        super().setUp()
        reason = missing()
        if reason:
            print(reason)
            self.skipTest(reason)
        self.spin = self.program("spin")
        self.hot = re.search(r"^([0-9a-f]+) T Hot$", run("nm", self.spin),
                             re.M).group(1)
        served = self.path("served")
        os.mkdir(served)
        run("objcopy", "--only-keep-debug", self.spin, served + "/a.debug")
        run("strip", "--strip-all", self.spin)
        build_id = re.search(r"Build ID: ([0-9a-f]+)",
                             run("readelf", "-n", self.spin)).group(1)
        url = f"http://127.0.0.1:{free_port()}"
        self.environment = dict(os.environ, DEBUGINFOD_URLS=url,
                                DEBUGINFOD_CACHE_PATH=self.path("cache"))
        self.start(["debuginfod", "-p", url.rpartition(":")[2], "-d",
                    ":memory:", "-F", served])
        harness.wait_for(
            lambda: self.answers(f"{url}/buildid/{build_id}/debuginfo"),
            "the server")

    @staticmethod
    def answers(url):
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def profile_spin(self, *options):
        return self.folded("-F", 499, *options, "--", "sh", "-c",
                           "timeout 0.5 %s; true" % self.spin,
                           env=self.environment)

    def test_profile(self):
        # A stripped program that has exited has the names of the served file,
        # and none unless they are asked for.
        folded = self.profile_spin("--debuginfod")
        self.assertGreater(folded.share("spin", "main;Outer;Middle;Hot"), 0.8)
        folded = self.profile_spin()
        self.assertEqual(folded.share("spin", "Hot"), 0)

    def test_symbolize(self):
        def name(*options):
            done = subprocess.run(
                [harness.SYMBOLIZER, *options, "-e", self.spin, self.hot],
                capture_output=True, text=True, timeout=60, check=True,
                env=self.environment)
            self.assertEqual(done.stderr, "")
            return done.stdout.split("\n", 1)[0]

        self.assertEqual(name(), "??")
        self.assertEqual(name("--debuginfod"), "Hot")


if __name__ == "__main__":
    harness.main()
