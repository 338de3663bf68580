# SPDX-License-Identifier: Apache-2.0
"""What unprivileged users do to a service: see attack_service.py.

Each attack is a function of a Place. It runs in a process of its own, as its
user, until it is killed with all that it started. What it brings into the
world has EVIL in its name, so that it is found where it must not be.
"""

import ctypes
import glob
import os
import random
import shutil
import subprocess
import time

LIBC = ctypes.CDLL(None, use_errno=True)
EVIL = "EVIL"


class Place:
    """What an attack may use: a directory of its user's, copies of programs in
    it, numbers from the seed, the service's TCP port, and whom to harm."""

    def __init__(self, directory, seed, port, victims):
        self.directory = directory
        self.random = random.Random(seed)
        self.port = port
        self.victims = victims  # processes of others, by number
        self.programs = os.path.join(os.path.dirname(directory), "programs")

    def path(self, name):
        return os.path.join(self.directory, name)

    def program(self, name):
        """Of those that the attacks have a copy of."""
        return os.path.join(self.programs, name)

    def start(self, *command):
        """A program that runs beside the attack, and ends with it."""
        return subprocess.Popen(
            [*map(str, command)], cwd=self.directory, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start_load(self, program, processes, *arguments):
        """One of tests/e2e/loads."""
        counters = self.path("counters-%d" % self.random.getrandbits(40))
        return self.start(program, counters, processes, *arguments)


def wait():
    """Until the attack is ended."""
    while True:
        time.sleep(1)


def spin(seconds):
    """Uses the CPU, so that the process is sampled."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def perf_map(pid):
    return "/tmp/perf-%d.map" % pid


def remove_perf_maps(owner):
    """What killed attacks of this user have left."""
    for path in glob.glob("/tmp/perf-*.map"):
        try:
            if os.lstat(path).st_uid != owner:
                continue
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        except FileNotFoundError:
            continue


def all_kinds():
    """Attacks by their names."""
    # They use what is above.
    from attacks import elves, files, processes, requests
    return {**elves.KINDS, **files.KINDS, **processes.KINDS, **requests.KINDS}
