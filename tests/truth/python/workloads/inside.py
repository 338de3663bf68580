# SPDX-License-Identifier: Apache-2.0
"""Runs one interpreter inside of another one: with the lock for a while, and
without it for as long, by turns. Nobody imports it."""

import sys

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

INNER = """
import hashlib
import time

DATA = b"x" * 10000000

def with_lock(until):
    while time.monotonic() < until:
        pass

def without_lock(until):
    while time.monotonic() < until:
        hashlib.sha256(DATA)

def inner(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with_lock(time.monotonic() + 0.1)
        without_lock(time.monotonic() + 0.1)
"""


def outer(seconds):
    interpreter = interpreters.create()
    # What it needs is there before anybody looks.
    interpreters.run_string(interpreter, INNER)
    print("ready", flush=True)
    interpreters.run_string(interpreter, "inner(%f)" % seconds)


outer(float(sys.argv[1]))
