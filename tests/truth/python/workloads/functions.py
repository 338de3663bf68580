# SPDX-License-Identifier: Apache-2.0
"""Runs many functions in turn: functions.py SECONDS COUNT."""

import sys
import time

SOURCE = """\
def function_{i}():
    total = 0
    for i in range(1000):
        total += i
        total ^= i
    return total
"""
COUNT = int(sys.argv[2])
for i in range(COUNT):
    exec(compile(SOURCE.format(i=i), "functions_%d.py" % (i % 100), "exec"))
FUNCTIONS = [globals()["function_%d" % i] for i in range(COUNT)]
END = time.monotonic() + float(sys.argv[1])
print("ready", flush=True)
while time.monotonic() < END:
    for function in FUNCTIONS:
        function()
