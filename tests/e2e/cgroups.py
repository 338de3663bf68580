# SPDX-License-Identifier: Apache-2.0
"""Cgroups that tests and benchmarks make and remove."""

import contextlib
import os
import time

QUOTA_PERIOD_US = 100_000
# Processes that were killed are in their cgroup until they have ended.
REMOVE_SECONDS = 10


def hierarchies():
    """(mount, type, options) of each, in the order of the mounts."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            _, mount, kind, options = line.split()[:4]
            if kind in ("cgroup", "cgroup2"):
                yield mount, kind, options.split(",")


def second_version():
    """Where cgroups of the second version can be made, or None."""
    for mount, kind, _ in hierarchies():
        if kind == "cgroup2" and os.access(mount, os.W_OK):
            return mount
    return None


def has_cpu_controller(mount):
    """Whether cgroups of the second version bound CPU time there."""
    with open(os.path.join(mount, "cgroup.subtree_control"),
              encoding="ascii") as file:
        return "cpu" in file.read().split()


def quota_of(share):
    """Where cgroups bound CPU time, and the texts of the files that give one
    that share of one CPU; or None."""
    quota = int(share * QUOTA_PERIOD_US)
    for mount, kind, options in hierarchies():
        if kind == "cgroup" and "cpu" in options:
            return mount, {"cpu.cfs_period_us": str(QUOTA_PERIOD_US),
                           "cpu.cfs_quota_us": str(quota)}
        if kind == "cgroup2" and has_cpu_controller(mount):
            return mount, {"cpu.max": "%d %d" % (quota, QUOTA_PERIOD_US)}
    return None


def set_files(path, texts):
    for name, text in texts.items():
        with open(os.path.join(path, name), "w", encoding="ascii") as file:
            file.write(text)


def remove(path):
    """The cgroup and those below it, as soon as no process is in them."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while True:
        try:
            for directory, _, _ in os.walk(path, topdown=False):
                os.rmdir(directory)
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@contextlib.contextmanager
def made(path):
    os.mkdir(path)
    try:
        yield path
    finally:
        remove(path)
