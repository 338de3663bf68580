# SPDX-License-Identifier: Apache-2.0
"""What is measured on a build: each case gives figures, and whether these are
as good as they should be."""

import collections
import dataclasses
import json
import os

import captures
import make_calls

SHOWN = 2  # examples of what is wrong


@dataclasses.dataclass
class Figure:
    """A cell of the table."""
    column: str
    value: float
    text: str
    good: bool
    notes: list = dataclasses.field(default_factory=list)


def share(column, value, goal, notes=()):
    """A share that should be as large as the goal."""
    if value is None:
        return Figure(column, 0, "-", False, [*notes, "no samples"])
    return Figure(column, value, "%.2f" % (100 * value), value >= goal,
                  list(notes))


def count(column, bad, total, notes=()):
    """Cases of which there should be none."""
    return Figure(column, bad, "%d/%s" % (bad, thousands(total)),
                  bad == 0 and total > 0, list(notes))


def thousands(number):
    return "%dk" % (number // 1000) if number >= 10000 else str(number)


def describe(frames):
    return " > ".join("%s:%s" % (frame["function"], frame.get("line", 0))
                      for frame in frames)


class Wrong:
    """Examples, and how many samples there were."""

    def __init__(self, what):
        self.what = what
        self.samples = 0
        self.examples = collections.Counter()

    def add(self, text, samples):
        self.samples += samples
        self.examples[text] += samples

    def notes(self):
        return ["%s: %d x %s" % (self.what, samples, text)
                for text, samples in self.examples.most_common(SHOWN)]


def last_part(name):
    return name.rpartition(".")[2]


# Call-heavy code.


def calls(context, build):
    """Whether all frames are there, and each call is one that is made."""
    seconds = context.samples / context.hertz
    capture = captures.attached(
        context.profiler, build.command("calls.py", 3600), seconds,
        context.hertz, *context.options)
    edges = make_calls.Program().edges
    wrong, incomplete = Wrong("call that is not made"), Wrong("incomplete")
    for stack in capture.stacks:
        if not stack.is_complete:
            incomplete.add(why_incomplete(stack), stack.count)
        if not stack.is_torn:
            check_edges(stack, edges, wrong)
    total = capture.total()
    return [
        share("all frames %", capture.share(lambda s: s.is_complete), 0.995,
              [*refusals(capture), *incomplete.notes()]),
        Figure("torn %", 0, percent(capture.share(lambda s: s.is_torn)), True),
        count("bad edges", wrong.samples, total, wrong.notes())]


def refusals(capture):
    """What the profiler says of the interpreter."""
    return [warning for warning in capture.warnings if "CPython" in warning]


def begun(context, build):
    """The same from a process's beginning on."""
    capture, pid = captures.begun(
        context.profiler, build.command("depth.py", 3600, 10),
        build.command("calls.py", 3600), context.seconds, 1999,
        *context.options)
    incomplete = Wrong("incomplete")
    for stack in capture.stacks:
        if stack.pid == pid and stack.is_inside and not stack.has_all_frames:
            incomplete.add(why_incomplete(stack), stack.count)
    return [share("begun all %", capture.share(
        lambda s: s.has_all_frames,
        lambda s: s.pid == pid and s.is_inside), 0.995, incomplete.notes())]


def percent(value):
    return "-" if value is None else "%.3f" % (100 * value)


def why_incomplete(stack):
    if stack.is_torn:
        return captures.TORN
    if stack.has_unnamed:
        return captures.UNNAMED
    if not stack.python:
        return "no Python frame: " + " > ".join(
            frame["name"] for frame in stack.frames[-3:])
    if stack.python[0]["function"] not in captures.ROOTS:
        return "begins with " + stack.python[0]["function"]
    return "an evaluation without a frame"


def check_edges(stack, edges, wrong):
    for caller, callee in zip(stack.python, stack.python[1:]):
        key = last_part(caller["function"]), caller.get("line", 0)
        if key[0] == "<module>" and not caller["file"].endswith("calls.py"):
            continue  # of what runs the program
        if last_part(callee["function"]) not in edges.get(key, ()):
            wrong.add("%s:%d > %s" % (*key, callee["function"]), stack.count)
            return


# Known stacks.

# What is between a function of scenes.py and the next Python frame: something
# native, that native function, or nothing.
BETWEEN = {
    "via_call": False, "via_recursion": False, "via_finally": False,
    "via_static": False, "via_lambda": False, "größe_函数": False,
    "via_sort": True, "via_map": True, "via_min": True, "via_partial": True,
    "via_re": True, "via_qsort": "qsort", "via_next": True,
    "via_class": True, "via_exec": True, "via_yield_from": True,
    "via_expression": True,
}
FIRST_WITH_QUALIFIED_NAMES = 11
# Before, nothing tells which of two interpreters is the inner one while a thread
# has no lock.
FIRST_WITH_STRUCTS_OF_CALLS = 11


def scenes(context, build):
    """Frames and their order, against what the interpreter says itself."""
    path = build.path("truth.json")
    with captures.running(build.command("scenes.py", 3600, path)) as process:
        with open(build.outside(path), encoding="utf-8") as file:
            truth = json.load(file)
        os.unlink(build.outside(path))
        captures.allow_rate(context.hertz)
        capture = captures.capture(
            context.profiler, ["-F", context.hertz, "-p", process.pid,
                               *context.options, context.seconds])
    frames, order = Wrong("wrong stack"), Wrong("wrong order")
    incomplete = Wrong("incomplete")
    starts = {tuple(known[0][:2]) for known in truth.values()}
    judged, total = 0, capture.total()
    for stack in capture.stacks:
        if is_between_greenlets(stack):
            total -= stack.count
            continue
        known = stack.python and truth.get(stack.python[-1]["function"])
        if not (stack.is_complete or begins_as_one(stack, starts)):
            incomplete.add(why_incomplete(stack), stack.count)
        if not known or stack.is_torn:
            continue
        judged += stack.count
        check_frames(stack, known, frames)
        if not stack.is_cut:
            check_order(stack, build, order)
    right = 1 - frames.samples / judged if judged else None
    return [
        share("scenes all %", 1 - incomplete.samples / total if total else None,
              0.995, incomplete.notes()),
        share("right %", right, 0.999, frames.notes()),
        count("bad order", order.samples, judged, order.notes())]


def is_between_greenlets(stack):
    """Its greenlet has no Python frame, not yet or no more."""
    return not stack.python and any(
        "greenlet::" in frame["name"] for frame in stack.frames)


def begins_as_one(stack, starts):
    """A greenlet's frames have no module's below them."""
    if stack.is_torn or stack.has_unnamed or not stack.python:
        return False
    first = stack.python[0]
    return (first["function"], first["file"]) in starts


def check_frames(stack, known, wrong):
    """All but the innermost frame's line."""
    shown = [(frame["function"], frame["file"], frame.get("line", 0))
             for frame in stack.python]
    known = [tuple(frame) for frame in known]
    if len(shown) != len(known):
        wrong.add("%d frames of %d: %s" % (
            len(shown), len(known), difference(shown, known)), stack.count)
    elif shown[:-1] != known[:-1] or shown[-1][:2] != known[-1][:2]:
        wrong.add(difference(shown, known), stack.count)


def difference(shown, known):
    """The first frames that are not the same."""
    for one, other in zip(shown, known):
        if one != other:
            return "%s for %s" % (short(one), short(other))
    return "the rest of " + short(known[min(len(shown), len(known)) - 1])


def short(frame):
    return "%s %s:%s" % (frame[0], os.path.basename(frame[1]), frame[2])


def may_call_through_c(build, names):
    """Even where Python calls Python: of old, and with a trampoline, which is
    no function of its own."""
    if build.kind == "perf":
        return not any(name.startswith("py::") for name in names)
    return build.minor < FIRST_WITH_QUALIFIED_NAMES


def check_order(stack, build, wrong):
    for caller, callee, native in stack.between():
        wanted = BETWEEN.get(caller["function"])
        names = [frame["name"] for frame in native]
        if wanted is None:
            continue
        if wanted is False:
            good = not names or may_call_through_c(build, names)
        elif wanted is True:
            good = bool(names)
        else:
            good = any(wanted in name for name in names)
        if not good:
            wrong.add("%s > [%s] > %s" % (
                caller["function"], ", ".join(names), callee["function"]),
                stack.count)
            return


# One interpreter inside another one.

OUTER = ["<module>", "outer"]
INNER = ["<module>", "inner"]


def inside(context, build):
    """Whether a thread has the frames of both, in their order."""
    with captures.running(build.command("inside.py", 3600)) as process:
        capture = captures.capture(
            context.profiler, ["-F", 999, "-p", process.pid, *context.options,
                               context.seconds])
    wrong = Wrong("other frames")
    for stack in capture.stacks:
        names = [last_part(frame["function"]) for frame in stack.python]
        allowed = [OUTER + INNER]
        if build.minor < FIRST_WITH_STRUCTS_OF_CALLS:
            allowed.append(INNER)
        if stack.is_torn or not any(is_in(names, begin) for begin in allowed):
            wrong.add(" > ".join(names), stack.count)
    total = capture.total()
    return [share("inside %", 1 - wrong.samples / total if total else None,
                  0.995, wrong.notes())]


def is_in(names, begin):
    return names[:len(begin)] == begin and names[len(begin):] in (
        [], ["with_lock"], ["without_lock"])
