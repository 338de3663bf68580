# SPDX-License-Identifier: Apache-2.0
"""perf and bpftrace beside the same loads."""

import re

import programs
import tables
import trouble_captures
import unwind

LATE_LIMIT = 30
BPFTRACE = ("profile:hz:{} {{ @[ustack(127), comm] = count(); }} "
            "interval:ms:{} {{ exit(); }}")


def perf_command(context, rate_hz, seconds):
    return ["perf", "record", "-q", "-o", context.scratch_file("perf.data"),
            "-F", str(rate_hz), "-a", "--call-graph", "dwarf", "sleep",
            str(seconds)]


def perf_stacks(text):
    """(three names from the root on, 1) of each user stack of perf script."""
    for block in text.split("\n\n"):
        frames = [line.split(None, 1) for line in block.splitlines()
                  if line.strip()]
        user = [frame[1] if len(frame) > 1 else "" for frame in frames
                if not frame[0].startswith("ffff")]
        if user:
            yield user[:-4:-1], 1


def perf_cells(context, rate_hz, seconds):
    """late, MiB, whole %; late is of record and script together."""
    if not programs.has_program("perf"):
        return [None] * 3
    record = trouble_captures.run_bounded(
        context, perf_command(context, rate_hz, seconds), seconds, LATE_LIMIT)
    output = context.scratch_file("perf.txt")
    with open(output, "wb") as file:
        script = trouble_captures.run_bounded(
            context, ["perf", "script", "-i",
                      context.scratch_file("perf.data"), "--max-stack", "512",
                      "-F", "ip,sym", "--no-inline"], 0, LATE_LIMIT, file)
    with open(output, encoding="utf-8", errors="replace") as file:
        # Killed, it has printed the first of its samples.
        whole = unwind.share(list(perf_stacks(file.read())))
    rss = [run.peak_rss_mib for run in (record, script) if run.peak_rss_mib]
    return [min(record.late + script.late, LATE_LIMIT),
            max(rss, default=None), whole]


def bpftrace_cells(context, rate_hz, seconds):
    """Likewise; it walks by frame pointers."""
    if not programs.has_program("bpftrace"):
        return [None] * 3
    output = context.scratch_file("bpftrace.txt")
    run = trouble_captures.run_bounded(
        context, ["bpftrace", "-o", output, "-e",
                  BPFTRACE.format(rate_hz, int(seconds * 1000))],
        seconds, LATE_LIMIT)
    stacks = []
    with open(output, encoding="utf-8", errors="replace") as file:
        for block, count in re.findall(r"@\[\n(.*?)\]: (\d+)", file.read(),
                                       re.S):
            lines = [line.strip().split("+")[0] for line in block.splitlines()
                     if line.startswith("    ")]
            if lines:
                stacks.append((lines[:-4:-1], int(count)))
    return [run.late, run.peak_rss_mib, unwind.share(stacks)]


def cells(context, ours):
    """A row: each peer's figures, and those of our long capture, a
    trouble.Row, as ratios to them."""
    row = [ours.title]
    for peer in (perf_cells, bpftrace_cells):
        late, rss, whole = peer(context, ours.rate_hz, ours.long_seconds)
        row += ["-" if late is None else f"> {LATE_LIMIT}"
                if late >= LATE_LIMIT else tables.number(late, 2),
                tables.number(tables.ratio(ours.late, late), 3),
                tables.number(rss, 1),
                tables.number(tables.ratio(ours.peak_rss_mib, rss), 3),
                tables.number(whole, 1)]
    return row


HEADER = ["load"] + [f"{peer} {figure}" for peer in ("perf", "bpftrace")
                     for figure in ("late", "ratio", "MiB", "ratio",
                                    "whole %")]
