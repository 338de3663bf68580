# SPDX-License-Identifier: Apache-2.0
"""Tests of excerpts: programs of several units in each form of debug data. What
is converted for a few addresses answers as the conversion of all does.

Run by ctest, which sets the paths.
"""

import glob
import os
import re
import shutil
import unittest

from gsym_harness import EXCERPT_CHECK, Directory, SAMPLE, must

# Functions that several units have, so that the linker drops copies of them.
SHARED = """
void Fail(const char* text) __attribute__((noreturn, cold));
template <typename T>
struct List {
  T values[16];
  int size = 0;
  __attribute__((noinline)) void Add(T value) {
    if (size == 16) Fail("full");
    values[size++] = value;
  }
  T Last() const { return size == 0 ? T() : values[size - 1]; }
};
"""
# One with a symbol in its middle, and a cold part.
OTHER = """
#include "shared.h"
static int values[64];
__attribute__((noinline)) int Check(int value) {
  if (value > 63) Fail(value > 99 ? "large" : "too large");
  return values[value];
}
int Sum(int count) {
  List<int> list;
  for (int i = 0; i < count; ++i) list.Add(Check(i) * 3);
  asm("middle_of_sum: .globl middle_of_sum");
  List<char> texts;
  texts.Add('x');
  return list.Last() + texts.Last();
}
"""
ANOTHER = """
#include "shared.h"
volatile int failures;
void Fail(const char* text) {
  for (;;) failures = *text;
}
int Count(int value) {
  struct Local { static int Twice(int n) { return n * 2; } };
  List<char> texts;
  List<long> numbers;
  texts.Add('y');
  for (int i = 0; i < value; ++i) numbers.Add(Local::Twice(i) % 7);
  return [](int n) { return n / 3; }(texts.Last() + (int)numbers.Last());
}
"""
# Code that has lines and no function.
BY_HAND = """
int in_cc(int value) { return value * 3; }
asm(".pushsection .text\\n"
    ".file 2 \\"/source/by_hand.s\\"\\n"
    ".globl by_hand\\n"
    ".type by_hand, @function\\n"
    "by_hand:\\n"
    ".loc 2 7\\n"
    "nop\\nnop\\n"
    ".loc 2 8\\n"
    "ret\\n"
    ".size by_hand, .-by_hand\\n"
    ".popsection\\n");
"""
DATA = "struct Pair { int a; int b; };\nextern const Pair kPair{1, 2};\n"
ASSEMBLY = """
.text
.globl assembled
.type assembled, @function
assembled:
  mov %rdi, %rax
  ret
.size assembled, .-assembled
.globl without_size
without_size:
  nop
  ret
"""
SOURCES = {"other.cc": OTHER, "another.cc": ANOTHER, "data.cc": DATA,
           "assembly.s": ASSEMBLY}
FILES = dict(SOURCES, **{"shared.h": SHARED, "by_hand.cc": BY_HAND})


class Excerpts(Directory):
    def setUp(self):
        super().setUp()
        for name in ("gsym_sample.cc", "gsym_sample.h"):
            shutil.copy(os.path.join(SAMPLE, name), self.directory)
        for name, text in FILES.items():
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)

    def build(self, *flags, compiler="g++"):
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        program = self.path("program")
        # clang takes no numbers for files in assembly.
        must("g++", "-O2", "-g", "-gno-column-info", "-c", "by_hand.cc",
             cwd=self.directory)
        objects = ["by_hand.o"]
        for name in ("gsym_sample.cc", *SOURCES):
            objects.append(name + ".o")
            must(compiler, "-O2", "-g", *flags, "-c", name, "-o", objects[-1],
                 cwd=self.directory)
        linking = [flag for flag in flags if flag.startswith(("-Wl", "-fl"))]
        must(compiler, "-O2", "-g", *linking, *objects, "-o", program,
             cwd=self.directory)
        return program

    def compare(self, program):
        text = must(EXCERPT_CHECK, program)
        compared, differences = map(int, re.findall(r"\d+", text))
        self.assertEqual(differences, 0)
        self.assertGreater(compared, 200)

    def test_forms(self):
        for compiler, *flags in (
                ("g++", "-gdwarf-5"), ("g++", "-gdwarf-4"),
                ("g++", "-gdwarf-2", "-gstrict-dwarf"), ("g++", "-g1"),
                ("g++", "-gdwarf-5", "-gdwarf64"),
                ("g++", "-gdwarf-4", "-fdebug-types-section"),
                ("g++", "-fdebug-types-section"),
                ("g++", "-Wl,--compress-debug-sections=zlib-gnu"),
                ("g++", "-Wl,--compress-debug-sections=zlib"),
                ("g++", "-ffunction-sections", "-Wl,--gc-sections"),
                ("g++", "-flto"), ("g++", "-flto", "-flto-partition=max"),
                ("clang++-19", "-gdwarf-5"), ("clang++-19", "-gdwarf-4"),
                ("clang++-19", "-gline-tables-only"),
                ("clang++-19", "-fbasic-block-sections=all"),
                ("clang++-19", "-gdwarf-4", "-fbasic-block-sections=all")):
            with self.subTest(compiler=compiler, flags=flags):
                self.compare(self.build(*flags, compiler=compiler))

    # With their .dwo files, with a package of them, and with neither.
    def test_split_units(self):
        tool = shutil.which("llvm-dwp-19")
        for compiler, *flags in (("g++", "-gdwarf-5"), ("g++", "-gdwarf-4"),
                                 ("clang++-19", "-gdwarf-5"),
                                 ("clang++-19", "-gdwarf-5",
                                  "-fdebug-types-section")):
            with self.subTest(compiler=compiler, flags=flags):
                program = self.build("-gsplit-dwarf", *flags,
                                     compiler=compiler)
                self.compare(program)
                if tool is not None:
                    must(tool, "-e", program, "-o", program + ".dwp",
                         cwd=self.directory)
                for name in glob.glob(self.path("*.dwo")):
                    os.remove(name)
                if tool is not None:
                    self.compare(program)
                    os.remove(program + ".dwp")
                self.compare(program)

    def test_shared_debug_data(self):
        if shutil.which("dwz") is None:
            self.skipTest("dwz is not installed")
        for flags in ([], ["-gdwarf-4"]):
            with self.subTest(flags=flags):
                program = self.build(*flags)
                must("dwz", program)
                self.compare(program)
                program = self.build(*flags)
                shutil.copy(program, self.path("other"))
                must("dwz", "-m", self.path("common"), "-M",
                     self.path("common"), program, self.path("other"))
                self.compare(program)

    # The symbols and debug data of a stripped file are in another one.
    def test_stripped(self):
        program = self.build()
        debug = program + ".debug"
        must("objcopy", "--only-keep-debug", program, debug)
        must("strip", program)
        must("objcopy", f"--add-gnu-debuglink={debug}", program)
        self.compare(program)

    # Without symbols nothing but units says where functions begin.
    def test_without_symbols(self):
        program = self.build()
        must("objcopy", "--strip-all", "--keep-section=.debug*", program)
        text = must(EXCERPT_CHECK, program)
        self.assertRegex(text, r"^\d+ answers, 0 differences\n$")

    # A program with hundreds of units, as it was built for this test.
    def test_itself(self):
        self.assertRegex(must(EXCERPT_CHECK, EXCERPT_CHECK),
                         r"^\d+ answers, 0 differences\n$")


if __name__ == "__main__":
    # Verbose: the reason for a test that is skipped is printed.
    unittest.main(verbosity=2)
