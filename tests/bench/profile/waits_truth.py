# SPDX-License-Identifier: Apache-2.0
"""A program whose waits are known (tests/e2e/workloads/waits.c), and what it
and the kernel say of its threads."""

import os
import re
import select
import signal
import subprocess
import time

import programs

SPINNERS = 8
# A stack has its outermost frames if one of these functions is on it.
OUTERMOST = {"Run", "main", "Sleeper", "Abandoned", "Nothing"}
# What a thread waits for, by the function of the C library that it called.
CALLED = {"nanosleep": "clock_nanosleep", "pthread_mutex_lock": "futex",
          "pthread_cond_timedwait": "futex", "read": "read", "poll": "poll",
          "fsync": "fsync", "vfork": "vfork", "pread64": "pread64",
          "pread": "pread64", "Touch": "page fault", "pause": "pause",
          "waitpid": "wait4", "wait4": "wait4", "__wait4": "wait4",
          "StepUntil": "clock_nanosleep", "sched_setaffinity":
          "sched_setaffinity", "__pthread_clockjoin_ex": "futex",
          "raise": "stopped"}
TIMER = ("[woken by interrupt: timer]",)
BLOCK = ("[woken by interrupt: block]",)
# (thread, why): who ends such a wait. Other waits, as for a lock of the kernel,
# are not known beforehand.
WAKERS = {
    ("first", "futex"): lambda names: names[0] == "second" and "Hold" in names,
    ("second", "futex"): lambda names: names[0] in ("first", "third")
    and "Hold" in names,
    ("third", "futex"): lambda names: names[0] == "second"
    and "Wait_second" in names,
    ("pipe", "read"): lambda names: names[0] == "writer"
    and "Wait_writer" in names,
    ("vfork", "vfork, D"): lambda names: names[0] == "vfork"
    and "Wait_vfork" in names,
    ("threads", "futex"): lambda names: names[0] == "threads",
    ("exec", "wait4"): lambda names: names[0] == "exec",
    ("exit", "wait4"): lambda names: names[0] == "exit",
}
INTERRUPTS = {**{(name, "clock_nanosleep"): TIMER for name in
                 ("sleep", "first", "writer", "step", "direct", "fault",
                  "migrate", "threads", "exec", "exit")},
              ("poll", "poll"): TIMER, ("direct", "pread64, iowait"): BLOCK,
              ("fault", "page fault, iowait"): BLOCK}


class Workload:
    """Runs until stop(); its threads do not end before."""

    def __init__(self, context, seconds):
        program = context.built("tests", "e2e", "workloads", "waits")
        self.seconds = seconds
        self.process = subprocess.Popen(
            [program, str(seconds), context.scratch, str(SPINNERS), "stay"],
            stdout=subprocess.PIPE, bufsize=0)
        self.stopped = int(self._line().split()[1])
        self._line()
        self.functions = functions_of(program, self.process.pid)
        self.names, self.made, self.places = {}, {}, {}

    def _line(self):
        """The next one that it prints, before long."""
        text = b""
        deadline = time.monotonic() + 60 + 3 * self.seconds
        while not text.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [],
                                              left)[0]:
                raise programs.Failed("the known waits did not end")
            byte = self.process.stdout.read(1)
            if not byte:
                raise programs.Failed("the known waits are gone")
            text += byte
        return text.decode()

    @property
    def pid(self):
        return self.process.pid

    def run(self):
        """Until all have waited and rest."""
        os.kill(self.pid, signal.SIGUSR1)
        while (line := self._line().split()) != ["done"]:
            if line[0] == "place":
                self.places[line[1]] = int(line[2])
            else:
                self.names[int(line[5])] = line[0]
                self.made[int(line[5])] = int(line[4])
        time.sleep(0.3)

    def schedstats(self):
        """{tid: (running, runnable)} in nanoseconds, by the kernel."""
        found = {}
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{tid}/schedstat",
                      encoding="ascii") as file:
                found[int(tid)] = tuple(map(int, file.read().split()[:2]))
        return found

    def stop(self):
        for pid in (self.stopped, self.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def functions_of(program, pid):
    """[(begin, end)] of the outermost functions, in that process."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as file:
        base = next(int(line.split("-")[0], 16) for line in file
                    if line.rstrip().endswith(program))
    listed = subprocess.run(["nm", "-S", program], capture_output=True,
                            text=True, check=True).stdout
    found = re.findall(r"^(\w+) (\w+) [tT] (\w+)$", listed, re.MULTILINE)
    return [(base + int(begin, 16), base + int(begin, 16) + int(size, 16))
            for begin, size, name in found if name in OUTERMOST]
