"""What a capture takes from the programs beside it: their work in windows with
and without one, in turns."""

import contextlib
import os
import subprocess
import time

import programs
import tables
import trouble_captures

PAIRS = 6
RATE_HZ = 99
WINDOW_SECONDS = 2
SETTLE_SECONDS = 1


def turns_per_second(load, seconds):
    before, begin = load.turns(), time.monotonic()
    time.sleep(seconds)
    return (load.turns() - before) / (time.monotonic() - begin)


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
        return turns_per_second(load, seconds)


def whole_run_window(context, load, seconds):
    """All of a capture: its start, its end and its names too."""
    before, begin = load.turns(), time.monotonic()
    trouble_captures.capture(context, RATE_HZ, seconds, 30)
    return (load.turns() - before) / (time.monotonic() - begin)


def paired_ratios(context, load, window, seconds):
    """Of the work with and without a capture, which of both is first changes
    from pair to pair."""
    ratios = []
    for i in range(context.runs(PAIRS)):
        if i % 2:
            without = turns_per_second(load, seconds)
            beside = window(context, load, seconds)
        else:
            beside = window(context, load, seconds)
            without = turns_per_second(load, seconds)
        ratios.append(beside / without)
    return ratios


def print_throughput(context, load):
    """`load` runs, and is of spinners only."""
    seconds = 1 if context.quick else WINDOW_SECONDS
    # The same twice without a capture: what of the figures is noise.
    windows = {"nothing": lambda _, load, seconds:
               turns_per_second(load, seconds),
               "while it samples": sampled_window,
               f"a whole run of {seconds} s": whole_run_window}
    rows = []
    for name, window in windows.items():
        taken = [100 * (1 - ratio) for ratio in
                 paired_ratios(context, load, window, seconds)]
        rows.append([name, tables.number(tables.median(taken), 2),
                     tables.number(min(taken), 2),
                     tables.number(max(taken), 2)])
    print(f"Work of 16 spinners that a capture at {RATE_HZ} Hz takes, in %: "
          f"median, least and most of {context.runs(PAIRS)} pairs of windows "
          f"of {seconds} s with and without it")
    tables.print_table(["what is beside", "median %", "least", "most"], rows)
