# SPDX-License-Identifier: Apache-2.0
"""Tests of gen_gsym as a program: the same sample in every form of debug data,
against llvm-symbolizer, and files exchanged with llvm-gsymutil.

Run by ctest, which sets the paths.
"""

import os
import re
import shutil
import unittest

from gsym_harness import (Directory, GEN, GSYMUTIL, SYMBOLIZER, gsymutil_frames,
                          must, run, symbolizer_frames, text_addresses,
                          unscoped)


class Forms(Directory):
    """Each form of debug data says the same as llvm-symbolizer does."""

    def test_dwarf_versions(self):
        for compiler in ("g++", "clang++-19"):
            for version in (2, 3, 4, 5):
                with self.subTest(compiler=compiler, version=version):
                    self.check(self.compile(f"-gdwarf-{version}",
                                            compiler=compiler))

    def test_dwarf64(self):
        self.check(self.compile("-gdwarf-5", "-gdwarf64"))

    # As distributions build: the compilation's own directory is relative.
    def test_relative_directory(self):
        for version in (4, 5):
            with self.subTest(version=version):
                self.check(self.compile(
                    f"-gdwarf-{version}",
                    f"-ffile-prefix-map={self.directory}=./directory"))

    def test_compressed(self):
        self.check(self.compile("-gz"))

    def test_separate_sections(self):
        self.check(self.compile("-ffunction-sections", "-Wl,--gc-sections"))

    def test_link_time_optimization(self):
        self.check(self.compile("-flto"))

    def test_split_units(self):
        for compiler in ("g++", "clang++-19"):
            for version in (4, 5):
                with self.subTest(compiler=compiler, version=version):
                    self.check(self.compile("-gsplit-dwarf",
                                            f"-gdwarf-{version}",
                                            compiler=compiler))

    # The units of a package are those of the files it was made of.
    def test_package(self):
        tool = shutil.which("llvm-dwp-19")
        if tool is None:
            self.skipTest("llvm-dwp-19 is not installed")
        for version in (4, 5):
            with self.subTest(version=version):
                program = self.compile("-gsplit-dwarf", f"-gdwarf-{version}")
                must(tool, "-e", program, "-o", program + ".dwp",
                     cwd=self.directory)
                for name in os.listdir(self.directory):
                    if name.endswith(".dwo"):
                        os.remove(self.path(name))
                self.check(program)

    # Names that dwz moved to a file that several programs share.
    def test_shared_debug_data(self):
        if shutil.which("dwz") is None:
            self.skipTest("dwz is not installed")
        program = self.compile("-gdwarf-4")
        plain = self.path("plain")
        other = self.path("other")
        shutil.copy(program, plain)
        shutil.copy(program, other)
        must("dwz", "-m", self.path("common"), "-M", self.path("common"),
             program, other)
        self.assertIn(".gnu_debugaltlink", must("readelf", "-SW", program))
        self.check(program, plain)

    # An object file has no addresses, but each of its functions says what the
    # program that is linked of it does.
    def test_relocatable(self):
        for compiler, *flags in (("g++", "-gdwarf-5"), ("g++", "-gdwarf-4"),
                                 ("g++", "-gz"), ("clang++-19",)):
            with self.subTest(compiler=compiler, flags=flags):
                self.check_relocatable(compiler, flags)

    def check_relocatable(self, compiler, flags):
        if SYMBOLIZER is None or GSYMUTIL is None:
            self.skipTest("llvm-19 is not installed")
        linked = self.compile("-c", "-ffunction-sections", *flags,
                              compiler=compiler)
        compiled = self.path("sample.o")
        os.rename(linked, compiled)
        must(compiler, compiled, "-o", linked)
        gsym = self.convert(compiled)
        self.assertIn(" 0 differences",
                      must(GEN, "--verify", gsym, compiled))
        starts = {name: int(start, 16) for start, name in re.findall(
            r"^(0x[0-9a-f]+)-0x[0-9a-f]+ (\S+)$", must(GEN, "--dump", gsym),
            re.MULTILINE)}
        addresses = []
        ours = []
        for start, size, name in re.findall(
                r": ([0-9a-f]+) +(\d+) FUNC .* (\S+)$",
                must("readelf", "-sW", linked), re.MULTILINE):
            if name not in starts:
                continue
            for i in range(int(size)):
                addresses.append(int(start, 16) + i)
                ours.append(starts[name] + i)
        expected = symbolizer_frames(linked, addresses)
        found = [unscoped(frames) for frames in gsymutil_frames(gsym, ours)]
        self.assertEqual(found, expected)
        self.assertGreaterEqual(max(map(len, expected)), 3)

    # Objects of other machines have relocations of other kinds and sizes. The
    # first section with code begins at address 0 for llvm-symbolizer as well.
    def test_relocatable_of_other_machines(self):
        for machine in ("aarch64", "i386"):
            for version in (4, 5):
                with self.subTest(machine=machine, version=version):
                    self.check(self.compile(
                        "-c", f"--target={machine}-linux-gnu",
                        f"-gdwarf-{version}", compiler="clang++-19"))

    def test_separate_debug_file(self):
        program = self.compile()
        plain = self.path("plain")
        shutil.copy(program, plain)
        must("objcopy", "--only-keep-debug", program, program + ".debug")
        must("strip", program)
        must("objcopy", f"--add-gnu-debuglink={program}.debug", program)
        self.check(program, plain)


# llvm-gsymutil verifies only the file that it has just written. With this
# library it reads another one in its place.
REDIRECT = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int Open(const char* name, const char* path, int flags, int mode) {
  int (*open_next)(const char*, int, ...) = dlsym(RTLD_NEXT, name);
  if ((flags & O_ACCMODE) == O_RDONLY && !strcmp(path, getenv("WRITTEN"))) {
    path = getenv("READ_INSTEAD");
  }
  return open_next(path, flags, mode);
}
#define OPEN(name)                          \\
  int name(const char* path, int flags, ...) { \\
    va_list rest;                           \\
    va_start(rest, flags);                  \\
    const int mode = va_arg(rest, int);     \\
    va_end(rest);                           \\
    return Open(#name, path, flags, mode);  \\
  }
OPEN(open)
OPEN(open64)
"""


class Exchange(Directory):
    """llvm-gsymutil reads our files as we do, and we read its."""

    def setUp(self):
        super().setUp()
        if GSYMUTIL is None:
            self.skipTest("llvm-gsymutil-19 is not installed")
        self.program = self.compile()
        self.addresses = text_addresses(self.program)

    def test_it_reads_ours(self):
        gsym = self.convert(self.program)
        self.assertIn("main", must(GSYMUTIL, gsym))
        frames = gsymutil_frames(gsym, self.addresses)
        self.assertTrue(any(len(chain) > 2 for chain in frames))

    def verify_ours(self, program):
        """What llvm-gsymutil --verify says of our file: a list of errors."""
        with open(self.path("redirect.c"), "w", encoding="utf-8") as file:
            file.write(REDIRECT)
        must("gcc", "-shared", "-fPIC", "redirect.c", "-o", "redirect.so",
             "-ldl", cwd=self.directory)
        written = self.path("written.gsym")
        text = must("env", f"LD_PRELOAD={self.path('redirect.so')}",
                    f"WRITTEN={written}",
                    f"READ_INSTEAD={self.convert(program)}", GSYMUTIL,
                    "--convert", program, "-o", written, "--verify")
        self.assertIn("Verifying GSYM file", text)
        return re.findall("^error: .*", text, re.MULTILINE)

    # It compares each byte of code with the DWARF. A part that gcc split off
    # and a function that it did not give a linkage name have their symbols'
    # names, and DWARF has others; inlined functions have their scopes, which
    # it knows when it converts only. There is nothing else.
    def test_it_verifies_ours(self):
        listing = must("nm", self.program)
        for error in self.verify_ours(self.program):
            found = re.fullmatch(
                r"error: address 0x\w+ DWARF function \"(.+)\" doesn't match "
                r"GSYM function \"(.+)\"", error)
            self.assertIsNotNone(found, error)
            if found[2].endswith("::" + found[1]):
                continue
            self.assertRegex(listing, rf"(?m) [tTwW] {re.escape(found[2])}$")
            self.assertIn(found[1], found[2])
        self.assertEqual(
            self.verify_ours(self.compile(compiler="clang++-19")), [])

    # It must see another file: one whose lines are one too far.
    def test_it_verifies_what_it_reads(self):
        program = self.path("other")
        shutil.copy(self.program, program)
        with open(self.path("gsym_sample.cc"), encoding="utf-8") as file:
            source = file.read()
        with open(self.path("gsym_sample.cc"), "w", encoding="utf-8") as file:
            file.write("\n" + source)
        must("g++", "-std=c++17", "-O2", "-g", "gsym_sample.cc", "-o",
             self.program, cwd=self.directory)
        gsym = self.convert(self.program)
        shutil.move(gsym, self.path("moved.gsym"))
        self.convert = lambda _: self.path("moved.gsym")
        self.assertRegex("\n".join(self.verify_ours(program)), "line")

    # Its file of one thread and of two, against the debug data.
    def test_we_read_its(self):
        for threads in (1, 2):
            gsym = self.path("theirs.gsym")
            must(GSYMUTIL, "--quiet", f"--num-threads={threads}", "--convert",
                 self.program, "-o", gsym)
            self.assertIn("\nfunctions ", must(GEN, "--stats", gsym))
            self.assertIn(" main\n", must(GEN, "--dump", gsym))

    def test_header_fields(self):
        gsym = self.convert(self.program)
        theirs = self.path("theirs.gsym")
        must(GSYMUTIL, "--quiet", "--convert", self.program, "-o", theirs)
        with open(gsym, "rb") as ours, open(theirs, "rb") as other:
            # Magic, version and uuid; sizes and counts may differ.
            a, b = ours.read(48), other.read(48)
        self.assertEqual((a[:6], a[7], a[28:]), (b[:6], b[7], b[28:]))


BREAKPAD = """\
MODULE Linux x86_64 04030201060508070910111213141516A server
FILE 3 /src/server.cc
FILE 7 /src/util.h
INLINE_ORIGIN 0 Scale(int)
FUNC 1000 40 0 Outer(int)
INLINE 0 42 3 0 1010 10
1000 10 41 3
1010 10 5 7
1020 20 43 3
PUBLIC 2000 0 plain_c
STACK CFI INIT 1000 40 .cfa: $rsp 8 + .ra: .cfa -8 + ^
"""


class Breakpad(Directory):
    """Symbol files of Breakpad are told by their content."""

    def test_conversion(self):
        symbols = self.path("server.sym")
        with open(symbols, "w", encoding="utf-8") as file:
            file.write(BREAKPAD)
        gsym = self.convert(symbols)
        self.assertIn(" 0 differences", must(GEN, "--verify", gsym, symbols))
        self.assertIn("uuid 01020304050607080910111213141516\n",
                      must(GEN, "--stats", gsym))
        if GSYMUTIL is not None:
            self.assertEqual(gsymutil_frames(gsym, [0x1000, 0x1018, 0x2000]), [
                [("Outer(int)", "/src/server.cc", 41)],
                [("Scale(int)", "/src/util.h", 5),
                 ("Outer(int)", "/src/server.cc", 42)],
                [("plain_c", "??", 0)]])

    # What is malformed is told with its place, and the rest is taken.
    def test_malformed_lines(self):
        symbols = self.path("server.sym")
        with open(symbols, "w", encoding="utf-8") as file:
            file.write(BREAKPAD + "FUNC 30\n")
        done = run(GEN, symbols)
        self.assertEqual(done.returncode, 0)
        self.assertIn("1 malformed lines", done.stderr)
        self.assertIn("line 12: 'FUNC 30'", done.stderr)


class Program(Directory):
    def test_options(self):
        program = self.compile()
        whole = self.convert(program)
        with open(whole, "rb") as file:
            expected = file.read()
        # The result does not depend on the number of threads.
        threads = self.convert(program, "--threads", "3")
        with open(threads, "rb") as file:
            self.assertEqual(file.read(), expected)
        self.assertIn("  inlined ", must(GEN, "--dump", whole))
        self.assertNotIn("  inlined ", must(
            GEN, "--dump", self.convert(program, "--no-inlines")))
        self.assertNotRegex(must(
            GEN, "--dump", self.convert(program, "--no-lines")),
            r"\n  0x[0-9a-f]+ /")
        second = self.convert(program, "--format-version", "2")
        self.assertIn("version 2\n", must(GEN, "--stats", second))
        self.assertIn(" 0 differences",
                      must(GEN, "--verify", second, program))
        must(GEN, "--quiet", program)
        self.assertTrue(os.path.exists(program + ".gsym"))

    # A difference is found, shown, and is the exit status.
    def test_verify_finds_differences(self):
        program = self.compile()
        gsym = self.convert(program)
        with open(gsym, "rb") as file:
            data = file.read()
        self.assertIn(b"_Z5Outeri", data)
        with open(gsym, "wb") as file:
            file.write(data.replace(b"_Z5Outeri", b"_Z5Innerj"))
        done = run(GEN, "--verify", gsym, program)
        self.assertEqual(done.returncode, 1)
        self.assertIn("_Z5Innerj", done.stdout)

    def test_errors(self):
        self.assertEqual(run(GEN).returncode, 2)
        self.assertEqual(run(GEN, "--what", "f").returncode, 2)
        self.assertEqual(run(GEN, "--threads", "0", "f").returncode, 2)
        missing = run(GEN, self.path("nothing"))
        self.assertEqual(missing.returncode, 1)
        self.assertIn("nothing", missing.stderr)
        text = self.path("text")
        with open(text, "w", encoding="utf-8") as file:
            file.write("hello\n")
        for options in ([text], ["--dump", text], ["--stats", text]):
            done = run(GEN, *options)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"text: .*not ")
        self.assertFalse(os.path.exists(text + ".gsym"))
        program = self.compile()
        gsym = self.convert(program)
        must("strip", program)
        stripped = run(GEN, program)
        self.assertEqual(stripped.returncode, 1)
        self.assertIn("no .debug_info section, and no symbol", stripped.stderr)
        other = self.compile("-O1")
        wrong = run(GEN, "--verify", gsym, other)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("build-ids differ", wrong.stderr)


if __name__ == "__main__":
    # Verbose: the reason for a test that is skipped is printed.
    unittest.main(verbosity=2)
