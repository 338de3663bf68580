# SPDX-License-Identifier: Apache-2.0
"""Does the same work each time, deep in calls, and prints the CPU time that it
took."""

import time


def leaf(number):
    return number + 1


def step(depth):
    if depth:
        return step(depth - 1)
    total = 0
    for number in range(400000):
        total = leaf(total)
    return total


step(3)  # what is done once
BEGIN = time.process_time()
for _ in range(4):
    step(100)
print(time.process_time() - BEGIN)
