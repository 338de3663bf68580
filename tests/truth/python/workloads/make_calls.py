# SPDX-License-Identifier: Apache-2.0
"""Makes a Python program that only calls, in many ways, and says which calls
its lines make."""

import collections
import random

LAYERS = 9
WIDTH = 14
SEED = 22

HEAD = """\
import ctypes, functools, re, sys, time

PATTERN = re.compile("a")
LIBC = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
LIBC.qsort.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t,
                       COMPARE]
ARRAY = (ctypes.c_long * 2)(1, 2)

""".splitlines()

TAIL = """\
def main(seconds):
    end = time.monotonic() + seconds
    print("ready", flush=True)
    while time.monotonic() < end:
        for function in FIRST:
            function(1)


main(float(sys.argv[1]))
""".splitlines()


class Program:
    """Its lines, and by (function, line) the functions called from there.
    Names are without what encloses them; each is of one function."""

    def __init__(self, seed=SEED):
        self.random = random.Random(seed)
        self.lines = list(HEAD)
        self.edges = collections.defaultdict(set)
        self._number = 0
        layer = [self._leaf() for _ in range(WIDTH)]
        for _ in range(LAYERS):
            layer = [self._caller(layer) for _ in range(WIDTH)]
        self.lines.append("FIRST = [%s]" % ", ".join(layer))
        self._tail(layer)

    @property
    def source(self):
        return "\n".join(self.lines) + "\n"

    def _tail(self, layer):
        for line in TAIL:
            self._add(line)
            if line.strip() == "function(1)":
                self._calls("main", *layer)
            elif line.startswith("main("):
                self._calls("<module>", "main")

    def _add(self, *lines):
        self.lines.extend(lines)

    def _calls(self, caller, *callees):
        """By the last line so far."""
        self.edges[caller, len(self.lines)].update(callees)

    def _name(self, what):
        self._number += 1
        return "%s_%d" % (what, self._number)

    def _leaf(self):
        name = self._name("leaf")
        self._add("def %s(n, *_):" % name, "    return n", "", "")
        return name

    def _caller(self, layer):
        name = self._name("f")
        first, second = self.random.sample(layer, 2)
        kind = self.random.choice([
            self._direct, self._direct, self._sort, self._map, self._generator,
            self._yield_from, self._ctypes, self._pattern, self._class_body,
            self._init, self._operator, self._property, self._context,
            self._coroutine, self._partial, self._reduce, self._exception,
            self._method, self._expression])
        kind(name, first)
        # A second way to go on, and the same function from another line.
        if self.random.random() < 0.6:
            return self._both(name, second)
        return name

    def _both(self, inner, second):
        name = self._name("g")
        self._add("def %s(n, *_):" % name, "    %s(n)" % inner)
        self._calls(name, inner)
        self._add("    return %s(n) or 0" % second)
        self._calls(name, second)
        self._add("", "")
        return name

    def _def(self, name, *lines):
        self._add("def %s(n, *_):" % name, *lines)

    def _end(self):
        self._add("    return 0", "", "")

    def _simple(self, name, line, callee, *before):
        self._def(name, *before, "    " + line)
        self._calls(name, callee)
        self._end()

    def _direct(self, name, callee):
        self._simple(name, "%s(n)" % callee, callee)

    def _sort(self, name, callee):
        self._simple(name, "sorted((2, 1), key=%s)" % callee, callee)

    def _map(self, name, callee):
        self._simple(name, "list(map(%s, (1, 2)))" % callee, callee)

    def _partial(self, name, callee):
        self._simple(name, "functools.partial(%s, 1)()" % callee, callee)

    def _reduce(self, name, callee):
        self._simple(name, "functools.reduce(%s, (1, 2))" % callee, callee)

    def _pattern(self, name, callee):
        wrapper = self._name("replace")
        self._add("def %s(match):" % wrapper, "    %s(1)" % callee)
        self._calls(wrapper, callee)
        self._add("    return 'b'", "", "")
        self._simple(name, "PATTERN.sub(%s, 'aa')" % wrapper, wrapper)

    def _ctypes(self, name, callee):
        wrapper = self._name("compare")
        self._add("def %s(one, other):" % wrapper, "    %s(1)" % callee)
        self._calls(wrapper, callee)
        self._add("    return 0", "", "",
                  "%s_c = COMPARE(%s)" % (wrapper, wrapper))
        self._simple(name, "LIBC.qsort(ARRAY, 2, 8, %s_c)" % wrapper, wrapper)

    def _generator(self, name, callee):
        generator = self._name("numbers")
        self._add("def %s(n):" % generator, "    yield 1", "    %s(n)" % callee)
        self._calls(generator, callee)
        self._add("    yield 2", "", "")
        self._def(name, "    for _ in %s(n):" % generator)
        self._calls(name, generator)
        self._add("        pass")
        self._end()

    def _yield_from(self, name, callee):
        inner, outer = self._name("inner"), self._name("outer")
        self._add("def %s(n):" % inner, "    %s(n)" % callee)
        self._calls(inner, callee)
        self._add("    yield 2", "", "", "def %s(n):" % outer,
                  "    yield from %s(n)" % inner)
        self._calls(outer, inner)
        self._add("", "")
        self._simple(name, "sum(%s(n))" % outer, outer)

    def _expression(self, name, callee):
        # All expressions have one name: this one calls any of them.
        self._def(name, "    sum(%s(i) or 0 for i in (1, 2))" % callee)
        self._calls(name, "<genexpr>")
        self._calls("<genexpr>", callee)
        self._end()

    def _class_body(self, name, callee):
        inner = self._name("Body")
        self._def(name, "    class %s:" % inner)
        self._calls(name, inner)
        self._add("        value = %s(1)" % callee)
        self._calls(inner, callee)
        self._end()

    def _of_class(self, name, method, callee, line, *decorators):
        """A class with that method, and a function that has it called."""
        self._add("class %s_class:" % name)
        self._add(*("    " + decorator for decorator in decorators))
        self._add("    def %s(self, *_):" % method, "        %s(1)" % callee)
        self._calls(method, callee)
        self._add("        return None" if method == "__init__"
                  else "        return 0", "", "")
        self._simple(name, line % {"class": name + "_class"}, method)

    def _init(self, name, callee):
        self._of_class(name, "__init__", callee, "%(class)s()")

    def _operator(self, name, callee):
        self._of_class(name, "__add__", callee, "%(class)s() + 1")

    def _property(self, name, callee):
        method = self._name("value")
        self._of_class(name, method, callee, "%(class)s()." + method,
                       "@property")

    def _method(self, name, callee):
        method = self._name("method")
        self._of_class(name, method, callee, "%(class)s()." + method + "()")

    def _context(self, name, callee):
        self._add("class %s_context:" % name, "    def __enter__(self):",
                  "        %s(1)" % callee)
        self._calls("__enter__", callee)
        self._add("    def __exit__(self, *_):", "        return None", "", "")
        self._def(name, "    with %s_context():" % name)
        self._calls(name, "__enter__", "__exit__")
        self._add("        pass")
        self._calls(name, "__exit__")  # before 3.10
        self._end()

    def _coroutine(self, name, callee):
        inner, outer = self._name("inner"), self._name("outer")
        self._add("async def %s(n):" % inner, "    %s(n)" % callee)
        self._calls(inner, callee)
        self._add("", "", "async def %s(n):" % outer,
                  "    await %s(n)" % inner)
        self._calls(outer, inner)
        self._add("", "")
        self._def(name, "    try:", "        %s(n).send(None)" % outer)
        self._calls(name, outer)
        self._add("    except StopIteration:", "        pass")
        self._end()

    def _exception(self, name, callee):
        self._def(name, "    try:", "        raise ValueError(n)",
                  "    except ValueError:", "        pass", "    finally:",
                  "        %s(n)" % callee)
        self._calls(name, callee)
        self._end()
