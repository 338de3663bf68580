# SPDX-License-Identifier: Apache-2.0
"""Tests of ksym-symbolize: its output, its sources and its errors.

Run by ctest, which sets the paths.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

TOOL = os.environ["KSYM_SYMBOLIZE"]
WORKLOAD = os.environ["KSYM_WORKLOAD"]
FIXTURES = os.environ["KSYM_ELF_FIXTURES"].split(",")
PLAIN = FIXTURES[0]
# The version whose output is the reference; older ones differ.
LLVM = shutil.which("llvm-symbolizer-19")


def run(*arguments, text="", tool=TOOL):
    return subprocess.run([tool, *arguments], input=text, capture_output=True,
                          text=True, timeout=60, check=False)


def output(*arguments, text=""):
    done = run(*arguments, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read(path):
    with open(path, "rb") as file:
        return file.read()


def symbols(path):
    """Name -> address of the file's own symbols."""
    listing = subprocess.run(["nm", path], capture_output=True, text=True,
                             timeout=60, check=True).stdout
    found = re.findall(r"^([0-9a-f]+) [TtWwi] (\S+)$", listing, re.MULTILINE)
    return {name: int(address, 16) for address, name in found}


def code_addresses(path):
    """All addresses of the executable sections."""
    text = subprocess.run(["readelf", "-SW", path], capture_output=True,
                          text=True, timeout=60, check=True).stdout
    found = re.findall(r"PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) .. +AX ",
                       text)
    return [int(start, 16) + i for start, size in found
            for i in range(int(size, 16))]


def names(tool, path, addresses):
    """What a symbolizer calls each address; "" for nothing."""
    style = ["--json"] if tool == TOOL else ["--output-style=JSON"]
    text = "".join(f"{address:#x}\n" for address in addresses)
    done = run(*style, "-e", path, text=text, tool=tool)
    return [json.loads(line)["Symbol"][0]["FunctionName"]
            for line in done.stdout.splitlines()]


class Style(unittest.TestCase):
    def setUp(self):
        self.address = symbols(PLAIN)["fixture_global"]

    # Each answer is function, line and an empty line, from arguments and from
    # the input, with or without 0x, in either case.
    def test_llvm_style(self):
        known = "fixture_global\n??:0:0\n\n"
        unknown = "??\n??:0:0\n\n"
        self.assertEqual(output("-e", PLAIN, f"{self.address:#x}", "1"),
                         known + unknown)
        lines = (f"{self.address:x}\n 0X{self.address:X}\t\n"
                 f"1\n\nfixture_global\n{self.address:#x}")
        self.assertEqual(output("-e", PLAIN, text=lines),
                         2 * known + 3 * unknown + known)

    # The same bytes as llvm-symbolizer, which calls a line of the file "0".
    @unittest.skipIf(LLVM is None, "needs llvm-symbolizer-19")
    def test_equals_llvm_symbolizer(self):
        lines = f"{self.address:#x}\n0x1\n{self.address + 1:#x}\n"
        self.assertEqual(output("-e", PLAIN, text=lines),
                         run("-e", PLAIN, text=lines, tool=LLVM).stdout)
        for arguments in (["-e", PLAIN, f"{self.address:#x}"],
                          ["-e", WORKLOAD, "--no-demangle", "0x1"]):
            theirs = json.loads(run("--output-style=JSON", *arguments,
                                    tool=LLVM).stdout)
            ours = json.loads(output("--json", *arguments))
            for answer in ours:
                answer.pop("reason", None)
            self.assertEqual(ours, theirs)

    # JSON of arguments is one array, of the input one object per line; what
    # has no name says why.
    def test_json(self):
        answers = json.loads(output("--json", "-e", PLAIN,
                                    f"{self.address + 1:#x}", "1"))
        self.assertEqual([a["Address"] for a in answers],
                         [f"{self.address + 1:#x}", "0x1"])
        self.assertEqual(answers[0]["Symbol"][0]["FunctionName"],
                         "fixture_global")
        self.assertEqual(answers[0]["Symbol"][0]["StartAddress"],
                         f"{self.address:#x}")
        self.assertNotIn("reason", answers[0])
        lines = output("--json", "-e", PLAIN,
                       text="1\nx\nffffffffffffffff\n").splitlines()
        self.assertEqual([json.loads(line)["reason"] for line in lines],
                         ["no-symbol", "no-address", "unmapped"])

    # Names are as in the source unless that is switched off.
    def test_demangling(self):
        mangled = "_ZN8workload5TwiceEi"
        address = f"{symbols(WORKLOAD)[mangled]:#x}"
        self.assertIn("workload::Twice(int)\n",
                      output("-e", WORKLOAD, address))
        self.assertIn(mangled + "\n",
                      output("--no-demangle", "-e", WORKLOAD, address))

    # A program that asks gets its answer before it asks again.
    def test_answers_at_once(self):
        with subprocess.Popen([TOOL, "-e", PLAIN], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            for _ in range(3):
                process.stdin.write(f"{self.address:#x}\n")
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), "fixture_global\n")
                process.stdout.readline()
                process.stdout.readline()
            process.stdin.close()
            self.assertEqual(process.wait(timeout=10), 0)


class Files(unittest.TestCase):
    # Every byte of code has the name that llvm-symbolizer gives it, but for
    # what it does not do, which is listed here.
    @unittest.skipIf(LLVM is None, "needs llvm-symbolizer-19")
    def test_equals_llvm_symbolizer(self):
        for path in FIXTURES:
            addresses = code_addresses(path)
            self.assertGreater(len(addresses), 100)
            differences = {
                (ours, theirs) for ours, theirs in
                zip(names(TOOL, path, addresses), names(LLVM, path, addresses))
                if ours != theirs and not self.is_known(ours, theirs)}
            self.assertEqual(differences, set(), path)

    @staticmethod
    def is_known(ours, theirs):
        return (
            # It does not know linkage stubs,
            ours.endswith("@plt")
            # takes labels for functions,
            or theirs.startswith(("$x", ".L"))
            # goes on behind the end of a section,
            or (ours, theirs) == ("", "_init")
            # forgets an outer symbol behind an inner one,
            or (ours, theirs) == ("fixture_outer", "")
            # and prefers another alias.
            or (ours, theirs) == ("fixture_alias", "__fixture_alias"))

    # A Go program without .symtab is named by its own table.
    def test_stripped_go_program(self):
        table = os.path.join(os.environ["KSYM_GOPCLNTAB_DIR"], "go1_20")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "go")
            self.write_elf(path, read(table))
            self.assertEqual(names(TOOL, path, [0x400fff, 0x401000, 0x401050]),
                             ["", "main.init", "main.(*T).String"])

    @staticmethod
    def write_elf(path, table):
        """An ELF file whose code is at 0x401000, and .gopclntab."""
        section_names = b"\0.text\0.gopclntab\0.shstrtab\0"
        at = 0x1100
        names_at = at + len(table)
        headers_at = names_at + len(section_names)
        file = struct.pack("<4s5B7xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 0,
                           2, 62, 1, 0x401000, 64, headers_at, 0, 64, 56, 1,
                           64, 4, 3)
        file += struct.pack("<IIQQQQQQ", 1, 5, 0x1000, 0x401000, 0x401000,
                            0x100, 0x100, 0x1000)
        file += b"\xcc" * (at - len(file)) + table + section_names
        for section in ((0,) * 10,
                        (1, 1, 6, 0x401000, 0x1000, 0x100, 0, 0, 1, 0),
                        (7, 1, 2, 0x402000, at, len(table), 0, 0, 1, 0),
                        (18, 3, 0, 0, names_at, len(section_names), 0, 0, 1,
                         0)):
            file += struct.pack("<IIQQQQIIQQ", *section)
        with open(path, "wb") as out:
            out.write(file)

    # A name that would talk to the terminal is printed as text, in both
    # styles.
    def test_hostile_names(self):
        data = read(PLAIN)
        self.assertIn(b"\0fixture_global\0", data)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "x\x1b\n.so")
            with open(path, "wb") as out:
                out.write(data.replace(b"\0fixture_global\0",
                                       b"\0\x1b[2J\n\"\\\xff\x9b_bal\0\0"))
            address = f"{symbols(PLAIN)['fixture_global']:#x}"
            self.assertEqual(output("-e", path, address).splitlines()[0],
                             '?[2J?"\\??_bal')
            answer = json.loads(output("--json", "-e", path, address))[0]
            self.assertEqual(answer["Symbol"][0]["FunctionName"],
                             '?[2J?"\\??_bal')
            self.assertTrue(answer["ModuleName"].endswith("x??.so"))


class Processes(unittest.TestCase):
    def setUp(self):
        self.process = subprocess.Popen(
            [WORKLOAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        self.address = self.process.stdout.readline().strip()

    def tearDown(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=10)

    # Run-time addresses of a live process are named, in its own file and in
    # memory that has none.
    def test_names_run_time_addresses(self):
        pid = str(self.process.pid)
        self.assertEqual(output("-p", pid, self.address, "1"),
                         "workload::Twice(int)\n??:0:0\n\n??\n??:0:0\n\n")
        answer = json.loads(output("--json", "-p", pid, self.address, "1"))
        self.assertEqual(answer[0]["ModuleName"], os.path.realpath(WORKLOAD))
        self.assertEqual(int(answer[0]["Symbol"][0]["StartAddress"], 16),
                         int(self.address, 16))
        self.assertEqual(answer[1]["reason"], "unmapped")

    # What the process maps later is found when it is asked for, and when the
    # process is gone its names are not, unless they were read before.
    def test_follows_the_process(self):
        with subprocess.Popen([TOOL, "--json", "-p", str(self.process.pid)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as tool:
            def ask(address):
                tool.stdin.write(address + "\n")
                tool.stdin.flush()
                answer = json.loads(tool.stdout.readline())
                return (answer["Symbol"][0]["FunctionName"]
                        or answer["reason"])

            self.assertEqual(ask(self.address), "workload::Twice(int)")
            self.process.stdin.write(PLAIN + "\n")
            self.process.stdin.flush()
            loaded = self.process.stdout.readline().strip()
            self.assertEqual(ask(loaded), "fixture_global")
            self.process.kill()
            self.process.wait(timeout=10)
            self.assertEqual(ask(loaded), "fixture_global")
            self.assertEqual(ask("1"), "no-process")

    # A process that is not there is one line and status 1.
    def test_missing_process(self):
        self.process.kill()
        self.process.wait(timeout=10)
        done = run("-p", str(self.process.pid), "1")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr,
                         r"^ksym-symbolize: there is no process \d+\n$")


class Kernel(unittest.TestCase):
    # A kernel address is named, and says which module it is in.
    def test_names_kernel_addresses(self):
        with open("/proc/kallsyms", encoding="ascii") as listing:
            line = next((line for line in listing
                         if line.endswith(" T vfs_read\n")), "0 ")
        if set(line.split()[0]) == {"0"}:
            self.skipTest("the kernel hides its addresses")
        address = int(line.split()[0], 16)
        self.assertEqual(output("-k", f"{address + 1:x}"),
                         "vfs_read\n??:0:0\n\n")
        answer = json.loads(output("-k", "--json", f"{address:x}", "1"))
        self.assertEqual(answer[0]["ModuleName"], "[kernel]")
        self.assertEqual(answer[1]["reason"], "no-symbol")


class Errors(unittest.TestCase):
    # What cannot be opened is one line and status 1, also when its name has
    # two.
    def test_runtime_failures(self):
        for path, why in (("/nonexistent\n", "No such file"),
                          ("/dev/null", "not a regular file"),
                          ("/", "not a regular file"),
                          (__file__, "not an ELF file")):
            done = run("-e", path, "1")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(why, done.stderr)
            self.assertRegex(done.stderr, r"^ksym-symbolize: .*\n$")

    # Output that goes nowhere is a failure.
    def test_unwritable_output(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([TOOL, "-e", PLAIN, "1"], stdout=full,
                                  stderr=subprocess.PIPE, timeout=60,
                                  check=False)
        self.assertEqual(done.returncode, 1)

    # One source is asked for, of a kind that there is, with addresses that
    # are some; else it is one line and status 2.
    def test_usage(self):
        for arguments in ([], ["1"], ["-e", PLAIN, "-k"], ["-p", "0", "1"],
                          ["-p", "x"], ["-e"], ["--what"],
                          ["-e", PLAIN, "fixture_global"],
                          ["-e", PLAIN, "1\n", "1"],
                          ["-e", PLAIN, "0x"],
                          ["-e", PLAIN, "10000000000000000"]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""),
                             arguments)
            self.assertRegex(done.stderr, r"^ksym-symbolize: .*\n$")

    def test_help_and_version(self):
        self.assertIn("--no-demangle", output("--help"))
        self.assertRegex(output("--version"), r"^ksym-symbolize \d")


if __name__ == "__main__":
    unittest.main()
