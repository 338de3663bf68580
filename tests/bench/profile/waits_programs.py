# SPDX-License-Identifier: Apache-2.0
"""Three programs that show where threads wait, and the table of what they do:
ksym-profile, the baseline (bench_switch_stacks) and bpftrace."""

import contextlib
import dataclasses
import os
import re
import select
import signal
import subprocess
import time

import programs
import tables

# What bpftrace's documents call the usual way, with both stacks.
BPFTRACE = """
tracepoint:sched:sched_switch%s {
  $next = args->next_pid;
  if (@since[$next]) {
    @off[$next, @user[$next], @kernel[$next]] = sum(nsecs - @since[$next]);
    delete(@since[$next]);
  }
%s
}
"""
BPFTRACE_STOP = """  if (%s) {
    @since[tid] = nsecs;
    @user[tid] = ustack(perf);
    @kernel[tid] = kstack(perf);
  }"""
START_SECONDS = 30
# Meanwhile tracepoints are patched in and the profiler's start-up ends.
SETTLE_SECONDS = 1.5


def own_command(context, *options):
    return [context.profiler, *map(str, options)]


def baseline_command(context, pid=None):
    return [context.tool("bench_switch_stacks")] + (
        [str(pid)] if pid else [])


def bpftrace_command(context, pid=None):
    """It finds tracepoints in a file system that need not be there."""
    text = BPFTRACE % ("", BPFTRACE_STOP % (f"pid == {pid}" if pid else "1"))
    return ["unshare", "-m", "sh", "-c",
            "test -e /sys/kernel/tracing/events || "
            "mount -t tracefs nodev /sys/kernel/tracing; "
            "exec bpftrace -e \"$0\"", text]


class Sampling:
    """A program that samples until finish()."""

    def __init__(self, context, command, settle=SETTLE_SECONDS):
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(context.environment(), BPFTRACE_MAP_KEYS_MAX="16384",
                     BPFTRACE_MAX_MAP_KEYS="16384"))
        self.begun = b""
        self._wait_begun()
        time.sleep(settle)

    def _wait_begun(self):
        """Until a line says that it samples."""
        files = [self.process.stdout, self.process.stderr]
        deadline = time.monotonic() + START_SECONDS
        while not re.search(rb"Sampling|Attaching \d+ probe", self.begun):
            ready, _, _ = select.select(files, [], [], 1)
            for file in ready:
                got = os.read(file.fileno(), 65536)
                self.begun += got
                if not got:
                    self.kill()
                    raise programs.Failed(
                        self.begun.decode(errors="replace").strip()[-300:])
            if time.monotonic() > deadline:
                self.kill()
                raise programs.Failed("it did not begin to sample")

    @property
    def pid(self):
        return self.process.pid

    def finish(self):
        """(stdout, stderr) after SIGINT."""
        self.process.send_signal(signal.SIGINT)
        try:
            out, err = self.process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            self.kill()
            raise programs.Failed("it did not end") from None
        return (out.decode(errors="replace"),
                (self.begun + err).decode(errors="replace"))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def sampling(context, command, settle=SETTLE_SECONDS):
    """While this is open the program samples. It is killed then, and unless
    finish() was called what it found is nobody's."""
    running = Sampling(context, command, settle)
    try:
        yield running
    finally:
        running.kill()


def peers(context, pid=None):
    """{name: command} of those that are here."""
    found = {"baseline": baseline_command(context, pid)}
    if programs.has_program("bpftrace"):
        found["bpftrace"] = bpftrace_command(context, pid)
    return found


# A shard of unwind tables, of which there are as many as what is sampled needs:
# one element (bpf/unwind_abi.h).
SHARD = {"map_type": "2", "value_size": "524288", "max_entries": "1"}


def kernel_mib(pid):
    """Of the BPF maps and programs that a process holds, but for unwind tables.
    """
    seen = {}
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as file:
                fields = dict(line.split(":", 1) for line in file)
        except (OSError, ValueError):
            continue
        if all(fields.get(key, "").strip() == value
               for key, value in SHARD.items()):
            continue
        for kind in ("map_id", "prog_id"):
            if kind in fields and "memlock" in fields:
                seen[kind, fields[kind].strip()] = int(fields["memlock"])
    return sum(seen.values()) / 2**20


@dataclasses.dataclass
class Row:
    """A figure of the table. A bound begins with < or >."""
    what: str
    goal: str
    ours: float
    baseline: float = None
    bpftrace: float = None
    decimals: int = 2

    def cells(self):
        ours = tables.number(self.ours, self.decimals)
        return [self.what, self.goal, ours + ("" if self.holds() else " (!)"),
                tables.number(self.baseline, self.decimals),
                tables.number(tables.ratio(self.ours, self.baseline), 3),
                tables.number(self.bpftrace, self.decimals),
                tables.number(tables.ratio(self.ours, self.bpftrace), 3)]

    def holds(self):
        found = re.match(r"([<>])=? ?([\d.]+)", self.goal)
        if not found or self.ours is None:
            return not found
        bound = float(found.group(2))
        ours = round(self.ours, self.decimals)
        return ours <= bound if found.group(1) == "<" else ours >= bound


def print_rows(rows):
    """As docs/measurements.md has them."""
    header = ["", "goal", "ksym-profile", "baseline", "ratio", "bpftrace",
              "ratio"]
    for i, cells in enumerate([header] + [row.cells() for row in rows]):
        print("| " + " | ".join(cells) + " |")
        if i == 0:
            print("|---" * len(header) + "|")
    print(flush=True)
