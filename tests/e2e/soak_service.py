#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How the service lives under a load of short-lived processes, with figures;
an hour by default, so it is not in ctest.

    tests/e2e/soak_service.py [--minutes 60] [--frequency-hz 99]
                              [--starts-per-second 50]

Prints a line a minute and a summary. Needs what test_service.py needs. Ends
with status 1 where a file was unreadable, samples were unaccounted for, or the
memory of the last third is more than a tenth above that of the minutes 5 to
15 (or of the second third of a shorter run).
"""

import argparse
import glob
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

import harness
import reports
import service_harness

# Each start is a fork, an exec and an exit.
LOAD = ("while :; do for i in $(seq {count}); do /bin/true; done; sleep 1; "
        "done")
METRIC = re.compile(r"^(ksym_\w+)(?:\{[^}]*\})? ([0-9.e+-]+)$", re.M)


class Soak:
    def __init__(self, directory, options):
        self.directory = directory
        self.socket = directory + "/http.sock"
        self.rows = []  # (minute, resident MiB, CPU seconds)
        self.lines = 0
        self.seen = set()
        harness.write_text(directory + "/config.json", "{}")
        self.service = service_harness.Service(
            [service_harness.SERVICE, "--config", directory + "/config.json",
             "--frequency-hz", options.frequency_hz,
             "--files-directory", directory + "/profiles",
             "--files-format", "folded",
             "--history-directory", directory + "/history",
             "--stacks-cache-directory", directory + "/cache",
             "--http-listen", "unix:" + self.socket])
        self.service.wait_log("a profile every")

    def metrics(self):
        """name: the sum over its labels."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(20)
            client.connect(self.socket)
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: l\r\n"
                           b"Connection: close\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        sums = {}
        for name, value in METRIC.findall(answer.decode()):
            sums[name] = sums.get(name, 0) + float(value)
        return sums

    def read_new_files(self):
        for path in glob.glob(
                self.directory + "/profiles/[0-9]*/[0-9]*/[0-9]*/*.folded"):
            if path not in self.seen:
                self.lines += len(
                    reports.Folded(harness.read_bytes(path)).lines)
                self.seen.add(path)

    def watch(self, minutes):
        begin = time.monotonic()
        for minute in range(1, minutes + 1):
            time.sleep(max(0, begin + 60 * minute - time.monotonic()))
            values = self.metrics()
            self.rows.append((minute, values["ksym_resident_bytes"] / 2**20,
                              values["ksym_cpu_seconds_total"]))
            self.read_new_files()
            print("minute %d: %.1f MiB, %.2f s of CPU, %d taken, %d emitted, "
                  "%d lost, %d files with %d stacks" % (
                      *self.rows[-1], values["ksym_samples_taken_total"],
                      values["ksym_samples_emitted_total"],
                      values["ksym_samples_lost_total"], len(self.seen),
                      self.lines), flush=True)

    def end(self, options):
        self.service.end(signal.SIGTERM)
        self.read_new_files()
        found = service_harness.ENDED.search(self.service.log())
        reports.expect(found, self.service.log())
        taken, named, lost, dropped, _, failed = map(int, found.groups())
        settled = [row for row in self.rows if row[0] > options.minutes / 12]
        third = len(settled) // 3
        early = statistics.median(
            row[1] for row in settled[:min(third, 10)])
        late = statistics.median(row[1] for row in settled[-third:])
        (first, _, cpu_before), (last, _, cpu_after) = settled[0], settled[-1]
        print("%d minutes at %d Hz: %.2f %% of a CPU, resident %.1f MiB first, "
              "%.1f in the last third, %.1f at most; %d taken = %d in profiles "
              "+ %d lost + %d dropped; %d files, all readable, %d failed" % (
                  options.minutes, options.frequency_hz,
                  100 * (cpu_after - cpu_before) / (60 * (last - first)),
                  early, late, max(row[1] for row in settled), taken, named,
                  lost, dropped, len(self.seen), failed))
        reports.expect(taken == named + lost + dropped, "samples are missing")
        reports.expect(failed == 0, "files failed")
        reports.expect(late < 1.1 * early, "memory grows")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--frequency-hz", type=int, default=99)
    parser.add_argument("--starts-per-second", type=int, default=50)
    options = parser.parse_args()
    if options.minutes < 6:
        parser.error("--minutes: 6 at least, to see memory that grows")
    directory = tempfile.mkdtemp(prefix="ksym-soak-")
    load = subprocess.Popen(
        ["sh", "-c", LOAD.format(count=options.starts_per_second)],
        preexec_fn=harness.die_with_parent)
    soak = Soak(directory, options)
    try:
        soak.watch(options.minutes)
        soak.end(options)
    finally:
        load.kill()
        if not soak.service.stderr.closed:
            soak.service.kill()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
