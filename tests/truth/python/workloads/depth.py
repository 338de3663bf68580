# SPDX-License-Identifier: Apache-2.0
"""Loops at the end of a recursion: depth.py SECONDS DEPTH [FUNCTIONS], with so
many functions that call each other in turn."""

import sys
import time

SOURCE = """\
def step_{i}(depth):
    if depth <= 0:
        return loop()
    return STEPS[{next}](depth - 1)
"""


def loop():
    total = 0
    while time.monotonic() < END:
        for i in range(1000):
            total += i
    return total


END = time.monotonic() + float(sys.argv[1])
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 1
for i in range(COUNT):
    exec(compile(SOURCE.format(i=i, next=(i + 1) % COUNT), "step.py", "exec"))
STEPS = [globals()["step_%d" % i] for i in range(COUNT)]
sys.setrecursionlimit(100000)
print("ready", flush=True)
STEPS[0](int(sys.argv[2]) - 3)
