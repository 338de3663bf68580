# SPDX-License-Identifier: Apache-2.0
"""Tests of gen_gsym with debug data of which a part is missing, or that is laid
out as few compilers do it.

Run by ctest, which sets the paths.
"""

import os
import re
import shutil
import struct
import unittest

from gsym_harness import (Directory, GEN, GSYMUTIL, SYMBOLIZER, gsymutil_frames,
                          must, run, symbolizer_frames, text_addresses)

SCOPES = """\
#define INLINE inline __attribute__((always_inline))
static INLINE int Opaque(int x) { asm volatile("nop" : "+r"(x)); return x; }
namespace outer {
namespace {
struct Local {
  static INLINE int Hidden(int x) { return Opaque(x) * 3; }
};
}
namespace inner {
static INLINE int Quiet(int x) { return Local::Hidden(Opaque(x)) + 1; }
}
}
__attribute__((used)) int Keep(int c) {
  struct InFunction {
    static INLINE int Of(int x) { return Opaque(x) * 5; }
  };
  auto lambda = [&](int y) __attribute__((always_inline)) {
    return Opaque(y) + c;
  };
  return outer::inner::Quiet(c) + InFunction::Of(c) + lambda(c);
}
"""

SECOND = """\
#include "gsym_sample.h"
namespace second {
__attribute__((noinline)) int First(int x) { return Scale(x) * 3; }
__attribute__((noinline)) int Another(int x) { return Scale(x) ^ First(x); }
}
"""


def section(path, name):
    """Where a section is in its file: offset and size."""
    found = re.search(r" " + re.escape(name) + r" +PROGBITS +[0-9a-f]+ "
                      r"([0-9a-f]+) ([0-9a-f]+)", must("readelf", "-SW", path))
    return int(found[1], 16), int(found[2], 16)


FILES_WITHOUT_BYTES = 40 << 20


def uleb128(number):
    data = bytearray()
    while number >= 0x80:
        data.append(0x80 | number & 0x7f)
        number >>= 7
    return bytes(data + bytes([number]))


def patch(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


class MissingParts(Directory):
    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def remove_split_files(self):
        for name in os.listdir(self.directory):
            if name.endswith(".dwo"):
                os.remove(self.path(name))

    def convert_with_losses(self, program):
        """The file that is made, and what is said of it."""
        gsym = self.path("program.gsym")
        done = run(GEN, "-o", gsym, program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return gsym, done.stderr

    # A header may say of millions of directories and files that they take no
    # bytes in it.
    def test_files_without_bytes(self):
        for which in ("directories", "files"):
            with self.subTest(which):
                program = self.compile("-gdwarf-5")
                count = uleb128(FILES_WITHOUT_BYTES)
                lists = (b"\0" + count + b"\0\0" if which == "directories"
                         else b"\0\0\0" + count)
                header = (bytes([1, 1, 1, 0xfb, 14, 1]) + lists)
                table = (struct.pack("<HBBI", 5, 8, 0, len(header)) + header +
                         bytes(FILES_WITHOUT_BYTES))
                with open(self.path("lines"), "wb") as file:
                    file.write(struct.pack("<I", len(table)) + table)
                must("objcopy", "--update-section",
                     ".debug_line=" + self.path("lines"), program)
                # It is refused: the functions are there, and little memory
                # was needed.
                gsym = self.path("program.gsym")
                process = os.posix_spawn(GEN, [GEN, "-q", "-o", gsym, program],
                                         os.environ)
                _, status, usage = os.wait4(process, 0)
                self.assertEqual(status, 0)
                self.assertLess(usage.ru_maxrss, 512 << 10)

    # The lines are in the program itself; its functions are known by symbols.
    def test_split_files_that_are_gone(self):
        if SYMBOLIZER is None or GSYMUTIL is None:
            self.skipTest("llvm-19 is not installed")
        for compiler in ("g++", "clang++-19"):
            for version in (4, 5):
                with self.subTest(compiler=compiler, version=version):
                    program = self.compile("-gsplit-dwarf",
                                           f"-gdwarf-{version}",
                                           compiler=compiler)
                    self.remove_split_files()
                    gsym, losses = self.convert_with_losses(program)
                    self.assertIn("1 files with debug data", losses)
                    self.check_lines(program, gsym)

    def check_lines(self, program, gsym):
        addresses = text_addresses(program)
        expected = symbolizer_frames(program, addresses)
        with_lines = 0
        for address, theirs, ours in zip(addresses, expected,
                                         gsymutil_frames(gsym, addresses)):
            self.assertEqual(ours, theirs, hex(address))
            with_lines += len(ours) > 0 and ours[0][2] > 0
        self.assertGreater(with_lines, 100)

    # A unit that a package's index lacks has no part in the package's tables:
    # with those of another unit it would get that one's names.
    def test_unit_that_a_package_lacks(self):
        tool = shutil.which("llvm-dwp-19")
        if tool is None or GSYMUTIL is None:
            self.skipTest("llvm-19 is not installed")
        self.write("second.cc", SECOND)
        for version in (4, 5):
            with self.subTest(version=version):
                program = self.compile("second.cc", "-gsplit-dwarf",
                                       f"-gdwarf-{version}")
                package = program + ".dwp"
                must(tool, "-e", program, "-o", package, cwd=self.directory)
                self.remove_split_files()
                self.forget_units(package)
                gsym, losses = self.convert_with_losses(program)
                self.assertIn("2 files with debug data", losses)
                os.remove(package)
                without, _ = self.convert_with_losses(program)
                with open(gsym, "rb") as one, open(without, "rb") as other:
                    self.assertEqual(one.read(), other.read())
                text = must(GEN, "--dump", gsym)
                self.assertNotIn("inlined", text)
                self.assertRegex(text, r"_ZN6second5FirstEi\n(  .*\n)*  .*/second.cc:3")

    def forget_units(self, package):
        """Empties the table of the index that says which row a unit has."""
        offset, _ = section(package, ".debug_cu_index")
        with open(package, "rb") as file:
            file.seek(offset)
            _, _, units, slots = struct.unpack("<IIII", file.read(16))
        self.assertEqual(units, 2)
        patch(package, offset + 16 + 8 * slots, bytes(4 * slots))


class Names(Directory):
    # Compilers leave linkage names out where the linker has no use for them:
    # such a function has the scopes that it is in.
    def test_scopes(self):
        with open(self.path("scopes.cc"), "w", encoding="utf-8") as file:
            file.write(SCOPES)
        for version in (2, 4, 5):
            with self.subTest(version=version):
                program = self.compile("scopes.cc", f"-gdwarf-{version}")
                gsym = self.convert(program)
                self.assertIn(" 0 differences",
                              must(GEN, "--verify", gsym, program))
                names = set(re.findall(r" inlined (.*) at .*/scopes.cc",
                                       must(GEN, "--dump", gsym)))
                self.assertEqual(names, {
                    "Opaque", "outer::(anonymous namespace)::Local::Hidden",
                    "outer::inner::Quiet", "Keep::InFunction::Of",
                    "Keep::operator()"})

    # A function of another unit, as link-time optimization inlines them.
    def test_scopes_in_other_units(self):
        with open(self.path("scopes.cc"), "w", encoding="utf-8") as file:
            file.write(SCOPES)
        program = self.compile("scopes.cc", "-flto")
        text = must(GEN, "--dump", self.convert(program))
        self.assertIn(" inlined outer::inner::Quiet at ", text)

    # Stubs have the names that profiles give them.
    def test_stubs(self):
        program = self.compile("-Wl,-z,lazy", "-fcf-protection=none")
        listing = must("objdump", "-d", "-j", ".plt", program)
        stubs = re.findall(r"^0*([0-9a-f]+) <(\w+@plt)>:", listing,
                           re.MULTILINE)
        self.assertGreaterEqual(len(stubs), 2)
        gsym = self.convert(program)
        for address, name in stubs:
            self.assertIn(f"\n{int(address, 16):#x}-"
                          f"{int(address, 16) + 16:#x} {name}\n",
                          must(GEN, "--dump", gsym))
        # Those of a file whose debug data are elsewhere, too.
        must("objcopy", "--only-keep-debug", program, program + ".debug")
        must("strip", program)
        must("objcopy", f"--add-gnu-debuglink={program}.debug", program)
        text = must(GEN, "--dump", self.convert(program))
        for _, name in stubs:
            self.assertIn(f" {name}\n", text)

    # Each part that a compiler puts into a section of its own has its symbol.
    def test_parts_of_functions(self):
        program = self.compile("-fbasic-block-sections=all",
                               compiler="clang++-19")
        self.assertIn(".__part.1", must("nm", program))
        self.check(program)


class Forms(Directory):
    # A source file in the root directory has a path like any other.
    def test_sources_in_the_root_directory(self):
        # gcc's assembler does not know of the option in version 5.
        for compiler, version in (("g++", 4), ("clang++-19", 4),
                                  ("clang++-19", 5)):
            with self.subTest(compiler=compiler, version=version):
                program = self.compile(f"-gdwarf-{version}",
                                       f"-ffile-prefix-map={self.directory}=/",
                                       compiler=compiler)
                self.assertIn(" /gsym_sample.cc:",
                              must(GEN, "--dump", self.convert(program)))
                self.check(program)

    # Sections as binutils compressed them before ELF had a flag for it.
    def test_old_compression(self):
        program = self.compile()
        plain = self.path("plain")
        shutil.copy(program, plain)
        must("objcopy", "--compress-debug-sections=zlib-gnu", program)
        self.assertIn(" .zdebug_info ", must("readelf", "-SW", program))
        self.check(program, plain)

    # What was cut off is an error, and so is a size that cannot be.
    def test_old_compression_is_checked(self):
        program = self.compile()
        must("objcopy", "--compress-debug-sections=zlib-gnu", program)
        offset, _ = section(program, ".zdebug_info")
        for damage in (b"ZLIX", b"ZLIB" + b"\xff" * 8):
            patch(program, offset, damage)
            done = run(GEN, program)
            self.assertIn(".zdebug_info", done.stderr)


if __name__ == "__main__":
    # Verbose: the reason for a test that is skipped is printed.
    unittest.main(verbosity=2)
