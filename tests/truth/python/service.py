# SPDX-License-Identifier: Apache-2.0
"""What the service takes beside many processes of Python, as it is by default:
with a history and without files."""

import contextlib
import json
import os
import subprocess
import tempfile
import time

import captures
import costs
from cases import Figure

import paired  # noqa: E402, where costs found its cost

PROCESSES = 50
# Else the service would start and end for minutes.
LAST = ["nice", "-n", "19"]
MOST_PERCENT = 0.3  # of a CPU
STARTED = b"a profile every"
START_LIMIT = 60


def service(context, build):
    """Its own CPU time and that of its BPF program in samples, with and without
    Python's frames."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(costs.cost.bpf_statistics())
        for _ in range(PROCESSES):
            stack.enter_context(captures.running(
                [*LAST, *build.command("calls.py", 3600)]))
        own, bpf = percents(context, "auto")
        plain_own, plain_bpf = percents(context, "none")
    return [Figure(
        "service %", own + bpf, "%.2f" % (own + bpf), own + bpf <= MOST_PERCENT,
        ["the service's own %.2f, its samples' %.2f; without Python's frames "
         "%.2f and %.2f" % (own, bpf, plain_own, plain_bpf)])]


def percents(context, runtimes):
    """Of a CPU: the service's own and the BPF program's, once it has begun."""
    with running(context, runtimes) as pid:
        time.sleep(context.settle_seconds)
        before, begin = spent_seconds(pid), time.monotonic()
        time.sleep(context.service_seconds)
        after, seconds = spent_seconds(pid), time.monotonic() - begin
    return [100 * (late - early) / seconds
            for late, early in zip(after, before)]


@contextlib.contextmanager
def running(context, runtimes):
    """A service that has started, with its files in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="ksym-truth-") as directory:
        path = os.path.join(directory, "config.json")
        with open(path, "w", encoding="ascii") as file:
            json.dump({
                "stacks": {"runtimes": runtimes,
                           "cache_directory": directory + "/cache"},
                "history": {"directory": directory + "/history"},
                "http": {"listen": ["unix:%s/http.sock" % directory]},
            }, file)
        program = os.path.join(os.path.dirname(context.profiler),
                               "ksym-profiled")
        with open(directory + "/log", "w+b") as log:
            process = subprocess.Popen(
                [program, "--config", path], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=log,
                preexec_fn=captures.die_with_parent)
            try:
                wait_started(process, log)
                yield process.pid
            finally:
                process.terminate()
                process.wait(START_LIMIT)


def wait_started(process, log):
    deadline = time.monotonic() + START_LIMIT
    while STARTED not in os.pread(log.fileno(), 1 << 16, 0):
        if process.poll() is not None or time.monotonic() > deadline:
            raise captures.Failure("ksym-profiled did not start: %r" % os.pread(
                log.fileno(), 400, 0))
        time.sleep(0.02)


def spent_seconds(pid):
    """CPU time of the service, and of its BPF program in samples."""
    return (paired.cpu_seconds(pid),
            costs.cost.sampler_statistics(pid)[0] / 1e9)
