# SPDX-License-Identifier: Apache-2.0
"""What SIGINT and SIGTERM do at random moments of captures beside a load."""

import contextlib
import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import tables

COUNT, QUICK_COUNT = 20, 4
END_SECONDS = 2  # within which a capture ends after the first signal
SECOND_END_SECONDS = 0.5  # and after the second one
CAPTURE_SECONDS = 1
# The moments are within the capture's time and what comes after it.
MOMENTS_SECONDS = 1.6
MOST_ATTEMPTS = 3  # for a signal, where a capture ended before it
SEED = 19
TEMPORARY = re.compile(r"\.\w+\.[A-Za-z0-9]{6}$")


@dataclasses.dataclass
class Trial:
    """One capture that was told to end."""
    first: float = None  # seconds from the first signal to the end
    second: float = None  # from the second one
    late: bool = False  # the first one did not do
    stray: tuple = ()  # files; not judged where it had to be killed
    wrong: str = ""  # what is not as documented

    def is_signalled(self):
        """Whether it had not ended before."""
        return self.first is not None or self.second is not None


class Directories:
    """Where a capture of a trial may leave something: all are empty before."""

    def __init__(self, context):
        self.root = context.scratch_file("signals")
        shutil.rmtree(self.root, ignore_errors=True)
        self.output = os.path.join(self.root, "output")
        self.temporary = os.path.join(self.root, "tmp")
        self.cache = os.path.join(context.scratch, ".cache")
        for directory in (self.output, self.temporary):
            os.makedirs(directory)
        self.report = os.path.join(self.output, "out.json")

    def stray(self):
        found = [name for name in os.listdir(self.output)
                 if name != os.path.basename(self.report)]
        found += os.listdir(self.temporary)
        # Files of the cache have names of their own, which stay.
        found += [name for _, _, names in os.walk(self.cache)
                  for name in names if TEMPORARY.search(name)]
        return tuple(found)


def wait(process, seconds):
    """Seconds until it ended; None if it did not."""
    begin = time.monotonic()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    return time.monotonic() - begin


def send_signals(process, trial, chooser, second_after):
    """The first signal, and the second one after that time or when the first
    did not do."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    process.send_signal(chooser.choice(numbers))
    ended = wait(process, END_SECONDS if second_after is None
                 else second_after)
    if ended is not None:
        trial.first = ended
        return
    if second_after is None:
        trial.late = True
        trial.wrong = f"runs {END_SECONDS} s after the signal"
    process.send_signal(chooser.choice(numbers))
    trial.second = wait(process, SECOND_END_SECONDS)
    if trial.second is None:
        trial.second = SECOND_END_SECONDS
        trial.wrong = "runs on after the second signal"


def is_whole_report(path):
    try:
        with open(path, encoding="utf-8") as file:
            return "metadata" in json.load(file)
    except (OSError, ValueError):
        return False


def judge_status(process, trial, directories, began):
    """Status 0 with a whole report; or the signal's, where it came before the
    capture began, or was the second one."""
    status = process.returncode
    whole = is_whole_report(directories.report)
    if trial.wrong:
        return
    if os.path.exists(directories.report) and not whole:
        trial.wrong = "half a report"
    elif status == 0 and not whole:
        trial.wrong = "status 0 without a report"
    elif status != 0 and (began and trial.second is None
                          or status not in (-signal.SIGINT, -signal.SIGTERM)):
        trial.wrong = f"status {status}"


def run_trial(context, chooser, second_after):
    directories = Directories(context)
    trial = Trial()
    with open(context.scratch_file("said.txt"), "w+b") as said:
        process = subprocess.Popen(
            [context.profiler, "-F", "99", "-o", directories.report,
             str(CAPTURE_SECONDS)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=said, cwd=context.scratch,
            env=dict(context.environment(), TMPDIR=directories.temporary))
        try:
            if wait(process, chooser.uniform(0, MOMENTS_SECONDS)) is None:
                said.seek(0)
                began = b"Sampling at" in said.read()
                send_signals(process, trial, chooser, second_after)
            else:
                began = True
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
    if process.returncode != -signal.SIGKILL:
        judge_status(process, trial, directories, began)
        trial.stray = directories.stray()
    return trial


def run_trials(context, count):
    chooser = random.Random(SEED)
    trials = []
    attempts = 0
    while len(trials) < count and attempts < MOST_ATTEMPTS * count:
        attempts += 1
        # Every second one has a second signal, soon after the first.
        trial = run_trial(context, chooser,
                          chooser.uniform(0, 0.3) if len(trials) % 2 else None)
        if trial.is_signalled() or trial.wrong or trial.stray:
            trials.append(trial)
    return trials


HEADER = ["load", "signals", "one: ended", "slowest", "two: ended", "slowest",
          "stray files", "wrong status"]


def cells(kind, trials):
    """A row of the table, and what was wrong, as lines."""
    two = [trial for trial in trials if trial.second is not None]
    one = [trial for trial in trials
           if trial.second is None and trial.first is not None]
    stopped = [trial for trial in two if trial.second < SECOND_END_SECONDS]
    late = sum(trial.late for trial in trials)
    wrong = [trial.wrong for trial in trials if trial.wrong]
    stray = [name for trial in trials for name in trial.stray]
    row = [kind, len(one) + len(two),
           f"{len(one)} of {len(one) + late}",
           tables.number(max((trial.first for trial in one), default=None), 2),
           f"{len(stopped)} of {len(two)}",
           tables.number(max((trial.second for trial in two), default=None),
                         2), len(stray), len(wrong)]
    return row, sorted(set(wrong)) + sorted(set(stray))


def print_signals(context, kinds, running):
    """`running(kind)` is a context manager, a load."""
    rows = []
    count = context.trouble.signals or (QUICK_COUNT if context.quick else COUNT)
    count = max(2, count // len(kinds))
    for kind in kinds:
        with running(kind):
            trials = run_trials(context, count)
        row, notes = cells(kind, trials)
        rows.append(row)
        print("  " + " | ".join(map(str, row)), flush=True)
        for note in notes:
            print("      " + note, flush=True)
    print("\nSIGINT or SIGTERM at a random moment of a capture of "
          f"{CAPTURE_SECONDS} s: ended within {END_SECONDS} s; a second signal "
          f"within 0.3 s of the first: ended within {SECOND_END_SECONDS} s")
    tables.print_table(HEADER, rows)
