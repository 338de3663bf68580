# SPDX-License-Identifier: Apache-2.0
"""numpy that calls back, and that computes: numpy_load.py SECONDS."""

import sys
import time

import numpy


def smallest(row):
    return numpy.sort(row)[0]


def twice(number):
    return number * 2


def main():
    end = time.monotonic() + float(sys.argv[1])
    data = numpy.random.default_rng(1).random((200, 200))
    doubled = numpy.vectorize(twice)
    print("ready", flush=True)
    while time.monotonic() < end:
        numpy.apply_along_axis(smallest, 1, data)
        doubled(data[0])
        numpy.fft.fft(data)
        data.dot(data)


main()
