#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a service must survive, with figures; minutes, so it is not in ctest.

    tests/e2e/torture_service.py [--kills 200] [--connections 1000]

Kills ksym-profiled at random moments and looks at what that leaves, then holds
connections to it that say nothing. Needs what test_service.py needs, and
bpftool. Ends with status 1 where anything was wrong.
"""

import argparse
import glob
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import harness
import reports
import service_harness


def bpf_programs():
    """Of ours that are loaded."""
    if shutil.which("bpftool") is None:
        return 0
    listed = subprocess.run(["bpftool", "prog", "show"], text=True,
                            stdout=subprocess.PIPE, check=True).stdout
    return sum(" name sample_" in line or " name module_" in line
               for line in listed.splitlines())


class Bench:
    def __init__(self, directory):
        self.directory = directory
        self.socket = directory + "/http.sock"
        self.services = []

    def start(self):
        service = service_harness.Service(
            [service_harness.SERVICE, "--config", self.directory + "/config.json",
             "--frequency-hz", "199", "--interval-seconds", "1",
             "--files-directory", self.directory + "/profiles",
             "--files-format", "folded",
             "--history-directory", self.directory + "/history",
             "--stacks-cache-directory", self.directory + "/cache",
             "--http-listen", "unix:" + self.socket])
        self.services.append(service)
        return service

    def wait_until_ready(self, service):
        """The seconds until it answers; fails if it does not within 20."""
        begin = time.monotonic()
        harness.wait_for(
            lambda: "a profile every" in service.log()
            or service.process.poll() is not None, "the service", seconds=20)
        reports.expect(service.process.poll() is None, service.log())
        client = self.connect()
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: l\r\n\r\n")
        reports.expect(b" 200 " in client.recv(200), "no answer")
        client.close()
        return time.monotonic() - begin

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.connect(self.socket)  # waits while the backlog is full
        client.settimeout(20)
        return client

    def files(self):
        return sorted(glob.glob(
            self.directory + "/profiles/[0-9]*/[0-9]*/[0-9]*/*.folded"))

    def kill_often(self, kills, seed):
        moments = random.Random(seed)
        before, slowest = bpf_programs(), 0.0
        for _ in range(kills):
            service = self.start()
            # A third of them before it is ready.
            if moments.random() < 2 / 3:
                slowest = max(slowest, self.wait_until_ready(service))
            time.sleep(moments.random() * 1.2)
            service.end(signal.SIGKILL)
            service.kill()
        service = self.start()
        self.wait_until_ready(service)
        seconds = service.end(signal.SIGTERM)
        reports.expect(service.process.returncode == 0, service.log())
        for path in self.files():
            reports.Folded(harness.read_bytes(path))
        names = [name for _, _, files in os.walk(self.directory + "/profiles")
                 for name in files]
        reports.expect(len(names) == len(self.files()),
                       "half written files are left: %s" % names)
        # The kernel frees programs a moment after their last user.
        harness.wait_for(lambda: bpf_programs() <= before,
                         "%d BPF programs before" % before)
        print("%d kills (seed %d): %d whole files, nothing half written, no "
              "BPF program left; slowest start %.2f s, end %.2f s" % (
                  kills, seed, len(self.files()), slowest, seconds))

    def hold_connections(self, count):
        resource.setrlimit(resource.RLIMIT_NOFILE, (count + 1000, count + 1000))
        service = self.start()
        self.wait_until_ready(service)
        before = len(self.files())
        begin = time.monotonic()
        clients = [self.connect() for _ in range(count)]
        connected = time.monotonic() - begin
        time.sleep(3)
        written = len(self.files()) - before
        with self.connect() as one_more:
            one_more.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            answer = one_more.recv(200)
        reports.expect(b" 200 " in answer, "%r beside them" % answer)
        cut = 0
        for client in clients:
            try:
                cut += client.recv(200, socket.MSG_DONTWAIT) == b""
            except OSError:
                pass
            client.close()
        service.end(signal.SIGTERM)
        found = service_harness.ENDED.search(service.log())
        taken, named, lost, dropped = map(int, found.groups()[:4])
        reports.expect(taken == named + lost + dropped, service.log())
        reports.expect(cut >= count - 70, "%d made room" % cut)
        reports.expect(written >= 2, "%d files" % written)
        print("%d connections in %.2f s: %d made room for others, %d profiles "
              "meanwhile; %d samples taken, %d lost, %d dropped" % (
                  count, connected, cut, written, taken, lost, dropped))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="ksym-torture-")
    harness.write_text(directory + "/config.json", "{}")
    bench = Bench(directory)
    try:
        bench.kill_often(options.kills, options.seed)
        bench.hold_connections(options.connections)
    finally:
        for service in bench.services:
            if not service.stderr.closed:
                service.kill()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
