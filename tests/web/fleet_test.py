#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""fleet_test.py PROFILER DIRECTORY FLEET: the page of a fleet in Chromium, as
ksym-fleet serves it, of rows in a ClickHouse server of the test's own, among
them some whose names are made to deceive."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import web_test

ROOT = os.path.dirname(os.path.dirname(web_test.HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/e2e"))
import fleet_rows  # pylint: disable=wrong-import-position
import fleet_server  # pylint: disable=wrong-import-position

FLEET = sys.argv[3]
HOSTILE = '<img src=x onerror="document.title=1">'
MAIN = (fleet_rows.NATIVE, "main", "/bin/shop")
SECONDS = 10**9


def fill(server):
    """Ten minutes of three services on two hosts. In the last half of them
    version 2 of the shop spends twice the time in compare; on beta the mail
    writes half as much again."""
    now = int(time.time()) // 10 * 10
    rows = fleet_rows.FleetRows()
    for step in range(60):
        at = now - 600 + 10 * step
        for host in ("alpha", "beta"):
            run = host.ljust(16, "0")
            rows.interval(at, host, run, kinds=("cpu", "blocked"))
            some = {"host": host, "run": run}
            late = step >= 30
            rows.sample(at, [MAIN, (fleet_rows.NATIVE, "compare", "/bin/shop")],
                        40, (2 if late else 1) * SECONDS,
                        version="2" if late else "1", **some)
            rows.sample(at, [MAIN, (fleet_rows.NATIVE, "write", "/lib/libc.so"),
                             (fleet_rows.KERNEL, "vfs_write", "[kernel]")],
                        10, SECONDS * (3 if host == "beta" else 2) // 4,
                        service="mail", **some)
            rows.sample(at, [MAIN], 5, 30 * SECONDS, kind="blocked",
                        service="mail", **some)
            rows.sample(at, [(fleet_rows.JIT, HOSTILE, HOSTILE)], 1,
                        SECONDS // 10, service=HOSTILE, command=HOSTILE,
                        version=HOSTILE, **some)
    rows.insert(server)


class FleetPage(unittest.TestCase):
    def test_page(self):
        """What a person does with it: services, hosts, versions, a marked time
        and two that are compared, filters, functions, kinds of samples;
        nothing on the console, and no request but to the program."""
        directory = tempfile.mkdtemp(prefix="ksym-web-fleet-")
        self.addCleanup(shutil.rmtree, directory)
        server = fleet_server.FleetServer(directory)
        self.addCleanup(server.kill)
        fill(server)
        port = fleet_server.free_ports(1)[0]
        program = subprocess.Popen(
            [FLEET, "--clickhouse", server.url + "/fleet", "--listen",
             f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        address = program.stdout.readline().strip()
        self.assertRegex(address, r"^http://127\.0\.0\.1:\d+/#token=\w{64}$")
        pictures = os.path.join(web_test.DIRECTORY, "pictures")
        os.makedirs(pictures, exist_ok=True)
        print("\n" + web_test.node("fleet.mjs", address, pictures).strip())
        print("pictures:", pictures)


if __name__ == "__main__":
    why = web_test.install_packages()
    why = why or fleet_server.why_missing()
    if why:
        print("skipped:", why)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
