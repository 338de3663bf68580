# SPDX-License-Identifier: Apache-2.0
"""ksym-fleet as tests run it, the server that it asks, and some stacks."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

import fleet_server
import harness
from fleet_rows import KERNEL, NATIVE

FLEET = os.environ.get("KSYM_FLEET") or os.path.join(
    harness.SOURCE_DIR, "build/release/daemon/ksym-fleet")
ADDRESS = re.compile(r"http://(127\.0\.0\.1:\d+)/#token=([0-9a-f]{64})\n")

FROM = 1795737600  # a full hour
A = [(NATIVE, "main", "/bin/shop"), (NATIVE, "handle", "/bin/shop"),
     (NATIVE, "compare", "/bin/shop")]
B = [(NATIVE, "main", "/bin/shop"), (NATIVE, "write", "/lib/libc.so.6"),
     (KERNEL, "vfs_write", "[kernel]")]


class Program:
    """A ksym-fleet that runs, and questions to it."""

    def __init__(self, test, database, *arguments):
        self.port = fleet_server.free_ports(1)[0]
        command = [FLEET, "--clickhouse", database, "--listen",
                   f"127.0.0.1:{self.port}", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        self.line = self.process.stdout.readline()
        found = ADDRESS.fullmatch(self.line)
        self.token = found.group(2) if found else None

    def get(self, path, headers=None, timeout=60, method="GET"):
        """Status, headers and body."""
        if headers is None:
            headers = {"Authorization": f"Bearer {self.token}"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=timeout)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def ask(self, path, **parameters):
        """The answer's body, which must be there."""
        query = urllib.parse.urlencode(parameters, doseq=True)
        status, _, body = self.get(f"/api/history/{path}?{query}")
        if status != 200:
            raise AssertionError(f"{path}?{query}: {status} {body!r}")
        return body

    def json(self, path, **parameters):
        return json.loads(self.ask(path, **parameters))

    def end(self, number=signal.SIGTERM):
        """The exit status, and how long it took."""
        begin = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(timeout=20), time.monotonic() - begin


def functions_of(answer):
    return {row["name"]: (row["self"], row["total"]) for row in answer["rows"]}


class WithDatabase(unittest.TestCase):
    """One server for all tests of a class."""

    make_server = fleet_server.FleetServer

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="ksym-fleet-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.server = cls.make_server(cls.directory)
        cls.addClassCleanup(cls.server.kill)


def main():
    """Runs a file's tests where there is a server."""
    why = fleet_server.why_missing()
    if why:
        print("skipped:", why)
        sys.exit(harness.SKIPPED)
    unittest.main()
