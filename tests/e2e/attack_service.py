#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What users of the machine can do to a service: nothing, as this measures.

    tests/e2e/attack_service.py [--seconds 600] [--seed N] [--only KIND...]
    tests/e2e/attack_service.py --quick

As three users without rights it does at random what harms a profiler: the
attacks of the directory attacks/. Beside them run a program of root's whose calls
are known, and python3. ksym-profiled runs with its default limits, and sends
its profiles to a receiver that answers without end. Every ten seconds, and in
the end, it must be the same process, hold no more than 400 MB, have sampled the
known program without a gap of two seconds, have named all of its functions, and
nothing that is an attacker's must be in them. A line of a table says so.

Minutes long; ctest runs --quick. Needs root. Ends with status 1 where anything
was wrong.
"""

import argparse
import collections
import contextlib
import ctypes
import dataclasses
import glob
import json
import math
import os
import pwd
import random
import resource
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time

import attacks
import harness
import service_harness
from attacks import requests

USERS = 3
QUICK_SECONDS = 30
CHECK_SECONDS = 10
MAX_RESIDENT_KIB = 400 * 1000 * 1000 // 1024
MAX_GAP_SECONDS = 2
# A new process has its names and tables after a moment.
WARM_SECONDS = 5
MIN_WHOLE = 0.9  # of the stacks of the known program
# Its processes end by themselves after two minutes.
KNOWN_SECONDS = 60
KNOWN_FUNCTIONS = {
    "main", "Compare", "Sort", "Allocate", "Throw", "Catch", "Recurse",
    "CallLibrary", "OnSignal", "_start"}
# Python and C libraries have functions that no table names.
NAMELESS = {"no-symbol", "no-symbols"}
# As interpreters do in daily life.
PYTHON = ("import json\nwhile True: json.loads(json.dumps("
          "[{str(i): [i] * 5} for i in range(500)]))")
LOADS = ["spinners", "mapping_storm", "thread_storm", "rounds", "long_names"]
WORKLOADS = ["calls", "deep", "rough", "own_stack"]


def free_users(count):
    """Numbers of users that do not exist and have no process."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    for path in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            taken.add(os.stat(path).st_uid)
    return [uid for uid in range(51_000, 59_000) if uid not in taken][:count]


def become(uid):
    """In a child: that user, without rights, in a session of its own."""
    os.setsid()
    os.nice(-os.nice(0))
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for kind, limit in [(resource.RLIMIT_CORE, 0),
                        (resource.RLIMIT_NPROC, 500),
                        (resource.RLIMIT_AS, 2 << 30),
                        (resource.RLIMIT_NOFILE, 1024)]:
        resource.setrlimit(kind, (limit, limit))


def fork_as(uid, body):
    """The pid of a child that runs `body` as that user."""
    child = os.fork()
    if child != 0:
        return child
    try:
        become(uid)
        body()
    finally:
        os._exit(1)


def end_all_of(uid):
    """Kills every process of a user that is ours alone."""
    def kill():
        os.kill(-1, signal.SIGKILL)
    os.waitpid(fork_as(uid, kill), 0)


class Attacker:
    """One user, who makes one attack after the other."""

    def __init__(self, uid, bench, numbers):
        self.uid = uid
        self.bench = bench
        self.random = numbers
        self.directory = bench.directory + "/user-%d" % uid
        self.kind = None
        self.child = None
        self.until = 0.0
        self.made = collections.Counter()

    def turn(self):
        """Begins the next attack when it is time."""
        if time.monotonic() < self.until:
            return
        self.end()
        self.kind = self.random.choice(self.bench.kinds)
        self.made[self.kind] += 1
        self.until = time.monotonic() + self.random.uniform(3, 10)
        os.mkdir(self.directory, 0o700)
        os.chown(self.directory, self.uid, self.uid)
        place = attacks.Place(self.directory, self.random.getrandbits(60),
                              self.bench.port, self.bench.victims())
        attack = attacks.all_kinds()[self.kind]

        def body():
            os.chdir(self.directory)
            attack(place)
        self.child = fork_as(self.uid, body)

    def end(self):
        end_all_of(self.uid)
        if self.child is not None:
            os.waitpid(self.child, 0)
            self.child = None
        attacks.remove_perf_maps(self.uid)
        shutil.rmtree(self.directory, ignore_errors=True)


@dataclasses.dataclass
class Life:
    """A process that had that pid from one time to another one."""
    pid: int
    begin: float
    end: float = math.inf


class KnownLoad:
    """Root's programs that are to be measured well."""

    def __init__(self, directory):
        self.program = directory + "/programs/calls"
        self.started = []
        self.lives = []  # of all that were started
        self.python = harness.Workload(["/usr/bin/python3", "-S", "-E", "-c",
                                        PYTHON])
        self.lives.append(Life(self.python.pid, time.time()))
        self.turn()

    def turn(self):
        """Another process of the known program, in time."""
        now = time.monotonic()
        if self.started and now - self.started[-1][0] < KNOWN_SECONDS:
            return
        load = harness.Workload([self.program], ready=True)
        os.setpriority(os.PRIO_PROCESS, load.pid, -10)
        with contextlib.suppress(OSError):  # where sessions share the CPUs
            harness.write_text("/proc/%d/autogroup" % load.pid, "-10")
        self.lives.append(Life(load.pid, time.time()))
        self.started.append((now, load, self.lives[-1]))
        if len(self.started) > 2:
            _, oldest, life = self.started.pop(0)
            life.end = time.time()
            oldest.stop()

    def pids(self):
        return [load.pid for _, load, _ in self.started] + [self.python.pid]

    def pids_during(self, begin, end):
        """Pids of the programs that lived all the while. The pid of one that
        has ended may be an attacker's by now."""
        return {life.pid for life in self.lives
                if life.begin <= begin and end <= life.end}

    def stop(self):
        for _, load, _ in self.started:
            load.stop()
        self.python.stop()


class Seen:
    """What the profiles say of the known load."""

    def __init__(self, program):
        self.program = program
        self.samples = 0
        self.states = collections.Counter()
        self.unnamed = collections.Counter()
        self.foreign = collections.Counter()
        self.last_end = None
        self.gap = 0.0

    def add(self, document, load):
        meta = document["metadata"]
        begin = meta["start_unix_ns"] / 1e9
        pids = load.pids_during(begin, begin + meta["duration_ns"] / 1e9)
        count = 0
        for stack in document["stacks"]:
            if stack["pid"] not in pids:
                continue
            frames = [document["frames"][i] for i in stack["user"]]
            self.look(stack, frames)
            if stack["comm"] == "calls":
                count += stack["count"]
                self.states[stack["user_state"]] += stack["count"]
        self.samples += count
        if self.last_end is None:
            self.last_end = begin
        if count > 0:
            self.gap = max(self.gap, begin - self.last_end)
            self.last_end = begin + meta["duration_ns"] / 1e9
        else:
            self.gap = max(self.gap, begin + meta["duration_ns"] / 1e9 -
                           self.last_end)

    def look(self, stack, frames):
        for frame in frames:
            text = frame["name"] + frame.get("module", "") + stack["comm"]
            if attacks.EVIL in text:
                self.foreign[text[:100]] += stack["count"]
            if frame.get("module") == self.program and (
                    "reason" in frame or self.plain(frame["name"])
                    not in KNOWN_FUNCTIONS):
                self.unnamed[(frame["name"], frame.get("reason"))] += (
                    stack["count"])
            elif frame.get("reason", "no-symbol") not in NAMELESS:
                self.unnamed[(frame["name"], frame["reason"])] += (
                    stack["count"])

    @staticmethod
    def plain(name):
        """Without what the compiler and the linker add."""
        return "main" if name.endswith("@plt") else name.split(".")[0]


class Bench:

    def __init__(self, directory, options, users):
        self.directory = directory
        self.socket = directory + "/http.sock"
        self.port = free_port()
        numbers = random.Random(options.seed)
        self.kinds = sorted(options.only or
                            set(attacks.all_kinds()) - set(options.skip))
        self.receiver_port, self.receiver = self.start_receiver(
            users[USERS], random.Random(numbers.random()))
        self.load = KnownLoad(directory)
        self.service = service_harness.Service(
            [service_harness.SERVICE, "--config", directory + "/config.json",
             "--frequency-hz", "49", "--interval-seconds", "1",
             "--files-directory", directory + "/profiles",
             "--files-format", "json",
             "--history-directory", directory + "/history",
             "--stacks-cache-directory", directory + "/cache",
             "--push", "http://127.0.0.1:%d/" % self.receiver_port,
             "--push-spool-directory", directory + "/spool",
             "--http-listen", "unix:%s,127.0.0.1:%d" % (self.socket,
                                                        self.port)])
        self.attackers = [Attacker(uid, self, random.Random(numbers.random()))
                          for uid in users[:USERS]]
        self.seen = Seen(self.load.program)
        self.read = set()
        self.wrong = []

    def start_receiver(self, uid, numbers):
        server = socket.create_server(("127.0.0.1", 0))
        port = server.getsockname()[1]
        child = fork_as(uid, lambda: requests.receive(server, numbers))
        server.close()
        return port, child

    def victims(self):
        return self.load.pids() + [self.service.process.pid]

    def ask(self, path):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(10)
            client.connect(self.socket)
            client.sendall(b"GET %s HTTP/1.1\r\nHost: l\r\n"
                           b"Connection: close\r\n\r\n" % path.encode())
            parts = []
            while part := client.recv(1 << 16):
                parts.append(part)
        return b"".join(parts).decode()

    def metrics(self):
        return {name: float(value) for name, value in
                (line.rsplit(" ", 1) for line in self.ask("/metrics").split(
                    "\r\n\r\n", 1)[1].splitlines()
                 if not line.startswith("#"))}

    def peak_kib(self):
        text = harness.read_text("/proc/%d/status" % self.service.process.pid)
        return int(text.split("VmHWM:")[1].split()[0])

    def read_files(self):
        """All profiles that are new, oldest first."""
        paths = sorted(glob.glob(
            self.directory + "/profiles/[0-9]*/[0-9]*/[0-9]*/*Z*.json"))
        for path in paths:
            if path in self.read:
                continue
            self.read.add(path)
            self.seen.add(json.loads(harness.read_bytes(path)), self.load)

    def expect(self, condition, message):
        if not condition and message not in self.wrong:
            self.wrong.append(message)
            print("  WRONG: " + message, flush=True)

    def check(self, elapsed):
        """One line of the table."""
        if self.service.process.poll() is not None:
            self.wrong.append("the service ended: " + str(
                self.service.process.returncode))
            return
        self.read_files()
        seen = self.seen
        begin = time.monotonic()
        try:
            metrics = self.metrics()
        except (OSError, IndexError) as error:
            self.expect(False, "%d s: no metrics: %s" % (elapsed, error))
            metrics = collections.defaultdict(int)
        lost = sum(value for name, value in metrics.items()
                   if name.startswith("ksym_samples_lost_total"))
        peak = self.peak_kib()
        print("%5d %8d %6.1f %8d %5.2f %8d %8d %8d %6d %5d %6.2f  %s" % (
            elapsed, peak, metrics["ksym_resident_bytes"] / 1e6, seen.samples,
            seen.gap, sum(seen.unnamed.values()),
            sum(seen.foreign.values()), lost,
            metrics["ksym_symbolizers_given_up_total"],
            metrics["ksym_guard_level"], time.monotonic() - begin,
            " ".join(str(a.kind) for a in self.attackers)), flush=True)
        self.expect(peak <= MAX_RESIDENT_KIB, "%d s: %d KiB" % (elapsed, peak))
        self.expect(seen.gap <= MAX_GAP_SECONDS,
                    "%d s: a gap of %.2f s" % (elapsed, seen.gap))
        self.expect(not seen.unnamed, "%d s: without the right name: %s" % (
            elapsed, dict(seen.unnamed)))
        self.expect(not seen.foreign, "%d s: of attackers: %s" % (
            elapsed, dict(seen.foreign)))
        self.expect(seen.states["whole"] + seen.states["none"] >=
                    MIN_WHOLE * seen.states.total(), "%d s: stacks are %s" % (
                        elapsed, dict(seen.states)))
        seen.states.clear()
        seen.gap = 0.0
        seen.unnamed.clear()
        seen.foreign.clear()

    def run(self, seconds):
        self.service.wait_log("a profile every")
        time.sleep(WARM_SECONDS)
        for path in glob.glob(self.directory + "/profiles/*/*/*/*Z*.json"):
            self.read.add(path)
        print("    s peak KiB res MB  samples   gap  unnamed  foreign     "
              "lost given-up level answer  attacks", flush=True)
        begin = time.monotonic()
        next_check = CHECK_SECONDS
        while (elapsed := time.monotonic() - begin) < seconds:
            for attacker in self.attackers:
                attacker.turn()
            self.load.turn()
            if elapsed >= next_check:
                self.check(elapsed)
                next_check += CHECK_SECONDS
            if self.service.process.poll() is not None:
                break
            time.sleep(0.1)
        for attacker in self.attackers:
            attacker.end()
        self.finish(seconds)

    def finish(self, seconds):
        """In the end the service still does what it should."""
        time.sleep(2)
        self.check(seconds)
        if self.service.process.poll() is None:
            self.expect(self.ask("/healthz").endswith("ok\n"), "not healthy")
            self.expect(self.seen.samples > seconds,
                        "%d samples only" % self.seen.samples)
            took = self.service.end()
            self.expect(took < 5, "%.1f s to end" % took)
            self.expect(self.service.process.returncode == 0,
                        "status %s" % self.service.process.returncode)
            found = service_harness.ENDED.search(self.service.log())
            self.expect(found is not None, "no last line")
            if found:
                taken, named, lost, dropped = map(int, found.groups()[:4])
                self.expect(taken == named + lost + dropped,
                            "%d samples are not accounted for" % (
                                taken - named - lost - dropped))

    def stop(self):
        for attacker in self.attackers:
            attacker.end()
        os.kill(self.receiver, signal.SIGKILL)
        os.waitpid(self.receiver, 0)
        self.load.stop()
        if not self.service.stderr.closed:
            self.service.kill()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def copy_programs(directory):
    """Where every user reaches them."""
    os.mkdir(directory + "/programs", 0o755)
    built = os.environ.get("KSYM_E2E_LOADS") or os.path.join(
        os.path.dirname(harness.WORKLOADS), "loads")
    for source, names in [(built, LOADS), (harness.WORKLOADS, WORKLOADS)]:
        for name in names:
            target = shutil.copy(os.path.join(source, name),
                                 directory + "/programs")
            os.chmod(target, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP |
                     stat.S_IROTH | stat.S_IXOTH)


def attack(options):
    """What was wrong."""
    directory = tempfile.mkdtemp(prefix="ksym-attack-")
    os.chmod(directory, 0o711)
    copy_programs(directory)
    harness.write_text(directory + "/config.json", "{}")
    print("seed %d, %d s" % (options.seed, options.seconds), flush=True)
    bench = Bench(directory, options, free_users(USERS + 1))
    try:
        bench.run(options.seconds)
        made = sum((a.made for a in bench.attackers), collections.Counter())
        print("attacks: " + ", ".join("%s %d" % pair
                                      for pair in sorted(made.items())))
        lines = bench.service.log().splitlines()
        print("the service's log, %d lines:" % len(lines))
        for line in lines if options.log else lines[-3:]:
            print("  " + line[:300])
    finally:
        bench.stop()
        shutil.rmtree(directory, ignore_errors=True)
    return bench.wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", nargs="+", metavar="KIND",
                        choices=sorted(attacks.all_kinds()))
    parser.add_argument("--skip", nargs="+", metavar="KIND", default=[],
                        choices=sorted(attacks.all_kinds()))
    parser.add_argument("--log", action="store_true",
                        help="print the service's whole log")
    parser.add_argument("--quick", action="store_true",
                        help="half a minute, always the same seed")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.seed = QUICK_SECONDS, 1
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(harness.SKIPPED)
    wrong = attack(options)
    print("%d things were wrong" % len(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
