# SPDX-License-Identifier: Apache-2.0
"""ksym-symbolize --filter-markup beside llvm-symbolizer, byte for byte.

Each test of class BesideLlvm gives one log to both programs and wants the
same output and the same reports; without llvm-symbolizer-19 they are skipped.
The others test what LLVM's filter does not have.
"""

import os
import pty
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

KSYM = os.environ["KSYM_SYMBOLIZE"]
LLVM = shutil.which("llvm-symbolizer-19")
SEED = int(os.environ.get("KSYM_MARKUP_SEED", "8"))
LOGS = int(os.environ.get("KSYM_MARKUP_LOGS", "10000"))
HERE = os.path.dirname(os.path.abspath(__file__))

FULL = "00112233445566778899aabbccddeeff00112233"
STRIPPED = "abcdef"
MISSING = "1234567890"

directory = None   # with .build-id below it
SYMBOLS = {}    # name -> (address, size) of the fixture's own
PLACES = []     # (address, size, end of section) of all its symbols, sorted


def tool(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def install(path, build_id):
    target = os.path.join(directory, ".build-id", build_id[:2])
    os.makedirs(target, exist_ok=True)
    shutil.copy(path, os.path.join(target, build_id[2:] + ".debug"))


def read_symbols(program):
    ends = {}
    for match in re.finditer(r"\[ *(\d+)\] \.\S+ +\w+ +(\w+) \w+ (\w+)",
                             tool("readelf", "-SW", program)):
        ends[match.group(1)] = (int(match.group(2), 16) +
                                int(match.group(3), 16))
    table = tool("readelf", "-sW", program).split("'.symtab'")[1]
    for line in table.splitlines():
        fields = line.split()
        if len(fields) != 8 or fields[6] not in ends:
            continue
        address, size, name = int(fields[1], 16), int(fields[2]), fields[7]
        PLACES.append((address, size, ends[fields[6]]))
        if re.search(r"[a-z]Function|_values?$|^main$", name):
            SYMBOLS[name] = (address, size)
    PLACES.sort()


def llvm_is_right(address):
    """Whether no symbol of another section answers, which LLVM lets happen."""
    below = [p for p in PLACES if p[0] <= address]
    return below and all(address < end or size > 0 for start, size, end in below
                         if start == below[-1][0])


def setUpModule():
    global directory
    directory = tempfile.mkdtemp(prefix="ksym-markup-")
    unittest.addModuleCleanup(shutil.rmtree, directory)
    program = os.path.join(directory, "fixture")
    flags = ["-O1", "-g0", "-fno-pie", "-no-pie", "-fno-sanitize=all",
             "-rdynamic", "-o", program,
             os.path.join(HERE, "markup_fixture.c")]
    tool("gcc", f"-Wl,--build-id=0x{FULL}", *flags)
    install(program, FULL)
    read_symbols(program)
    tool("gcc", "-s", f"-Wl,--build-id=0x{STRIPPED}", *flags)
    install(program, STRIPPED)


def run(program, log, *arguments):
    arguments = ["--filter-markup", f"--debug-file-directory={directory}",
                 *arguments]
    done = subprocess.run([program, *arguments], input=log, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, (program, done)
    return done.stdout, done.stderr


def peak_bytes(pid):
    """The most memory that the process has had so far."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) << 10


def without_missing(report):
    """Ours says once per module what LLVM says for each address."""
    return b"".join(line for line in report.splitlines(True)
                    if not line.startswith(b"error: could not find build ID"))


def context(bias=0, build_id=FULL, module=0):
    size = 0x10000
    return (f"{{{{{{module:{module}:a.out:elf:{build_id}}}}}}}\n"
            f"{{{{{{mmap:{0x400000 + bias:#x}:{size:#x}:load:{module}:rwx:"
            f"0x400000}}}}}}\n")


def at(name, offset=0):
    return f"{SYMBOLS[name][0] + offset:#x}"


@unittest.skipUnless(LLVM, "llvm-symbolizer-19 is not installed")
class BesideLlvm(unittest.TestCase):
    """Both programs print the same bytes."""

    def same(self, log, colors=("never", "always")):
        if isinstance(log, str):
            log = log.encode()
        for color in colors:
            arguments = ["--no-demangle", f"--color={color}"]
            expected, expected_report = run(LLVM, log, *arguments)
            got, report = run(KSYM, log, *arguments)
            self.assertEqual(got, expected)
            self.assertEqual(without_missing(report),
                             without_missing(expected_report))
        return expected

    def test_code(self):
        """Every form of pc and bt, at both ends of each symbol."""
        log = context()
        for name, (_, size) in sorted(SYMBOLS.items()):
            for offset in sorted({1, max(size - 1, 1), size}):
                where = at(name, offset)
                if not llvm_is_right(int(where, 16)):
                    continue
                log += (f"x {{{{{{pc:{where}}}}}}} {{{{{{pc:{where}:ra}}}}}} "
                        f"{{{{{{pc:{where}:pc}}}}}} y\n"
                        f"  {{{{{{bt:0:{where}}}}}}}\n"
                        f"{{{{{{bt:12:{where}:ra}}}}}} "
                        f"{{{{{{bt:1234567:{where}:pc}}}}}}z\n")
        self.assertIn(b"LocalFunction", self.same(log))

    def test_data(self):
        """data names variables and functions."""
        log = context()
        for name in sorted(SYMBOLS):
            log += f"{{{{{{data:{at(name)}}}}}}} {{{{{{data:{at(name, 3)}}}}}}}\n"
        self.assertIn(b"local_value", self.same(log))

    def test_stripped(self):
        """Without .symtab the dynamic symbols answer."""
        log = context(build_id=STRIPPED)
        for name in ("GlobalFunction", "LocalFunction", "global_value"):
            log += (f"{{{{{{pc:{at(name)}}}}}}} {{{{{{bt:1:{at(name, 2)}}}}}}}"
                    f" {{{{{{data:{at(name)}}}}}}}\n")
        self.assertIn(b"UnsizedFunction", self.same(log))

    def test_no_wrong_name(self):
        """An unsized symbol names nothing behind its section; LLVM's does."""
        end = max(end for start, size, end in PLACES
                  if size == 0 and start < SYMBOLS["constant_values"][0])
        log = (context() + f"{{{{{{pc:{end:#x}}}}}}}\n").encode()
        self.assertIn(b"_fini[", run(LLVM, log, "--no-demangle")[0])
        self.assertIn(f"[[[pc:{end:#x}]]]".encode(), run(KSYM, log)[0])

    def test_symbol(self):
        """symbol is demangled, --no-demangle or not."""
        self.assertIn(b"Mangled::Name()", self.same(
            "{{{symbol:_ZN7Mangled4NameEv}}} {{{symbol:foobar}}} "
            "{{{symbol:}}}{{{symbol}}}{{{symbol:a:b}}}\n"))

    def test_modules(self):
        """Lines about modules: merged, added to, sorted, and their errors."""
        self.same("{{{module:0:a.out:elf:abcdef}}}\n"
                  "{{{mmap:0x3000:0x1000:load:0:rw:0x3000}}}\n"
                  "{{{mmap:0x1000:0x1000:load:0:Rx:0x1000}}}\n"
                  "{{{module:0x1::elf:1}}}{{{mmap:0x9000:1:load:1:x:0}}}\n"
                  "text {{{mmap:0x10000:010:load:0x01:r:0}}} elided\n"
                  "{{{mmap:0x20000:0x10:load:0:w:0}}}\n"
                  "{{{mmap:0x20010:0x10:load:0:w:0}}}\n"
                  "{{{mmap:0x20008:0x10:load:0:w:0}}}\n"
                  "{{{mmap:0x1ffff:0x100:load:0:w:0}}}\n"
                  "{{{mmap:0x30000:0:load:0:w:0}}}\n"
                  "{{{mmap:0x30000:1:load:1:r:0}}}\n"
                  "{{{mmap:0xfffffffffffff000:0x1000:load:1:r:0}}}\n"
                  "{{{module:0:b:elf:12}}} {{{module:7:b:elf:12}}}\nend\n"
                  "{{{mmap:0x40000:1:load:9:r:0}}}\n"
                  "{{{mmap:0x40000:1:load:0:r:0}}}")

    def test_reset(self):
        """reset prints and forgets only what is there."""
        self.same("{{{reset}}}\na {{{reset}}} b\n" + context() +
                  "x {{{reset:more}}} y\n{{{pc:0x400000}}}\n" + context() +
                  "{{{mmap:0x800000:1:load:0:r:0}}}\n{{{reset}}}\n" +
                  context(0x1000) + "{{{reset}}}\n{{{reset}}}\n")

    def test_fields(self):
        """Wrong numbers of fields and wrong values."""
        values = ["", "0", "00", "1", "0x", "0x1", "0X1", "0b1", "0o7", "08",
                  "-1", "+1", " 1", "1 ", "0x1g", "0xFFFFFFFFFFFFFFFF",
                  "0x10000000000000000", "18446744073709551616", "rwx", "xr"]
        # LLVM's table of modules crashes at this id.
        crash = "0xFFFFFFFFFFFFFFFF"
        lines = [context()]
        for v in values:
            module = "0xFF" if v == crash else v
            lines.append(
                f"{{{{{{pc:{v}}}}}}}{{{{{{data:{v}}}}}}}{{{{{{bt:{v}:0x1}}}}}}"
                f"{{{{{{bt:0:{v}}}}}}}{{{{{{pc:0x400000:{v}}}}}}}"
                f"{{{{{{bt:0:0x400000:{v}}}}}}}\n"
                f"{{{{{{mmap:{v}:1:load:0:r:0}}}}}}\n"
                f"{{{{{{mmap:0x10:{v}:load:0:r:0}}}}}}\n{{{{{{reset}}}}}}\n"
                f"{{{{{{module:{module}:n:elf:ab}}}}}}\n"
                f"{{{{{{mmap:0x20:1:load:{module}:r:0}}}}}}\n"
                f"{{{{{{module:5:n:elf:{v}}}}}}}\n"
                f"{{{{{{mmap:0x30:1:load:5:{v}:0}}}}}}\n"
                f"{{{{{{mmap:0x40:1:load:5:r:{v}}}}}}}\n"
                f"{{{{{{mmap:0x50:1:{v}:5:r:0}}}}}}\n")
        for tag in ("pc", "bt", "data", "symbol", "module", "mmap", "reset"):
            for count in range(9):
                fields = ":".join(["0"] * count)
                lines.append(f"a {{{{{{{tag}:{fields}}}}}}} b\n")
        self.same("".join(lines))

    def test_syntax(self):
        """Braces that are no elements, unknown and impossible tags."""
        self.same("{{{}}} {{{:}}} {{{:a}}} {{{a}}} {{{a:}}} {{{a::b:}}}\n"
                  "{{{{pc:0x1}}}} {{{pc:0x1}} }}} {{{ {{{pc:0x1}}} }}}\n"
                  "{{{Pc:0x1}}} {{{p c}}} {{{1}}} {{{unknown:x}}} {{{open\n"
                  "}}} {{{pc:0x1\n:pc}}}\n\n\r\n{{{}}}{{{reset")

    def test_line_ends(self):
        """CRLF stays, also at the end of lines that were made."""
        text = context() + "x {{{pc:0x400000}}}\n{{{reset}}}\nend"
        self.same(text.replace("\n", "\r\n"))
        self.same(text)
        self.same(context().replace("\n", "\r\n") + "x\n")
        self.same("")
        self.same("\n")
        self.same(b"\0\xff{{{pc:\0}}}\0\n")

    def test_colors(self):
        """The log's colors are kept around elements, and end with the line."""
        lines = [context()]
        where = at("GlobalFunction")
        for a in ("0", "1", "30", "34", "37", "38", "2", "00", "1;31", ""):
            for b in ("1", "31"):
                lines.append(f"\033[{a}mx{{{{{{pc:{where}}}}}}}\033[{b}m"
                             f"{{{{{{bt:0:{where}}}}}}}\033[0m{{{{{{pc}}}}}}\n"
                             f"{{{{{{symbol:a}}}}}}\033[{a}m\n")
        self.same("".join(lines) + "\033[\033[3\033[31")

    def test_generated(self):
        """Logs made at random of all of this."""
        generator = Generator(random.Random(SEED))
        logs = [generator.log() for _ in range(LOGS)]
        separator = b"{{{reset}}}\n=====\n"
        text = separator.join(log + b"\n" for log in logs)
        arguments = ["--no-demangle", "--color=always"]
        expected, expected_report = run(LLVM, text, *arguments)
        got, report = run(KSYM, text, *arguments)
        expected = expected.split(b"=====\n")
        got = got.split(b"=====\n")
        for i, log in enumerate(logs):
            self.assertEqual(got[i], expected[i],
                             f"seed {SEED}, log {i}: {log!r}")
        self.assertEqual(len(got), len(expected))
        self.assertEqual(without_missing(report),
                         without_missing(expected_report))


class Generator:
    """Logs with all elements, right and wrong."""

    def __init__(self, rng):
        self.rng = rng
        self.places = [address + offset
                       for address, size in SYMBOLS.values()
                       for offset in range(size + 2)
                       if llvm_is_right(address + offset - 1) and
                       llvm_is_right(address + offset)]

    def log(self):
        rng = self.rng
        self.mmaps = []
        lines = []
        for module in range(rng.randint(0, 3)):
            lines += self.context(module)
        for _ in range(rng.randint(1, 6)):
            if rng.random() < 0.1:
                lines += self.context(rng.randint(0, 3))
            lines.append("".join(self.piece()
                                 for _ in range(rng.randint(0, 4))))
        if rng.random() < 0.2:
            rng.shuffle(lines)
        end = rng.choice(["\n", "\n", "\n", "\r\n"])
        return end.join(lines).encode()

    def context(self, module):
        rng = self.rng
        build_id = rng.choice([FULL, FULL, STRIPPED, MISSING])
        lines = [f"{{{{{{module:{module:#x}:m{module}:elf:{build_id}}}}}}}"]
        for _ in range(rng.randint(0, 3)):
            start = rng.randrange(0x400000, 0x405000, 0x800)
            size = rng.randrange(0, 0x3000, 0x400)
            bias = rng.choice([0, 0, 0x10000, 0x7fff00000000])
            self.mmaps.append((start + bias, size, start))
            lines.append(f"{{{{{{mmap:{start + bias:#x}:{size:#x}:load:"
                         f"{module}:{rng.choice(['r', 'rx', 'RW'])}:"
                         f"{start:#x}}}}}}}")
        if rng.random() < 0.2:
            lines = [self.noise() + line + self.noise() for line in lines]
        return lines

    def address(self):
        rng = self.rng
        place = rng.choice(self.places)
        inside = [m for m in self.mmaps if m[2] <= place < m[2] + m[1]]
        if inside and rng.random() < 0.9:
            start, _, module_start = rng.choice(inside)
            return f"{place - module_start + start:#x}"
        return rng.choice(["0", "12", "0xzz", "", f"{place:#x}"])

    def piece(self):
        rng = self.rng
        kind = rng.choice(["", "", ":ra", ":pc", ":xx", ":pc:more"])
        element = rng.choice([
            lambda: f"{{{{{{bt:{rng.randint(0, 200)}:{self.address()}{kind}}}}}}}",
            lambda: f"{{{{{{pc:{self.address()}{kind}}}}}}}",
            lambda: f"{{{{{{data:{self.address()}}}}}}}",
            lambda: f"{{{{{{symbol:{rng.choice(['f', '_Z1fv', ''])}}}}}}}",
            lambda: "{{{reset}}}" if rng.random() < 0.1 else "text",
            lambda: rng.choice(["{{{other:1}}}", "{{{Bad}}}", "{{{}}}",
                                "{{{", "}}}", "{{{bt:1}}}", "{{{pc"]),
            self.noise])
        return self.noise() + element()

    def noise(self):
        return self.rng.choice(["", " ", "text ", "{", "}", ":", "\t",
                                "\033[1m", "\033[31m", "\033[34m", "\033[0m",
                                "\033[4m"])


class Alone(unittest.TestCase):
    """What LLVM's filter does not do."""

    def test_hexdict(self):
        """Values in a module get names, and the layout stays."""
        where = SYMBOLS["GlobalFunction"][0]
        out, report = run(KSYM, (
            context() + f"a {{{{{{hexdict: CS:   0 RIP: {where + 2:#x} EFL: "
            "0x10246\n  R1: 0x1\r\n}}} b\n").encode())
        self.assertIn(
            f"a [[[hexdict: CS:   0 RIP: {where + 2:#x} <GlobalFunction+0x2> "
            "EFL: 0x10246\n  R1: 0x1\r\n]]] b\n".encode(), out)
        self.assertEqual(report, b"")

    def test_dumpfile(self):
        """The element stays and is reported."""
        out, report = run(KSYM, b"x {{{dumpfile:sancov:sancov.8675}}} y\n")
        self.assertEqual(out, b"x {{{dumpfile:sancov:sancov.8675}}} y\n")
        self.assertIn(b"sancov.8675", report)

    def test_missing_is_reported_once(self):
        """One line for a module whose file is not there."""
        out, report = run(KSYM, (context(build_id=MISSING) +
                                 "{{{pc:0x400000}}}\n" * 9).encode())
        self.assertEqual(out.count(b"[[[pc:0x400000]]]"), 9)
        self.assertEqual(report.decode(),
                         "error: could not find build ID for ELF module #0x0 "
                         f"\"a.out\"; BuildID={MISSING}\n")

    def test_wrong_file(self):
        """A file with another build-id names nothing."""
        path = os.path.join(directory, ".build-id", FULL[:2], FULL[2:] + ".debug")
        install(path, "badbad")
        out, report = run(KSYM, (context(build_id="badbad") +
                                 "{{{pc:0x401000}}}\n").encode())
        self.assertIn(b"[[[pc:0x401000]]]", out)
        self.assertIn(f"has build-id {FULL}".encode(), report)

    def test_kernel(self):
        """Kernel addresses get names of the listing, and of it alone."""
        listing = os.path.join(directory, "kallsyms")
        with open(listing, "w", encoding="ascii") as file:
            file.write("ffffffff81000000 T _text\n"
                       "ffffffff81000000 T _stext\n"
                       "ffffffff81000100 T do_syscall_64\n"
                       "ffffffff81000200 T schedule\n"
                       "ffffffff82000000 T _etext\n"
                       "ffffffffc0001000 t ext4_read\t[ext4]\n"
                       "ffffffffc0001100 t ext4_write\t[ext4]\n")
        log = ("{{{module:0:kernel:elf:99}}}\n"
               "{{{mmap:0xffffffff81000000:0x1000000:load:0:rx:0x0}}}\n"
               "{{{module:1:fs/ext4.ko:elf:98}}}\n"
               "{{{mmap:0xffffffffc0001000:0x1000:load:1:rx:0x0}}}\n"
               "{{{bt:0:0xffffffff81000102:pc}}}\n"
               "{{{bt:1:0xffffffffc0001100:ra}}}\n")
        out = run(KSYM, log.encode(), f"--kernel-symbols={listing}")[0]
        self.assertIn(b"do_syscall_64 <invalid>:0:0 (kernel+0x102)", out)
        self.assertIn(b"ext4_read <invalid>:0:0 (fs/ext4.ko+0xff)", out)
        moved = log.replace("0xffffffff81000000", "0xffffffff80f00000")
        moved = moved.replace("ext4.ko", "xfs.ko")
        out, report = run(KSYM, moved.encode(), f"--kernel-symbols={listing}")
        self.assertNotIn(b"do_syscall_64", out)
        self.assertNotIn(b"ext4_read", out)
        self.assertIn(b"another boot", report)
        self.assertIn(b"another kernel module", report)

    def test_streams(self):
        """A line is written when it is complete, before the next is read."""
        with subprocess.Popen([KSYM, "--filter-markup"],
                              stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            for line in (b"a\n", b"{{{symbol:_Z1fv}}}\n"):
                process.stdin.write(line[:5])
                process.stdin.flush()
                process.stdin.write(line[5:])
                process.stdin.flush()
                self.assertIn(process.stdout.readline(), (b"a\n", b"f()\n"))
            process.stdin.close()

    def test_long_line(self):
        """Memory is bounded by --max-line and not by the log's lines."""
        text = b"x" * (1 << 20) + b"{{{pc:0x1}}}{{{hexdict:"
        # A sanitizer keeps freed memory for a while.
        options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
        with tempfile.TemporaryFile() as errors, subprocess.Popen(
                [KSYM, "--filter-markup", "--max-line=65536"],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "ASAN_OPTIONS": options}) as process:
            for _ in range(4):
                process.stdin.write(text)
            before = peak_bytes(process.pid)
            for _ in range(64):
                process.stdin.write(text)
            after = peak_bytes(process.pid)
            self.assertLess(after - before, 8 << 20)
            process.stdin.close()
            self.assertEqual(process.wait(), 0)
            errors.seek(0)
            self.assertIn(b"1 line(s) with markup were longer", errors.read())

    def test_usage(self):
        """Options of the filter need it, and it excludes others."""
        for arguments in (["--color=never", "-k"],
                          ["--filter-markup", "-e", KSYM],
                          ["--filter-markup", "--json"],
                          ["--filter-markup", "0x1"],
                          ["--filter-markup", "--color=blue"]):
            done = subprocess.run([KSYM, *arguments], check=False,
                                  stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertEqual(done.stderr.count(b"\n"), 1)
        self.assertIn(b"'blue' is none of always, auto, never", done.stderr)

    def test_color(self):
        """Colors on a terminal, and where they are wanted, as LLVM has it."""
        log = b"{{{symbol:_Z1fv}}}\n"

        def at_terminal(*options, **more):
            ours, theirs = pty.openpty()
            with subprocess.Popen(
                    [KSYM, "--filter-markup", *options],
                    stdin=subprocess.PIPE, stdout=theirs,
                    env={**os.environ, "TERM": "xterm", **more}) as process:
                process.stdin.write(log)
                process.stdin.flush()
                line = os.read(ours, 100).replace(b"\r\n", b"\n")
                process.stdin.close()
            os.close(ours)
            os.close(theirs)
            return line

        plain, colored = b"f()\n", b"\033[0;34mf()\033[0m\n"
        self.assertEqual(at_terminal(), colored)
        self.assertEqual(at_terminal("--color", "never"), plain)
        self.assertEqual(at_terminal(TERM="dumb"), plain)
        for options, expected in ([], plain), (["--color=auto"], plain), (
                ["--color"], colored), (["--color=always"], colored):
            self.assertEqual(run(KSYM, log, *options)[0], expected)
            if LLVM:
                self.assertEqual(run(LLVM, log, *options)[0], expected)

    def test_wrong_files(self):
        """A wrong --kernel-symbols is refused before a line is read; a file
        that cannot be opened leaves the next directory to be looked at."""
        empty = os.path.join(directory, "empty")
        with open(empty, "wb"):
            pass
        for path in (directory, empty, "/nonexistent", KSYM):
            done = subprocess.run(
                [KSYM, "--filter-markup", f"--kernel-symbols={path}"],
                input=b"a\n", check=False, capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertEqual(done.stderr.count(b"\n"), 1)
            self.assertIn(f"--kernel-symbols: {path}: ".encode(), done.stderr)
        first = os.path.join(directory, "first")
        os.makedirs(os.path.join(first, ".build-id", FULL[:2],
                                 FULL[2:] + ".debug"))
        log = context() + f"{{{{{{pc:{at('GlobalFunction')}}}}}}}\n"
        arguments = ["--filter-markup", f"--debug-file-directory={first}"]
        for more, name in (([], b"[[[pc:"),
                           ([f"--debug-file-directory={directory}"],
                            b"GlobalFunction[")):
            done = subprocess.run([KSYM, *arguments, *more], check=True,
                                  input=log.encode(), capture_output=True)
            self.assertIn(name, done.stdout)
            self.assertEqual(done.stderr.count(b"not a regular file"),
                             0 if more else 1)

    def test_output_that_ends(self):
        """Output that cannot be written ends the filter, with status 1, and a
        reader that has gone ends it silently."""
        for where, status in (("> /dev/full", 1), (">&-", 1), ("| head -1", 0)):
            done = subprocess.run(
                ["bash", "-c", f"yes '{{{{{{symbol:f}}}}}}' | head -100000 | "
                               f"'{KSYM}' --filter-markup {where}"],
                check=False, capture_output=True)
            self.assertEqual(done.returncode, status)
            self.assertEqual(done.stderr.count(b"ksym-symbolize: write: "),
                             status)


if __name__ == "__main__":
    if LLVM is None:
        print("llvm-symbolizer-19 is not installed (package llvm-19)",
              file=sys.stderr)
    unittest.main()
