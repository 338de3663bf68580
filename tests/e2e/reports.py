# SPDX-License-Identifier: Apache-2.0
"""What a report says, held against what always holds of its format."""

import collections
import json
import os
import re

SCHEMA = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), "docs", "profile.schema.json")
FOLDED_LINE = re.compile(rb"^[^;]+(;[^;]+)* [0-9]+$")
# Validating a frame or stack takes Python 0.2 ms.
VALIDATED_ITEMS = 400


class Folded:
    """Folded stacks; every line is held against the grammar."""

    def __init__(self, data):
        self.lines = []  # (frames as texts, count)
        if data and not data.endswith(b"\n"):
            raise AssertionError("the last line has no end")
        lines = data.split(b"\n")[:-1]
        for line in lines:
            if not FOLDED_LINE.match(line):
                raise AssertionError("no folded line: %r" % line)
            text, count = line.decode("utf-8").rsplit(" ", 1)
            if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text):
                raise AssertionError("control characters: %r" % line)
            self.lines.append((text.split(";"), int(count)))
        if lines != sorted(lines):
            raise AssertionError("the lines are not sorted")
        if len({line.rsplit(b" ", 1)[0] for line in lines}) != len(lines):
            raise AssertionError("a stack is there twice")

    def total(self):
        return sum(count for _, count in self.lines)

    def owners(self):
        return {frames[0] for frames, _ in self.lines}

    def of(self, owner):
        """The lines whose first frame is `owner`, without it."""
        return [(frames[1:], count) for frames, count in self.lines
                if frames[0] == owner]

    def share(self, owner, path):
        """How much of the owner's samples has `path` (a;b;c) in it."""
        lines = self.of(owner)
        total = sum(count for _, count in lines)
        wanted = ";%s;" % path
        hits = sum(count for frames, count in lines
                   if wanted in ";%s;" % ";".join(frames))
        return hits / total if total else 0.0


class Document:
    """A JSON report, held against its schema and against itself."""

    def __init__(self, data):
        self.json = json.loads(data)
        validate(self.json)
        self.metadata = self.json["metadata"]
        self.samples = self.metadata["samples"]
        self.frames = self.json["frames"]
        self.stacks = self.json["stacks"]
        lost = sum(self.samples["lost"].values())
        expect(self.samples["taken"] == self.samples["emitted"] + lost,
               "taken is not emitted + lost: %s" % self.samples)
        expect(self.total() == self.samples["emitted"],
               "the counts do not add up to %d" % self.samples["emitted"])
        used = set()
        for stack in self.stacks:
            used.update(stack["user"], stack["kernel"])
        expect(used == set(range(len(self.frames))),
               "frames that no stack uses, or the reverse")

    def total(self, keep=lambda stack: True):
        return sum(s["count"] for s in self.stacks if keep(s))

    def user(self, stack):
        return [self.frames[i] for i in stack["user"]]

    def kernel(self, stack):
        return [self.frames[i] for i in stack["kernel"]]

    def names(self, stack):
        return [f["name"] for f in self.user(stack) + self.kernel(stack)]

    def of_kind(self, kind):
        return [f for f in self.frames if f["kind"] == kind]

    def pids(self):
        return {s["pid"] for s in self.stacks}

    def leaves(self, pid=None, comm=None):
        """How often which user frame was the innermost one: by its name, or
        by its reason in parentheses where it has none."""
        counts = collections.Counter()
        for stack in self.stacks:
            if pid not in (None, stack["pid"]) or not stack["user"]:
                continue
            if comm not in (None, stack["comm"]):
                continue
            leaf = self.user(stack)[-1]
            name = ("(%s)" % leaf["reason"] if "reason" in leaf
                    else leaf["name"])
            counts[name] += stack["count"]
        return counts

    def share(self, keep, among=lambda stack: True):
        total = self.total(among)
        return self.total(lambda s: among(s) and keep(s)) / max(total, 1)


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def validate(document):
    """Against docs/profile.schema.json; of long arrays a part."""
    import jsonschema
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    part = dict(document)
    for key in ("frames", "stacks"):
        items = document[key]
        step = max(1, len(items) // VALIDATED_ITEMS)
        part[key] = items[::step]
    jsonschema.Draft202012Validator(schema).validate(part)
