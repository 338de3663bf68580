# SPDX-License-Identifier: Apache-2.0
"""What the tests of gen_gsym share: the sample compiled in a directory of its own,
and what LLVM's tools say of a program and of a GSYM file.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

GEN = os.environ["GEN_GSYM"]
EXCERPT_CHECK = os.environ["EXCERPT_CHECK"]
SAMPLE = os.environ["GSYM_SAMPLE"]
# The versions whose output is the reference.
SYMBOLIZER = shutil.which("llvm-symbolizer-19")
GSYMUTIL = shutil.which("llvm-gsymutil-19")


def run(*arguments, text="", cwd=None):
    return subprocess.run(arguments, input=text, capture_output=True,
                          text=True, timeout=120, check=False, cwd=cwd)


def must(*arguments, text="", cwd=None):
    done = run(*arguments, text=text, cwd=cwd)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def text_addresses(path, step=1):
    listing = must("readelf", "-SW", path)
    found = re.findall(r" \.text\S* +PROGBITS +([0-9a-f]+) [0-9a-f]+ "
                       r"([0-9a-f]+)", listing)
    return [int(start, 16) + i for start, size in found
            for i in range(0, int(size, 16), step)]


def symbolizer_frames(path, addresses):
    """Per address the frames (name, file, line); [] where there is no name."""
    text = must(SYMBOLIZER, "--no-demangle", "--inlines", "-e", path,
                text="".join(f"{a:#x}\n" for a in addresses))
    answers = []
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        frames = []
        for name, place in zip(lines[::2], lines[1::2]):
            file, line, _ = place.rsplit(":", 2)
            frames.append((name, file, int(line)))
        # For what has no line either, the file that its symbol is from.
        if re.fullmatch(r"[^/]+\.cc? 0", "%s %d" % frames[0][1:]):
            frames = [(frames[0][0], "??", 0)]
        answers.append([] if frames[0][0] == "??" else frames)
    return answers


def gsymutil_text(gsym, addresses):
    return must(GSYMUTIL, "--addresses-from-stdin",
                text="".join(f"{a:#x} {gsym}\n" for a in addresses))


def gsymutil_frames(gsym, addresses):
    answers = []
    for block in gsymutil_text(gsym, addresses).strip("\n").split("\n\n"):
        if "error:" in block:
            answers.append([])
            continue
        frames = []
        for line in block.split("\n"):
            match = re.fullmatch(r"(.*?)(?: \+ \d+)?(?: @ (.*):(\d+))?"
                                 r"(?: \[inlined\])?", line[20:])
            # It puts a slash behind any directory, also behind the root.
            path = re.sub("^//", "/", match[2] or "??")
            frames.append((match[1], path, int(match[3] or 0)))
        answers.append(frames)
    return answers


def unscoped(frames):
    """The frames without the scopes of functions without a linkage name, which
    llvm-symbolizer leaves out."""
    return [(name if name.startswith("_Z") else name.split("::")[-1], *place)
            for name, *place in frames]


class Directory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def compile(self, *flags, compiler="g++"):
        """The sample as a program; sources are found relative to a directory."""
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        for name in ("gsym_sample.cc", "gsym_sample.h"):
            shutil.copy(os.path.join(SAMPLE, name), self.directory)
        program = self.path("program")
        must(compiler, "-std=c++17", "-O2", "-g", *flags, "gsym_sample.cc",
             "-o", program, cwd=self.directory)
        return program

    def convert(self, program, *options):
        gsym = self.path("program.gsym")
        done = run(GEN, *options, "-o", gsym, program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return gsym

    def check(self, program, symbolized=None):
        """Each byte of the program's code has the frames that llvm-symbolizer
        gives it, in the program or in one that is like it."""
        if SYMBOLIZER is None or GSYMUTIL is None:
            self.skipTest("llvm-19 is not installed")
        gsym = self.convert(program)
        self.assertIn(" 0 differences",
                      must(GEN, "--verify", gsym, program))
        # Nor do a few addresses, with what they need converted only.
        self.assertIn(" 0 differences", must(EXCERPT_CHECK, program))
        addresses = text_addresses(program)
        expected = symbolizer_frames(symbolized or program, addresses)
        found = gsymutil_frames(gsym, addresses)
        self.assertEqual(len(expected), len(found))
        deepest = 0
        for address, theirs, ours in zip(addresses, expected, found):
            self.assertEqual(unscoped(ours), theirs, hex(address))
            deepest = max(deepest, len(ours))
        self.assertGreaterEqual(deepest, 3)
