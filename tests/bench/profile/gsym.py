# SPDX-License-Identifier: Apache-2.0
"""GSYM files: conversion and lookups of a large program, beside LLVM's tools."""

import json
import os
import random
import re
import subprocess

import programs
import tables

GSYMUTIL = "llvm-gsymutil-19"
SYMBOLIZER = "llvm-symbolizer-19"
ADDRESSES = 100_000
# What --quick measures, where no large program was built.
SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                      "gen", "gsym_sample.cc")


def sample_program(context):
    program = context.scratch_file("sample")
    subprocess.run(["g++", "-std=c++17", "-O2", "-g", SAMPLE, "-o", program],
                   check=True, timeout=60)
    return program


def listing(*options):
    return subprocess.run(["readelf", "-W", *options], capture_output=True,
                          text=True, check=True).stdout


def text_addresses(program, chooser, count):
    """Uniform over the bytes of .text."""
    found = re.search(r" \.text +\w+ +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)",
                      listing("-S", program))
    start, size = (int(field, 16) for field in found.groups())
    return [start + chooser.randrange(size) for _ in range(count)]


def function_addresses(program, chooser, count):
    """Uniform over functions, and then over the bytes of each."""
    functions = sorted({
        (int(start, 16), int(size)) for start, size in re.findall(
            r": ([0-9a-f]{16}) +([1-9]\d*) FUNC .* \d+ \S+$",
            listing("-s", program), re.MULTILINE)})
    return [start + chooser.randrange(size) for start, size in
            chooser.choices(functions, k=count)]


def write_addresses(context, name, addresses, suffix=""):
    path = context.scratch_file(name)
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{address:#x}{suffix}\n" for address in addresses)
    return path


def measure(context, command, stdin=None, count=3):
    """Medians of time and memory, or None where the program is missing."""
    if not programs.has_program(command[0]):
        return None
    runs = []
    # addr2line takes as long as all others together.
    for _ in range(1 if command[0] == "addr2line" else context.runs(count)):
        with open(stdin or os.devnull, encoding="ascii") as file:
            runs.append(programs.run_measured(context, command, stdin=file))
    return {"wall": tables.median([run.wall for run in runs]),
            "cpu": tables.median([run.cpu_seconds for run in runs]),
            "rss": tables.median([run.peak_rss_mib for run in runs])}


def compare_conversions(context, program, ours, theirs):
    rows = []
    first = None
    generator = context.built("gen", "gen_gsym")
    for name, output, command in (
            ("gen_gsym", ours, [generator, "--quiet", "-o", ours, program]),
            ("gen_gsym --threads 2", ours,
             [generator, "--quiet", "--threads", "2", "-o", ours, program]),
            (GSYMUTIL, theirs, [GSYMUTIL, "--quiet", "--num-threads=1",
                                "--convert", program, "-o", theirs])):
        cost = measure(context, command)
        if cost is None:
            continue
        size = os.path.getsize(output) / 2**20
        first = first or (cost, size)
        rows.append([name, tables.number(cost["wall"], 3),
                     tables.number(cost["rss"], 1), tables.number(size, 2),
                     tables.number(tables.ratio(first[0]["wall"],
                                                cost["wall"]), 2),
                     tables.number(tables.ratio(first[0]["rss"],
                                                cost["rss"]), 2),
                     tables.number(tables.ratio(first[1], size), 2)])
    print("DWARF to GSYM; ratios are of gen_gsym with one thread by the "
          "program of the row")
    tables.print_table(["program", "wall s", "peak MiB", "file MiB", "wall by",
                        "peak by", "size by"], rows)


def compare_lookups(context, program, gsym, addresses):
    """Whole programs; `addresses` is {name: list}."""
    symbolize = context.built("daemon", "ksym-symbolize")
    rows = []
    for name, chosen in addresses.items():
        path = write_addresses(context, "addresses", chosen)
        with_file = write_addresses(context, "with_file", chosen, " " + gsym)
        first = None
        for title, command, stdin in (
                ("ksym-symbolize --gsym", [symbolize, "--gsym", gsym], path),
                ("ksym-symbolize -e --inlines",
                 [symbolize, "--inlines", "-e", program], path),
                (SYMBOLIZER, [SYMBOLIZER, "--inlines", "-e", program], path),
                (GSYMUTIL, [GSYMUTIL, "--addresses-from-stdin"], with_file),
                ("addr2line", ["addr2line", "-i", "-f", "-C", "-e", program],
                 path)):
            cost = measure(context, command, stdin)
            if cost is None:
                continue
            first = first or cost
            rows.append([f"{title}, {name}", tables.number(cost["cpu"], 3),
                         tables.number(cost["wall"], 3),
                         tables.number(len(chosen) / cost["wall"] / 1000, 0),
                         tables.number(cost["rss"], 1),
                         tables.number(tables.ratio(cost["cpu"],
                                                    first["cpu"]), 1),
                         tables.number(tables.ratio(cost["wall"],
                                                    first["wall"]), 1)])
    print("Lookups with inlined calls, addresses on standard input; ratios are "
          "of the row's time to\nthat of ksym-symbolize --gsym, in seconds of "
          "CPU time (user and system) and of wall time")
    tables.print_table(["program, addresses", "CPU s", "wall s", "1000/s",
                        "peak MiB", "CPU by ours", "wall by ours"], rows)


def compare_few(context, program, addresses):
    """From one address on: what is converted follows how many there are."""
    if not programs.has_program(SYMBOLIZER):
        return
    symbolize = context.built("daemon", "ksym-symbolize")
    rows = []
    for count in (1, 10, 1000, ADDRESSES):
        if count > len(addresses):
            break
        path = write_addresses(context, "few", addresses[:count])
        # In turn, as the machine's speed drifts.
        pairs = []
        for _ in range(context.runs(3 if count == ADDRESSES else 9)):
            pairs.append([measure(context, [
                tool, "--inlines", "-e", program], path, 1)
                for tool in (symbolize, SYMBOLIZER)])
        for key in ("cpu", "wall", "rss"):
            ours, theirs = ([pair[i][key] for pair in pairs] for i in (0, 1))
            ratios = [tables.ratio(a, b) for a, b in zip(ours, theirs)]
            rows.append([f"{count}, {key}", tables.number(
                tables.median(ours), 3), tables.number(
                    tables.median(theirs), 3),
                         tables.number(tables.median(ratios), 2)])
    print(f"ksym-symbolize -e --inlines beside {SYMBOLIZER}, in turn; seconds "
          "and peak MiB, and the\nmedian of the ratios of the pairs")
    tables.print_table(["addresses", "ours", "LLVM's", "by"], rows)


def measure_in_process(context, gsym, addresses):
    rows = []
    for name, chosen in addresses.items():
        path = write_addresses(context, "addresses", chosen)
        with open(path, encoding="ascii") as file:
            done = subprocess.run(
                [context.tool("bench_gsym"), gsym,
                 "0" if context.quick else "2"],
                stdin=file, capture_output=True, text=True, check=True)
        figures = json.loads(done.stdout)
        rows.append([name] + [tables.number(figures[key] / 1e6, 2)
                              for key in ("plain", "cold", "warm")] +
                    [tables.number(figures["first_us"] / 1000, 3),
                     tables.number(figures["index_bytes"] / 2**20, 2),
                     tables.number(figures["peak_kib"] / 1024, 1)])
    print("Lookups in process, without demangling, million per second: without "
          "an index, with one\nthat is made meanwhile, with one that was made")
    tables.print_table(["addresses", "plain", "cold", "warm", "first ms",
                        "index MiB", "peak MiB"], rows)


def run(context):
    program = context.program or (sample_program(context) if context.quick
                                  else None)
    if program is None:
        raise programs.Skipped("no program was built to measure with; "
                               "--program FILE gives one")
    sections = listing("-S", program)
    debug = sum(int(size, 16) for size in re.findall(
        r" \.debug_\w+ +\w+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", sections))
    print(f"{os.path.basename(program)}: {debug / 2**20:.1f} MiB of DWARF\n")
    ours = context.scratch_file("ours.gsym")
    compare_conversions(context, program, ours,
                        context.scratch_file("theirs.gsym"))
    count = 1000 if context.quick else ADDRESSES
    chooser = random.Random(1)
    addresses = {
        "uniform over text": text_addresses(program, chooser, count),
        "uniform over functions": function_addresses(program, chooser, count)}
    compare_few(context, program, addresses["uniform over functions"])
    compare_lookups(context, program, ours, addresses)
    measure_in_process(context, ours, addresses)
