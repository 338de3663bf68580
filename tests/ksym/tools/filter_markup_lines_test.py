# SPDX-License-Identifier: Apache-2.0
"""ksym-symbolize --filter-markup on files with debug data.

Class BesideLlvm makes one program in each way that debug data come in, asks
for every byte of its code and wants llvm-symbolizer's output, byte for byte;
without llvm-symbolizer-19 it is skipped. KSYM_MARKUP_LOGS=10000 makes more
logs at random, KSYM_MARKUP_SEED others.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

KSYM = os.environ["KSYM_SYMBOLIZE"]
GEN = os.environ["GEN_GSYM"]
SAMPLE = os.environ["GSYM_SAMPLE"]
LLVM = shutil.which("llvm-symbolizer-19")
SEED = int(os.environ.get("KSYM_MARKUP_SEED", "8"))
LOGS = int(os.environ.get("KSYM_MARKUP_LOGS", "1000"))

# build-id -> how the sample is compiled, and what is done with it then.
BUILDS = {
    "a1": (["gcc", "-O2", "-gdwarf-5"], []),
    "a2": (["gcc", "-O2", "-gdwarf-4"], []),
    "a3": (["gcc", "-O2", "-gdwarf-3", "-gstrict-dwarf"], []),
    "a4": (["gcc", "-O3", "-gdwarf-5", "-ffunction-sections"],
           ["objcopy", "--compress-debug-sections=zlib"]),
    "a5": (["gcc", "-O2", "-g"], ["objcopy", "--only-keep-debug"]),
    # Names by debug data alone.
    "a6": (["gcc", "-O2", "-g"], ["strip", "-w", "-N", "*"]),
    "a7": (["gcc", "-O2", "-g1"], []),
    "a8": (["gcc", "-O2", "-gdwarf-5", "-gsplit-dwarf"], []),
    "a9": (["gcc", "-O2", "-gdwarf-4", "-gsplit-dwarf"], []),
}
if shutil.which("clang"):
    BUILDS["b1"] = (["clang", "-O2", "-gdwarf-5"], [])
    BUILDS["b2"] = (["clang", "-O2", "-gdwarf-4", "-gline-tables-only"], [])

directory = None
CODE = {}    # build-id -> (start, end) of the sample's functions
MORE = """#include "gsym_sample.h"
namespace app { template <typename T> struct Holder {
  T value; __attribute__((noinline)) T Twice() { return Scale(value) * 2; }
}; }
long UseHolder(int value) {
  app::Holder<long> holder = {value};
  const auto both = [&](int other) { return holder.Twice() + Scale(other); };
  return Scale(value) + both(value + 1);
}
"""


def tool(*command, cwd=None):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          text=True, cwd=cwd).stdout


def make(build_id, command, then):
    program = os.path.join(directory, build_id)
    tool(*command, "-fno-pie", "-no-pie", "-x", "c++", "-I", SAMPLE,
         f"-Wl,--build-id=0x{build_id}cdef", "-o", program, "gsym_sample.cc",
         "more.cc", "-x", "none", "-lstdc++", cwd=directory)
    code = []
    for line in tool("nm", "-S", "--defined-only", program).splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "tTW":
            code.append((int(fields[0], 16), int(fields[1], 16)))
    CODE[build_id] = sorted({(start, start + size) for start, size in code})
    if then:
        tool(*then, program)
    target = os.path.join(directory, ".build-id", build_id)
    os.makedirs(target)
    shutil.copy(program, os.path.join(target, "cdef.debug"))


def setUpModule():
    global directory
    directory = tempfile.mkdtemp(prefix="ksym-markup-lines-")
    unittest.addModuleCleanup(shutil.rmtree, directory)
    shutil.copy(os.path.join(SAMPLE, "gsym_sample.cc"), directory)
    with open(os.path.join(directory, "more.cc"), "w", encoding="ascii") as file:
        file.write(MORE)
    for build_id, (command, then) in BUILDS.items():
        make(build_id, command, then)


def run(program, log, *arguments):
    arguments = ["--filter-markup", f"--debug-file-directory={directory}",
                 *arguments]
    done = subprocess.run([program, *arguments], input=log.encode(),
                          check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, (program, done)
    return done.stdout, done.stderr


def context(build_id, module=0, bias=0):
    return (f"{{{{{{module:{module}:{build_id}.so:elf:{build_id}cdef}}}}}}\n"
            f"{{{{{{mmap:{0x400000 + bias:#x}:0x10000:load:{module}:rx:"
            f"0x400000}}}}}}\n")


def every_byte(build_id):
    lines = [context(build_id)]
    for start, end in CODE[build_id]:
        for address in range(start, end):
            lines.append(f"{address:x} {{{{{{pc:{address:#x}}}}}}} "
                         f"{{{{{{pc:{address + 1:#x}:ra}}}}}} "
                         f"{{{{{{data:{address:#x}}}}}}}\n"
                         f"{{{{{{bt:7:{address:#x}:pc}}}}}}\n"
                         f"a {{{{{{bt:12:{address + 1:#x}}}}}}} b\n")
    return "".join(lines)


@unittest.skipUnless(LLVM, "llvm-symbolizer-19 is not installed")
class BesideLlvm(unittest.TestCase):
    """Both programs print the same bytes."""
    maxDiff = 2000

    def same(self, log, *arguments):
        expected, expected_report = run(LLVM, log, *arguments)
        got, report = run(KSYM, log, *arguments)
        if got != expected:
            for ours, theirs in zip(got.splitlines(), expected.splitlines()):
                self.assertEqual(ours, theirs)
        self.assertEqual(got, expected)
        self.assertEqual(report, expected_report)
        return expected.decode()

    def test_every_byte(self):
        """Functions, inlined calls, files, lines and columns of all builds."""
        for build_id in BUILDS:
            with self.subTest(build=BUILDS[build_id]):
                out = self.same(every_byte(build_id), "--no-demangle",
                                "--color=never")
                if build_id not in ("a7", "b2"):
                    self.assertRegex(out, r"#7\.1 .*gsym_sample.h:\d+:")

    def test_demangled(self):
        """Names of C++ as the source has them."""
        log = every_byte("a1")
        expected = run(LLVM, log)[0].decode()
        got = run(KSYM, log)[0].decode()
        # The one difference: binutils' spelling of parts that gcc split off.
        self.assertIn(" [clone .cold]", got)
        self.assertEqual(re.sub(r" \[clone (\.[\w.]+)\]", r" (\1)", got), expected)
        self.assertIn("app::Holder<long>::Twice()", got)

    def test_line_ends(self):
        """Inlined frames end as the log's lines do."""
        log = every_byte("a1").replace("\n", "\r\n")
        out = self.same(log, "--no-demangle", "--color=always")
        self.assertRegex(out, r"#\S*7\S*\.\S*1.*\r\n")

    def test_generated(self):
        """Logs made at random: modules of all builds, mapped anywhere."""
        rng = random.Random(SEED)
        logs = [self.make_log(rng) for _ in range(LOGS)]
        self.same("{{{reset}}}\n=====\n".join(logs), "--no-demangle",
                  "--color=always")

    @staticmethod
    def make_log(rng):
        lines = []
        modules = []
        for module in range(rng.randint(1, 3)):
            build_id = rng.choice(sorted(BUILDS))
            bias = module * 0x100000 + rng.choice([0, 0x7f0000000000])
            modules.append((build_id, bias))
            lines.append(context(build_id, module, bias))
        for _ in range(rng.randint(1, 8)):
            build_id, bias = rng.choice(modules)
            address = rng.randrange(*rng.choice(CODE[build_id])) + bias
            kind = rng.choice(["", ":ra", ":pc"])
            if kind != ":pc":
                address += 1
            color = rng.choice(["", "", "\033[1m", "\033[34m", "\033[31m"])
            element = rng.choice([f"bt:{rng.randint(0, 99)}:{address:#x}{kind}",
                                  f"pc:{address:#x}{kind or ':ra'}"])
            lines.append(f"{color}x {{{{{{{element}}}}}}} y"
                         + rng.choice(["\n", "\r\n"]))
        return "".join(lines)


class Alone(unittest.TestCase):
    """What LLVM's filter does not do."""

    def test_gsym_directory(self):
        """A GSYM file answers, without any other."""
        gsym = os.path.join(directory, "gsym")
        os.makedirs(gsym, exist_ok=True)
        tool(GEN, "-o", os.path.join(gsym, "a1cdef.gsym"),
             os.path.join(directory, "a1"))
        log = every_byte("a1")
        arguments = ["--filter-markup", "--debug-file-directory=/nonexistent",
                     f"--gsym-directory={gsym}", "--no-demangle"]
        done = subprocess.run([KSYM, *arguments], input=log.encode(),
                              check=True, capture_output=True)
        # DWARF's answer, but for the columns, which GSYM does not have, and the
        # scopes of functions without a linkage name, which it does.
        expected = run(KSYM, log, "--no-demangle")[0]
        found = re.sub(rb"(0x[0-9a-f]+ )[^/_][^/]*::(\S+ /)", rb"\1\2",
                       done.stdout)
        without = [re.sub(rb"(:\d+):\d+ \(", rb"\1:0 (", text)
                   for text in (expected, found)]
        frames = [[line for line in text.splitlines() if b"#7" in line]
                  for text in without]
        self.assertGreater(len(frames[0]), 100)
        self.assertEqual(frames[1], frames[0])
        self.assertEqual(done.stderr, b"")

    def test_wrong_gsym(self):
        """A GSYM file of another program names nothing, and is reported."""
        gsym = os.path.join(directory, "wrong")
        os.makedirs(gsym, exist_ok=True)
        tool(GEN, "-o", os.path.join(gsym, "a2cdef.gsym"),
             os.path.join(directory, "a1"))
        start = CODE["a2"][0][0]
        out, report = run(KSYM, context("a2") + f"{{{{{{pc:{start:#x}}}}}}}\n",
                          f"--gsym-directory={gsym}")
        self.assertIn(f"[[[pc:{start:#x}]]]".encode(), out)
        self.assertIn(b"has build-id a1cdef", report)

    def test_damaged_debug_data(self):
        """Debug data that cannot be read are reported; symbols still answer."""
        target = os.path.join(directory, ".build-id", "c1")
        os.makedirs(target)
        path = os.path.join(directory, "c1")
        tool("gcc", "-O1", "-g", "-fno-pie", "-no-pie", "-x", "c++", "-I",
             SAMPLE, "-Wl,--build-id=0xc1cdef", "-o", path, "gsym_sample.cc",
             "more.cc", "-x", "none", "-lstdc++", cwd=directory)
        with open(os.path.join(directory, "junk"), "wb") as file:
            file.write(b"\xff" * 4096)
        tool("objcopy", "--update-section",
             f".debug_abbrev={os.path.join(directory, 'junk')}", path,
             os.path.join(target, "cdef.debug"))
        start = next(int(line.split()[0], 16)
                     for line in tool("nm", path).splitlines()
                     if line.endswith(" T main"))
        out, report = run(KSYM, context("c1") + f"{{{{{{pc:{start:#x}}}}}}}\n")
        self.assertIn(b"main[", out)
        self.assertIn(b"debug data are not used: .debug_", report)


if __name__ == "__main__":
    if LLVM is None:
        print("llvm-symbolizer-19 is not installed (package llvm-19)",
              file=sys.stderr)
    unittest.main()
