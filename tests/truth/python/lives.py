# SPDX-License-Identifier: Apache-2.0
"""What is gone soon: processes that live for 50 ms, and functions."""

import re

import captures
from cases import Figure, Wrong, count, percent, share, why_incomplete

SHORT = """\
import time
def short_work():
    end = time.process_time() + 0.05
    while time.process_time() < end: pass
short_work()
"""
SHORT_RUNS = 60


def short_lives(context, build):
    """The share of the samples in Python code that have names, of processes
    that live for 50 ms."""
    path = build.path("short.py")
    with open(build.outside(path), "w", encoding="utf-8") as file:
        file.write(SHORT)
    command = " ".join(build.command("short.py"))
    capture = captures.capture(
        context.profiler, [
            "-F", 997, "--by", "pid", *context.options, "--", "/bin/sh", "-c",
            "i=0; while [ $i -lt %d ]; do %s; i=$((i+1)); done" % (
                SHORT_RUNS, command)])
    unnamed = Wrong("without names")
    for stack in capture.stacks:
        if stack.is_inside and not stack.python:
            unnamed.add(why_incomplete(stack), stack.count)
    return [share("50 ms %", capture.share(
        lambda s: s.python and not s.has_unnamed,
        lambda s: s.is_inside), 0.99, unnamed.notes())]


CHURNED = re.compile(r"(outer|inner)_(\d+)$")


def churn(context, build):
    """Functions that are defined and dropped: 1,000 a second."""
    capture = captures.attached(
        context.profiler, build.command("churn.py", 3600, 500),
        context.churn_seconds, 4999, *context.options)
    wrong, unnamed, judged = Wrong("stale name"), 0, 0
    for stack in capture.stacks:
        if not re.fullmatch(r"c\d+", stack.comm):
            continue
        judged += stack.count
        if stack.has_unnamed or not stack.python:
            unnamed += stack.count
        check_churned(stack, wrong)
    return [count("stale names", wrong.samples, judged, wrong.notes()),
            Figure("unnamed %", unnamed, percent(unnamed / max(judged, 1)),
                   unnamed <= judged / 100)]


def check_churned(stack, wrong):
    number = int(stack.comm[1:])
    for frame in stack.python:
        found = CHURNED.match(frame["function"])
        if not found:
            continue
        line = frame.get("line", 0)
        if int(found[2]) != number or (
                frame["file"] != "churn_%d.py" % number) or (
                found[1] == "outer" and frame is not stack.python[-1] and
                line != 2 + number % 40):
            wrong.add("%s (%s:%d) for %d" % (
                frame["function"], frame["file"], line, number), stack.count)
            return
