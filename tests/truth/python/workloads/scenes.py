# SPDX-License-Identifier: Apache-2.0
"""Stands in known stacks, and writes what the interpreter itself says of them:

    scenes.py SECONDS FILE [COUNT]

Each scene is a random path of ways to call, down to a function of its own name
that stays there. FILE gets, by that name, the frames as sys._getframe() has
them, outermost first: [qualified name, file, line].
"""

import ctypes
import functools
import json
import random
import re
import sys
import threading
import time
import zlib

try:
    import greenlet
except ImportError:
    greenlet = None

LIBC = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
STAY_SECONDS = 0.004
DATA = bytes(range(256)) * 1024
LEAF = """\
def {name}(rest):
    tell("{name}")
    end = clock() + STAY_SECONDS
    while clock() < end:
        {work}
    return 0
"""
WORK = ["sum(range(50))", "zlib.crc32(DATA)", "len(DATA) % 7"]
clock = time.perf_counter
TRUTH = {}


def tell(name):
    if name in TRUTH:
        return
    frames, frame = [], sys._getframe(1)
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name),
                       code.co_filename, frame.f_lineno])
        frame = frame.f_back
    TRUTH[name] = frames[::-1]


def via_call(rest):
    return rest[0](rest[1:])


def via_recursion(rest, depth=12):
    if depth:
        return via_recursion(rest, depth - 1)
    return rest[0](rest[1:])


def via_sort(rest):
    sorted([rest[1:]], key=rest[0])
    return 0


def via_map(rest):
    return list(map(rest[0], [rest[1:]]))[0]


def via_min(rest):
    min([rest[1:], rest[1:]][:1], key=rest[0])
    return 0


def via_partial(rest):
    return functools.partial(rest[0], rest[1:])()


def via_re(rest):
    re.compile("x").sub(lambda match: str(rest[0](rest[1:])), "x")
    return 0


def via_qsort(rest):
    def compare(one, other):
        if not done:
            done.append(rest[0](rest[1:]))
        return 0
    done = []
    LIBC.qsort((ctypes.c_long * 2)(1, 2), ctypes.c_size_t(2),
               ctypes.c_size_t(8), COMPARE(compare))
    return 0


def numbers(rest):
    yield rest[0](rest[1:])


def via_generator(rest):
    for number in numbers(rest):
        return number


def via_next(rest):
    return next(numbers(rest))


def delegate(rest):
    yield from numbers(rest)


def via_yield_from(rest):
    return list(delegate(rest))[0]


def via_expression(rest):
    return sum(rest[0](rest[1:]) for _ in range(1))


async def work(rest):
    return rest[0](rest[1:])


async def wait(rest):
    return await work(rest)


def via_await(rest):
    try:
        wait(rest).send(None)
    except StopIteration:
        pass
    return 0


def via_class(rest):
    class Body:
        value = rest[0](rest[1:])
    return Body.value


class Thing:

    def __init__(self, rest):
        self.value = rest[0](rest[1:])

    @property
    def answer(self):
        return self.next[0](self.next[1:])

    @staticmethod
    def call(rest):
        return rest[0](rest[1:])


def via_init(rest):
    return Thing(rest).value


def via_property(rest):
    thing = Thing.__new__(Thing)
    thing.next = rest
    return thing.answer


def via_static(rest):
    return Thing.call(rest)


def via_exec(rest):
    scope = {"rest": rest}
    exec("value = rest[0](rest[1:])", scope)
    return scope["value"]


def via_finally(rest):
    try:
        raise ValueError
    except ValueError:
        return rest[0](rest[1:])


def größe_函数(rest):
    return rest[0](rest[1:])


def via_lambda(rest):
    return (lambda: rest[0](rest[1:]))()


def via_greenlet(rest):
    # What called switch() is no caller of what runs there.
    return greenlet.greenlet(rest[0]).switch(rest[1:])


WAYS = [via_call, via_recursion, via_sort, via_map, via_min, via_partial,
        via_re, via_qsort, via_generator, via_next, via_yield_from,
        via_expression, via_await, via_class, via_init, via_property,
        via_static, via_exec, via_finally, größe_函数, via_lambda]


def make(count, seed):
    """Scenes: ways, and a function of their own at the end."""
    choose = random.Random(seed)
    scenes = []
    for i in range(count):
        name = "leaf_%d_%d" % (seed, i)
        source = LEAF.format(name=name, work=choose.choice(WORK))
        scope = globals()
        exec(compile(source, name + ".py", "exec"), scope)
        ways = [choose.choice(WAYS) for _ in range(choose.randint(1, 8))]
        if greenlet and choose.random() < 0.1:
            ways.insert(choose.randint(0, len(ways)), via_greenlet)
        scenes.append([*ways, scope[name]])
    return scenes


def run(scenes, end, told):
    while clock() < end:
        for scene in scenes:
            scene[0](scene[1:])
        told.set()


def main():
    seconds, path = float(sys.argv[1]), sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    end = clock() + seconds
    events = [threading.Event() for _ in range(2)]
    threads = [threading.Thread(target=run, args=(make(count, i), end, event))
               for i, event in enumerate(events)]
    for thread in threads:
        thread.daemon = True
        thread.start()
    for event in events:
        event.wait()
    with open(path, "w", encoding="utf-8") as file:
        json.dump(TRUTH, file)
    print("ready", flush=True)
    for thread in threads:
        thread.join()


main()
