# SPDX-License-Identifier: Apache-2.0
"""What a capture takes from the programs beside it: their time in windows with
and without one, in turns.

Not their turns: a virtual CPU is twice as fast now than a moment later. See
tests/e2e/loads/spinners.c for how they know what was theirs.
"""

import contextlib
import os
import subprocess
import time

import programs
import tables
import trouble_captures

PAIRS = 9
RATE_HZ = 99
WINDOW_SECONDS = 10
QUICK_SECONDS = 1
SETTLE_SECONDS = 1


class Watch:
    """The spinners' time from its making on."""

    def __init__(self, load):
        self.load = load
        self.own = load.own_seconds()
        self.begin = time.monotonic()

    def share(self):
        """Of all CPUs' time."""
        return ((self.load.own_seconds() - self.own) /
                (time.monotonic() - self.begin) / len(programs.online_cpus()))


def share(load, seconds):
    watch = Watch(load)
    time.sleep(seconds)
    return watch.share()


@contextlib.contextmanager
def capturing(context):
    """A capture that has settled, and is not asked for its report."""
    said_path = context.scratch_file("said.txt")
    with open(said_path, "w+b") as said:
        process = subprocess.Popen(
            [context.profiler, "-F", str(RATE_HZ), "-o",
             context.scratch_file("throughput.json"), "60"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
            env=context.environment(), cwd=context.scratch)

        def started():
            return b"Sampling at" in os.pread(said.fileno(), 1 << 16, 0)
        try:
            if not trouble_captures.wait_until(started):
                raise programs.Failed("ksym-profile did not start")
            time.sleep(SETTLE_SECONDS)
            yield
        finally:
            process.kill()
            process.wait()


def sampled_window(context, load, seconds):
    with capturing(context):
        return share(load, seconds)


def whole_run_window(context, load, seconds):
    """All of a capture: its start, its end and its names too."""
    watch = Watch(load)
    trouble_captures.capture(context, RATE_HZ, seconds, 30)
    return watch.share()


def taken_percents(context, load, window, seconds):
    """By how much of its neighbours, without a capture, each window beside one
    is less; and likewise each window without from the next one, which is
    noise."""
    without = [share(load, seconds)]
    taken = []
    for _ in range(context.runs(PAIRS)):
        beside = window(context, load, seconds)
        without.append(share(load, seconds))
        taken.append(100 * (1 - 2 * beside / sum(without[-2:])))
    noise = [100 * (1 - one / other)
             for one, other in zip(without, without[1:])]
    return taken, noise


def print_throughput(context, load):
    """`load` runs, and is of spinners only."""
    seconds = QUICK_SECONDS if context.quick else WINDOW_SECONDS
    windows = {"while it samples": sampled_window,
               f"a whole run of {seconds} s": whole_run_window}
    rows = []
    for name, window in windows.items():
        taken, noise = taken_percents(context, load, window, seconds)
        for what, percents in ((name, taken), ("  two without", noise)):
            rows.append([what] + [tables.number(pick(percents), 2) for pick in
                                  (tables.median, min, max)])
    print(f"What a capture at {RATE_HZ} Hz takes of the time of 16 spinners, "
          f"in %: median, least and most of {context.runs(PAIRS)} windows of "
          f"{seconds} s, each beside its two neighbours without a capture")
    tables.print_table(["window", "median %", "least", "most"], rows)
