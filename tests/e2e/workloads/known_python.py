# SPDX-License-Identifier: Apache-2.0
"""A Python program whose calls are known: EDGES has each that it makes.

    known_python.py SECONDS    runs all of them in turn for so long
"""

import ctypes
import re
import sys
import threading
import time
import zlib

FILE = "known_python.py"
# Which functions a function calls, through what is not Python or directly.
EDGES = {
    "<module>": {"main"},
    "main": {"by_sort", "by_generator", "by_re", "by_ctypes", "recurse",
             "by_class", "by_map", "größe"},
    "by_sort": {"sort_key"},
    "sort_key": {"leaf"},
    "by_generator": {"by_generator.<locals>.<genexpr>", "numbers"},
    "by_generator.<locals>.<genexpr>": {"numbers"},
    "numbers": {"leaf"},
    "by_re": {"sub"},
    "sub": {"_compile", "substitute"},
    "_compile": set(),
    "substitute": {"leaf"},
    "by_ctypes": {"compare"},
    "compare": {"leaf"},
    "recurse": {"recurse", "leaf"},
    "by_class": {"Thing.__init__", "Thing.method", "Thing.static"},
    "Thing.__init__": {"leaf"},
    "Thing.method": {"leaf"},
    "Thing.static": {"leaf"},
    "by_map": {"by_map.<locals>.<lambda>"},
    "by_map.<locals>.<lambda>": {"leaf"},
    "größe": {"leaf"},
    "leaf": set(),
    "Thread._bootstrap": {"Thread._bootstrap_inner"},
    "Thread._bootstrap_inner": {"Thread.run"},
    "Thread.run": {"without_lock"},
    "without_lock": set(),
}
DEPTH = 60
LIBC = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def leaf(number):
    total = 0
    for i in range(20):
        total += i ^ number
    return total


def sort_key(number):
    return leaf(number)


def by_sort():
    return sorted(range(40), key=sort_key)


def numbers():
    for i in range(40):
        yield leaf(i)


def by_generator():
    return sum(number + 1 for number in numbers())


def substitute(match):
    leaf(match.start())
    return "b"


def by_re():
    return re.sub("a", substitute, "a" * 40)


def compare(first, second):
    leaf(7)
    return 0


COMPARE_CALLBACK = COMPARE(compare)


def by_ctypes():
    array = (ctypes.c_long * 16)(*range(16))
    LIBC.qsort(array, ctypes.c_size_t(16), ctypes.c_size_t(8),
               COMPARE_CALLBACK)


def recurse(depth):
    if depth == 0:
        return leaf(depth)
    leaf(depth)
    return recurse(depth - 1)


class Thing:

    def __init__(self):
        leaf(1)

    def method(self):
        return leaf(2)

    @staticmethod
    def static():
        return leaf(3)


def by_class():
    for _ in range(10):
        thing = Thing()
        thing.method()
        thing.static()


def by_map():
    return list(map(lambda number: leaf(number), range(40)))


def größe():
    for i in range(40):
        leaf(i)


def without_lock(seconds):
    end = time.monotonic() + seconds
    data = bytes(range(256)) * 4096
    while time.monotonic() < end:
        zlib.compress(data, 9)


def main(seconds):
    print("ready", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        by_sort()
        by_generator()
        by_re()
        by_ctypes()
        recurse(DEPTH)
        by_class()
        by_map()
        größe()


if __name__ == "__main__":
    threading.Thread(target=without_lock, args=(float(sys.argv[1]),)).start()
    main(float(sys.argv[1]))
