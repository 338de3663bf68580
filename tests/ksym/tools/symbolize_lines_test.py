# SPDX-License-Identifier: Apache-2.0
"""Tests of ksym-symbolize with source lines and inlined calls: its text in all
styles is llvm-symbolizer's, byte for byte, but for what GSYM cannot say.

Run by ctest, which sets the paths.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

TOOL = os.environ["KSYM_SYMBOLIZE"]
GEN = os.environ["GEN_GSYM"]
SAMPLE = os.environ["GSYM_SAMPLE"]
# The version whose output is the reference; older ones differ.
LLVM = shutil.which("llvm-symbolizer-19")
STYLES = ("LLVM", "GNU", "JSON")

# Code that no entry of DWARF describes: it has lines only. The assembler of
# binutils describes functions, so this one is made within a C++ unit.
ASSEMBLY = """
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


def run(*arguments, text="", cwd=None):
    return subprocess.run(arguments, input=text, capture_output=True,
                          text=True, timeout=120, check=False, cwd=cwd)


def must(*arguments, text="", cwd=None):
    done = run(*arguments, text=text, cwd=cwd)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def without_what_gsym_lacks(text):
    """llvm-symbolizer's output less discriminators, where functions begin in
    their source, where inlined ones begin in the code, and the source file of
    symbols without lines; in binutils' notation of split parts."""
    text = re.sub(r" \(discriminator \d+\)", "", text)
    text = re.sub(r'"Discriminator":\d+', '"Discriminator":0', text)
    text = re.sub(r'"StartFileName":"[^"]*","StartLine":\d+',
                  '"StartFileName":"","StartLine":0', text)
    text = re.sub(r'"StartAddress":"[^"]*"(?=[^\]\n]*"StartAddress")',
                  '"StartAddress":""', text)
    text = re.sub(r"^[^/\n]+\.cc?:0", "??:0", text, flags=re.MULTILINE)
    text = re.sub(r'"FileName":"[^"/]+"', '"FileName":""', text)
    return text.replace(" (.cold)", " [clone .cold]")


def without_scopes(text):
    """Our output less the scopes of inlined functions without a linkage name,
    which llvm-symbolizer leaves out. The name of another one ends with its
    parameters, or is mangled."""
    return re.sub(r'(^|"FunctionName":")[^/"\n]*::(\w+)(?="|$)', r"\1\2", text,
                  flags=re.MULTILINE)


class Lines(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        for name in ("gsym_sample.cc", "gsym_sample.h"):
            shutil.copy(os.path.join(SAMPLE, name), self.directory)
        with open(self.path("assembly.cc"), "w", encoding="utf-8") as file:
            file.write(ASSEMBLY)
        self.program = self.path("program")
        # GSYM has no columns.
        must("g++", "-std=c++17", "-O2", "-g", "-gno-column-info",
             "gsym_sample.cc", "assembly.cc", "-o", self.program,
             cwd=self.directory)
        # Those of symbols; the padding behind a function is none of it.
        symbols = must("nm", "-S", self.program)
        self.addresses = "".join(
            f"{int(start, 16) + i:#x}\n" for start, size in
            re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tT]", symbols, re.MULTILINE)
            for i in range(int(size, 16)))

    def path(self, name):
        return os.path.join(self.directory, name)

    def ours(self, *options):
        """Without the reasons, which are our own."""
        text = must(TOOL, *options, text=self.addresses)
        return re.sub(r',"reason":"[^"]*"', "", text)

    def test_as_llvm_symbolizer(self):
        if LLVM is None:
            self.skipTest("llvm-symbolizer-19 is not installed")
        gsym = self.path("program.gsym")
        must(GEN, "-q", "-o", gsym, self.program)
        for style in STYLES:
            for options in ([], ["--no-demangle"]):
                with self.subTest(style=style, options=options):
                    options = ["--output-style=" + style, *options]
                    theirs = without_what_gsym_lacks(must(
                        LLVM, "--inlines", *options, "-e", self.program,
                        text=self.addresses))
                    named = self.ours(*options, "-e", self.program, "--inlines")
                    self.assertEqual(without_scopes(named), theirs)
                    named = self.ours(*options, "--gsym", gsym)
                    named = without_scopes(named.replace(gsym, self.program))
                    self.assertEqual(named, theirs)

    def test_inlined_calls(self):
        answers = [json.loads(line) for line in must(
            TOOL, "--output-style", "JSON", "-e", self.program, "-i",
            text=self.addresses).splitlines()]
        chains = [[frame["FunctionName"] for frame in answer["Symbol"]]
                  for answer in answers]
        self.assertIn(["Scale(int)", "(anonymous namespace)::Box<int>::Get",
                       "(anonymous namespace)::Middle", "Outer(int)"], chains)
        for answer in answers:
            for frame in answer["Symbol"][:-1]:
                self.assertGreater(frame["Line"], 0)
                self.assertIn("/gsym_sample.", frame["FileName"])

    # A symbol of which DWARF knows lines only has them.
    def test_lines_without_a_function(self):
        address = must("nm", self.program)
        address = re.search(r"([0-9a-f]+) T by_hand", address)[1]
        text = must(TOOL, "--output-style=GNU", "-e", self.program, "-i",
                    address)
        self.assertEqual(text, "by_hand\n/source/by_hand.s:7\n")

    # Whoever asks for one address and waits has the same answers as whoever
    # asks for all at once: at first of what was converted for each, and then of
    # the whole conversion.
    def test_one_at_a_time(self):
        for options in ([], ["--output-style=JSON"]):
            expected = self.ours("-e", self.program, "-i", *options)
            end = "\n" if options else "\n\n"
            found = ""
            with subprocess.Popen(
                    [TOOL, "-e", self.program, "-i", *options], text=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                for address in self.addresses.splitlines():
                    process.stdin.write(address + "\n")
                    process.stdin.flush()
                    answer = process.stdout.readline()
                    while not answer.endswith(end):
                        answer += process.stdout.readline()
                    found += answer
                process.stdin.close()
            found = re.sub(r',"reason":"[^"]*"', "", found)
            self.assertEqual(found, expected)

    # The same for some at once, as arguments and in lines of the input.
    def test_some_at_a_time(self):
        addresses = self.addresses.split()
        for count in (1, 2, 10, 100):
            chosen = addresses[::len(addresses) // count][:count]
            expected = "".join(must(TOOL, "-e", self.program, "-i", address)
                               for address in chosen)
            self.assertEqual(must(TOOL, "-e", self.program, "-i", *chosen),
                             expected)
            self.assertEqual(must(TOOL, "-e", self.program, "-i",
                                  text="\n".join(chosen)), expected)

    # The debug data are mapped.
    def test_file_that_becomes_shorter(self):
        first, *_, last = self.addresses.split()
        with subprocess.Popen(
                [TOOL, "-e", self.program, "-i", "--output-style=JSON"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True) as process:
            process.stdin.write(first + "\n")
            process.stdin.flush()
            self.assertIn('"Symbol"', process.stdout.readline())
            os.truncate(self.program, 4096)
            output, errors = process.communicate(last + "\n", timeout=60)
        self.assertEqual((process.returncode, output), (1, ""))
        self.assertEqual(errors, "ksym-symbolize: a file became shorter while "
                                 "it was being read\n")

    # Without debug data there are still the symbols.
    def test_without_debug_data(self):
        must("strip", "-g", self.program)
        address = must("nm", self.program)
        address = re.search(r"([0-9a-f]+) T plain_c", address)[1]
        self.assertEqual(must(TOOL, "-i", "-e", self.program, address),
                         "plain_c\n??:0:0\n\n")

    def test_errors(self):
        gsym = self.path("program.gsym")
        must(GEN, "-q", "-o", gsym, self.program)
        for arguments in (["--gsym", gsym, "--inlines"],
                          ["--gsym", gsym, "-e", self.program],
                          ["-k", "--inlines"],
                          ["--output-style=XML", "--gsym", gsym],
                          ["--output-style=GNU", "--json", "--gsym", gsym]):
            self.assertEqual(run(TOOL, *arguments).returncode, 2, arguments)
        # A file that is cut off is refused, and so is another format.
        with open(gsym, "rb") as file:
            data = file.read()
        for bad in (data[:len(data) // 2], data[:20], b"", b"\x7fELF" * 99):
            with open(gsym, "wb") as file:
                file.write(bad)
            done = run(TOOL, "--gsym", gsym, "0x1000")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("program.gsym: ", done.stderr)


if __name__ == "__main__":
    # Verbose: the reason for a test that is skipped is printed.
    unittest.main(verbosity=2)
