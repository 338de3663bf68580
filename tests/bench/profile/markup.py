# SPDX-License-Identifier: Apache-2.0
"""The filter of logs with symbolizer markup, beside llvm-symbolizer."""

import os
import random
import subprocess

import gsym
import programs
import tables

SYMBOLIZER = "llvm-symbolizer-19"
MIB = 1 << 20
LOG_BYTES = 100 * 1000 * 1000
LONG_LINE_BYTES = 1 << 30
BUILD_ID = "ab" + "cdef" * 9 + "00"
TEXT = "I0101 12:00:00.000001  1234 server.cc:42] request handled in 12 ms, ok"


def make_program(context):
    """The sample, where its build-id leads to it; the directory, its addresses."""
    directory = context.scratch_file("symbols")
    target = os.path.join(directory, ".build-id", BUILD_ID[:2])
    os.makedirs(target, exist_ok=True)
    program = os.path.join(target, BUILD_ID[2:] + ".debug")
    subprocess.run(["g++", "-std=c++17", "-O2", "-g", "-no-pie",
                    f"-Wl,--build-id=0x{BUILD_ID}", gsym.SAMPLE, "-o",
                    program], check=True, timeout=60)
    return directory, gsym.function_addresses(program, random.Random(1), 1000)


def write_log(context, name, addresses, percent, size):
    """A log in which so many lines of a hundred are a frame of a stack."""
    chooser = random.Random(percent)
    path = context.scratch_file(name)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{{{{{{module:0:sample:elf:{BUILD_ID}}}}}}}\n"
                   "{{{mmap:0x400000:0x100000:load:0:rx:0x400000}}}\n")
        # Written again and again, as it takes Python long.
        block = "".join(
            f"{{{{{{bt:{i % 30}:{chooser.choice(addresses):#x}:pc}}}}}}\n"
            if chooser.randrange(100) < percent else TEXT + "\n"
            for i in range(20_000))
        for _ in range(size // len(block) + 1):
            file.write(block)
    return path


def filter_log(context, command, path):
    with open(path, encoding="ascii") as file:
        return programs.run_measured(context, command, stdin=file)


def compare(context, commands, name, path):
    size = os.path.getsize(path)
    rows = []
    first = None
    for title, command in commands:
        if not programs.has_program(command[0]):
            continue
        runs = [filter_log(context, command, path)
                for _ in range(context.runs(3))]
        cpu = tables.median([run.cpu_seconds for run in runs])
        rss = tables.median([run.peak_rss_mib for run in runs])
        first = first or cpu
        rows.append([f"{title}, {name}", tables.number(cpu, 2),
                     tables.number(size / MIB / cpu if cpu else None, 0),
                     tables.number(rss, 1),
                     tables.number(tables.ratio(cpu, first), 1)])
    os.unlink(path)
    return rows


def measure_long_line(context, command):
    """Memory while one line comes that never ends, from a pipe."""
    size = 64 * MIB if context.quick else LONG_LINE_BYTES
    block = b"x" * (MIB - 16) + b"{{{pc:0x401000}}"
    with subprocess.Popen(
            [context.tool("bench_runner"), context.scratch_file("long.txt"),
             *command],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=context.environment()) as process:
        for _ in range(size // len(block)):
            process.stdin.write(block)
        process.stdin.close()
        if process.wait() != 0:
            raise programs.Failed("the filter failed at a long line")
    with open(context.scratch_file("long.txt"), encoding="ascii") as file:
        rss = int(file.read().split()[2]) / 1024
    print(f"One line of {size // MIB} MiB without an end: peak memory "
          f"{rss:.1f} MiB\n")


def run(context):
    directory, addresses = make_program(context)
    options = ["--filter-markup", "--color=never",
               f"--debug-file-directory={directory}"]
    ours = [context.built("daemon", "ksym-symbolize"), *options]
    commands = [("ksym-symbolize", ours), (SYMBOLIZER, [SYMBOLIZER, *options])]
    size = MIB if context.quick else LOG_BYTES
    rows = []
    for percent in (1, 50):
        path = write_log(context, "log", addresses, percent, size)
        rows += compare(context, commands, f"{percent} % elements", path)
    print(f"Logs of {size / 1e6:.0f} MB to names, lines and inlined calls; the "
          "ratio is the row's CPU time by ours")
    tables.print_table(["program, log", "CPU s", "MiB/s", "peak MiB",
                        "by ours"], rows)
    measure_long_line(context, ours)
