#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what GSYM files say of random addresses with LLVM's tools.

    gsym.py --build DIRECTORY [--count N] [--seed N] PROGRAM...

Of each program, an ELF file with debug data or with a debug file below
/usr/lib/debug (one without either is left out, and said so):

- names, inlined calls, files and lines of our GSYM file, against
  llvm-symbolizer-19 on the program;
- our file read by llvm-gsymutil-19, and its files of one and of two threads
  read by us: both programs must have the same frames.

Differences that docs/gsym.md explains are counted by their reason. Exit status:
0, 1 when there is any other difference, 77 when LLVM 19 is not installed.
"""

import argparse
import bisect
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

SYMBOLIZER = "llvm-symbolizer-19"
GSYMUTIL = "llvm-gsymutil-19"
NOTHING_TO_COMPARE = 77
SHOWN = 10


def must(*command, text=""):
    done = subprocess.run(command, input=text, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def with_debug_data(program):
    """The program, or its debug file; None without either."""
    if re.search(r"\.debug_info ", must("readelf", "-SW", program)):
        return program
    found = re.search(r"Build ID: (\w+)", must("readelf", "-nW", program))
    if not found:
        return None
    path = f"/usr/lib/debug/.build-id/{found[1][:2]}/{found[1][2:]}.debug"
    return path if os.path.exists(path) else None


def code_addresses(program, count, seed):
    """Uniform over the bytes of all sections with code."""
    sections = [section for section in sections_of(program)
                if "X" in section.flags]
    chooser = random.Random(seed)
    chosen = chooser.choices(sections, [section.size for section in sections],
                             k=count)
    return [section.start + chooser.randrange(section.size)
            for section in chosen]


Section = collections.namedtuple("Section", "start size flags")


def sections_of(program):
    return [Section(int(start, 16), int(size, 16), flags)
            for start, size, flags in re.findall(
                r"\w+BITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) \w+ +(\w*A\w*)",
                must("readelf", "-SW", program))]


class UnsizedSymbols:
    """Where llvm-symbolizer lets a symbol without a size reach too far."""

    def __init__(self, program):
        self.sections = sections_of(program)
        self.symbols = sorted(
            (int(start, 16), int(size, 0), kind)
            for start, size, kind in re.findall(
                r": ([0-9a-f]+) +(\w+) (FUNC|NOTYPE|OBJECT|IFUNC) +\w+ +\w+"
                r" +\d+ ", must("readelf", "-sW", program)))

    def section(self, address):
        return next((section for section in self.sections if
                     0 <= address - section.start < section.size), None)

    def last(self, address):
        """The last symbol before it, if that has no size; else None."""
        at = bisect.bisect_right(self.symbols, (address, 1 << 64)) - 1
        if at < 0 or self.symbols[at][1] != 0:
            return None
        return self.symbols[at]

    def is_label(self, address):
        last = self.last(address)
        return last is not None and last[2] == "NOTYPE"

    def reaches(self, address):
        """True if that is of another section."""
        last = self.last(address)
        return last is not None and self.section(
            last[0]) != self.section(address)


def lines_of(addresses):
    return "".join(f"{address:#x}\n" for address in addresses)


def symbolized(command, addresses):
    """Per address a list of frames (name, path, line), in LLVM's style."""
    answers = []
    text = must(*command, text=lines_of(addresses))
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        frames = []
        for name, place in zip(lines[::2], lines[1::2]):
            path, line, _ = place.rsplit(":", 2)
            frames.append((name, path, int(line)))
        answers.append(frames)
    return answers


def of_gsymutil(gsym, addresses):
    """The same of llvm-gsymutil's text."""
    text = must(GSYMUTIL, "--addresses-from-stdin",
                text="".join(f"{a:#x} {gsym}\n" for a in addresses))
    answers = []
    for block in text.rstrip("\n").split("\n\n"):
        if "error:" in block:
            answers.append([("??", "??", 0)])
            continue
        frames = []
        for line in block.split("\n"):
            match = re.fullmatch(r"(.*?)(?: \+ \d+)?(?: @ (.*):(\d+))?"
                                 r"(?: \[inlined\])?", line[20:])
            frames.append((match[1], match[2] or "??", int(match[3] or 0)))
        answers.append(frames)
    return answers


def same_but_name(theirs, ours):
    """True if only the outermost function has another name."""
    *theirs, (_, path, line) = theirs
    place = ("??", 0) if line == 0 and "/" not in path else (path, line)
    return ours[0][0] != "??" and ours == theirs + [(ours[-1][0],) + place]


def unscoped(frames):
    """The frames without the scopes of names that are no linkage names."""
    return [(name if name.startswith("_Z") else
             re.sub(r"^.*::(?=[^:])", "", name), path, line)
            for name, path, line in frames]


def explain(address, theirs, ours, unsized):
    """The documented reason for a difference, or None."""
    if unscoped(ours) == theirs:
        return "scopes of a function without a linkage name"
    ours = unscoped(ours)
    if len(ours) == 1 and ours[0][0].endswith("@plt"):
        return "linkage stub"
    if ours == [("??", "??", 0)]:
        if theirs[0][2] == 0 and unsized.reaches(address):
            return "symbol without a size, of another section"
        if len(theirs) == 1 and unsized.is_label(address):
            return "code behind a label, which is no function's"
    if unsized.is_label(address) and same_but_name(theirs, ours):
        return "label within a function"
    if ours == [("??", "??", 0)] and theirs[0][0] == "??":
        return "line of code that no function and no symbol has"
    if (len(theirs) == 1 and theirs[0][2] == 0 and "/" not in theirs[0][1] and
            ours == [(theirs[0][0], "??", 0)]):
        return "source file of the symbol table, without a line"
    return None


class Comparison:
    """Counts what is the same, what is explained, and what is not."""

    def __init__(self, title):
        self.title = title
        self.same = 0
        self.different = 0
        self.explained = collections.Counter()

    def add(self, address, theirs, ours, reason=None):
        if theirs == ours:
            self.same += 1
        elif reason:
            self.explained[reason] += 1
        else:
            self.different += 1
            if self.different <= SHOWN:
                print(f"    {address:#x}\n      LLVM: {theirs}\n"
                      f"      ksym: {ours}")

    def finish(self):
        """True when nothing is unexplained."""
        print(f"  {self.title}: {self.same} the same, "
              f"{sum(self.explained.values())} explained, "
              f"{self.different} different")
        for reason, count in sorted(self.explained.items()):
            print(f"    {count}: {reason}")
        return self.different == 0


class Tools:
    """The programs of the build directory."""

    def __init__(self, build):
        self.generator = os.path.join(build, "gen", "gen_gsym")
        self.symbolizer = os.path.join(build, "daemon",
                                       "ksym-symbolize")

    def symbolize_gsym(self, gsym, addresses):
        return symbolized([self.symbolizer, "--no-demangle", "--gsym", gsym],
                          addresses)


def compare_debug_data(tools, program, gsym, addresses):
    comparison = Comparison(f"our file, {SYMBOLIZER} on the program")
    expected = symbolized([SYMBOLIZER, "--no-demangle", "--inlines", "-e",
                           program], addresses)
    found = tools.symbolize_gsym(gsym, addresses)
    unsized = UnsizedSymbols(program)
    assert len(expected) == len(found) == len(addresses)
    for address, theirs, ours in zip(addresses, expected, found):
        comparison.add(address, theirs, ours,
                       explain(address, theirs, ours, unsized))
    return comparison.finish()


def compare_readers(tools, title, gsym, addresses):
    comparison = Comparison(title)
    expected = of_gsymutil(gsym, addresses)
    found = tools.symbolize_gsym(gsym, addresses)
    assert len(expected) == len(found) == len(addresses)
    for address, theirs, ours in zip(addresses, expected, found):
        comparison.add(address, theirs, ours)
    return comparison.finish()


def compare_program(tools, given, arguments):
    """True when nothing is unexplained, or nothing can be compared."""
    program = with_debug_data(given)
    if program is None:
        print(f"{given}: left out, it has no debug data")
        return True
    addresses = code_addresses(program, arguments.count, arguments.seed)
    print(f"{given}, {len(addresses)} addresses", flush=True)
    with tempfile.TemporaryDirectory(prefix="ksym-truth-") as directory:
        ours = os.path.join(directory, "ours.gsym")
        must(tools.generator, "--quiet", "-o", ours, program)
        fine = [compare_debug_data(tools, program, ours, addresses),
                compare_readers(tools, f"our file, read by us and {GSYMUTIL}",
                                ours, addresses)]
        for threads in (1, 2):
            theirs = os.path.join(directory, f"theirs{threads}.gsym")
            must(GSYMUTIL, "--quiet", f"--num-threads={threads}", "--convert",
                 program, "-o", theirs)
            fine.append(compare_readers(
                tools, f"its file of {threads} threads, read by both", theirs,
                addresses))
    return all(fine)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, metavar="DIRECTORY")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    arguments = parser.parse_args()
    if not shutil.which(SYMBOLIZER) or not shutil.which(GSYMUTIL):
        print("skipped: LLVM 19's symbolizer and gsymutil are not installed")
        return NOTHING_TO_COMPARE
    tools = Tools(os.path.abspath(arguments.build))
    fine = [compare_program(tools, program, arguments)
            for program in arguments.programs]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
