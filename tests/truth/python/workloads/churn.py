# SPDX-License-Identifier: Apache-2.0
"""Defines functions and drops them, and names the thread after the one that
runs:

    churn.py SECONDS PER_SECOND

The pair outer_N and inner_N runs while the thread is called cN; the line of
the call in outer_N is 2 + N % 40.
"""

import ctypes
import sys
import time

PR_SET_NAME = 15
LIBC = ctypes.CDLL(None)
SOURCE = """\
def outer_{n}(stay):
{blank}    inner_{n}(stay)


def inner_{n}(stay):
    while clock() < stay:
        pass
"""
clock = time.perf_counter


def name_thread(text):
    LIBC.prctl(PR_SET_NAME, text.encode(), 0, 0, 0)


def once(number, stay):
    scope = {"clock": clock}
    source = SOURCE.format(n=number, blank="\n" * (number % 40))
    exec(compile(source, "churn_%d.py" % number, "exec"), scope)
    outer = scope["outer_%d" % number]
    name_thread("c%d" % number)
    outer(stay)
    name_thread("between")
    del outer
    scope.clear()  # so that nothing waits for the collector of cycles


def main():
    end = clock() + float(sys.argv[1])
    step = 1 / float(sys.argv[2])
    number = 100000
    print("ready", flush=True)
    at = clock()
    while at < end:
        at = max(at + step, clock() + step / 4)
        once(number, at)
        number += 1
    print(number - 100000, flush=True)


main()
