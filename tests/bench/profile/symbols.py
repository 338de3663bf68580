# SPDX-License-Identifier: Apache-2.0
"""User symbols: tables, lookups, and naming a profile of very many stacks."""

import json
import os
import random
import re
import subprocess

import programs
import tables

# blazesym 0.2.6, ELF symbols only, as measured once elsewhere: for orientation.
BLAZESYM_LOOKUPS = 3.1e6
LOOKED_UP = "/lib/x86_64-linux-gnu/libc.so.6"
ADDRESSES = 100_000
PATHS = 1_000_000
# Nanoseconds of CPU time per sample: 10 kHz.
PERIOD_NS = 100_000
EVENT = "cpu-clock"


def run_benchmarks(context, name):
    program = os.path.join(context.build, "tests", "bench", name)
    if not os.access(program, os.X_OK):
        raise programs.Skipped(program + " is not built")
    command = [program, "--benchmark_format=json",
               "--benchmark_filter=LoadTable|Find|Resolve"]
    if context.quick:
        command.append("--benchmark_min_time=0.001")
    done = subprocess.run(command, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise programs.Failed(f"{program}: {done.stderr.strip()[-300:]}")
    return [one for one in json.loads(done.stdout)["benchmarks"]
            if not one.get("error_occurred")]


def print_tables(benchmarks):
    rows = []
    for one in benchmarks:
        if one["name"].startswith("LoadTable/"):
            rows.append([one["name"].partition("/")[2],
                         tables.number(one["symbols"], 0),
                         tables.number(one["cpu_time"], 2),
                         tables.number(one["bytes_per_symbol"], 1)])
    print("Loading a table, from the path to the first lookup")
    tables.print_table(["file", "symbols", "ms", "bytes per symbol"], rows)
    rows = []
    for one in benchmarks:
        if "items_per_second" in one:
            rate = one["items_per_second"]
            rows.append([one["name"], tables.number(rate / 1e6, 2),
                         tables.number(rate / BLAZESYM_LOOKUPS, 1)])
    print("Lookups of random addresses; Find: without the name, Resolve: with "
          "name, module\nand build-id (blazesym's figure: "
          f"{BLAZESYM_LOOKUPS / 1e6} million)")
    tables.print_table(["lookup", "million/s", "by blazesym's"], rows)


def text_addresses(count):
    """Addresses within the code of LOOKED_UP, as its headers have them."""
    sections = subprocess.run(["readelf", "-SW", LOOKED_UP],
                              capture_output=True, text=True,
                              check=True).stdout
    found = re.search(r" \.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)",
                      sections)
    start, size = (int(field, 16) for field in found.groups())
    chooser = random.Random(1)
    return "".join(f"{start + chooser.randrange(size):#x}\n"
                   for _ in range(count))


def compare_tools(context):
    """Addresses on standard input to names, whole programs."""
    if not os.path.exists(LOOKED_UP) or not programs.has_program("readelf"):
        return
    path = context.scratch_file("addresses")
    with open(path, "w", encoding="ascii") as file:
        file.write(text_addresses(1000 if context.quick else ADDRESSES))
    ours = os.path.join(context.build, "daemon", "ksym-symbolize")
    rows = []
    first = None
    for command in ([ours, "-e", LOOKED_UP],
                    ["llvm-symbolizer", "--no-inlines", "-e", LOOKED_UP],
                    ["addr2line", "-f", "-e", LOOKED_UP]):
        if not programs.has_program(command[0]):
            continue
        seconds, rss = [], []
        for _ in range(context.runs(3)):
            with open(path, encoding="ascii") as file:
                run = programs.run_measured(context, command, stdin=file)
            seconds.append(run.cpu_seconds)
            rss.append(run.peak_rss_mib)
        cpu = tables.median(seconds)
        first = cpu if first is None else first
        rows.append([os.path.basename(command[0]), tables.number(cpu, 3),
                     tables.number(tables.median(rss), 1),
                     tables.number(tables.ratio(first, cpu), 3)])
    print(f"{os.path.basename(LOOKED_UP)}, addresses on standard input")
    tables.print_table(["program", "CPU s", "peak MiB", "ksym / it"], rows)


def capture_many_stacks(context, seconds):
    """Two captures of one load: (raw file, perf.data or None)."""
    raw = context.scratch_file("many.raw")
    data = context.scratch_file("perf.data")
    with programs.load(context, programs.online_cpus(), "paths", PATHS,
                       programs.LOAD_PRIORITY):
        programs.run_measured(
            context, [context.profiler, "-q", "-U", "-e", EVENT, "-c",
                      str(PERIOD_NS), "--stack-storage-size", "524288",
                      "--hash-storage-size", "524288", "--raw", raw, "-o",
                      context.scratch_file("many.folded"), str(seconds)],
            priority=programs.PROFILER_PRIORITY)
        if not programs.has_program("perf"):
            return raw, None
        programs.run_measured(
            context, ["perf", "record", "-q", "-a", "-g", "-e", EVENT + ":u", "-c",
                      str(PERIOD_NS), "-o", data, "--", "sleep",
                      str(seconds)], priority=programs.PROFILER_PRIORITY)
    return raw, data


def measure(context, command, samples):
    runs = [programs.run_measured(context, command)
            for _ in range(context.runs(3))]
    cpu = tables.median([run.cpu_seconds for run in runs])
    return {"samples": samples, "cpu": cpu,
            "wall": tables.median([run.wall for run in runs]),
            "rss": tables.median([run.peak_rss_mib for run in runs]),
            "each_us": tables.ratio(cpu * 1e6, samples)}


def compare_reports(context):
    raw, data = capture_many_stacks(context, 0.3 if context.quick else 8)
    report = context.scratch_file("many.json")
    replay = [context.profiler, "-q", "--replay", raw]
    programs.run_measured(context, replay + ["-o", report])
    with open(report, encoding="utf-8") as file:
        document = json.load(file)
    samples = document["metadata"]["samples"]["emitted"]
    rows = {f"ksym-profile --replay, {name}": measure(
        context, replay + ["--format", name], samples)
        for name in ("folded", "text", "json", "pprof", "flamegraph")}
    for one in run_benchmarks(context, "resolve_bench"):
        seconds = one["cpu_time"] / 1e3
        count = one["items_per_second"] * seconds
        rows["naming alone (resolve_bench)"] = {
            "samples": count, "cpu": seconds, "wall": None, "rss": None,
            "each_us": 1e6 / one["items_per_second"]}
    peer = None
    if data:
        listing = subprocess.run(
            ["perf", "script", "-F", "pid", "-G", "-i", data],
            capture_output=True, text=True, check=False,
            env=context.environment()).stdout
        peer = measure(context, ["perf", "script", "-i", data],
                       len(listing.split()))
        rows["perf script"] = peer
    print(f"Naming and writing a profile of {len(document['stacks'])} distinct "
          "stacks that was captured before,\nto /dev/null; the ratio is perf's CPU "
          "time per sample by ours")
    tables.print_table(
        ["program", "samples", "wall s", "CPU s", "us per sample", "peak MiB",
         "perf / it"],
        [[name] + [tables.number(row[key], decimals)
                   for key, decimals in (("samples", 0), ("wall", 2),
                                         ("cpu", 2), ("each_us", 2),
                                         ("rss", 0))] +
         [tables.number(tables.ratio(peer["each_us"] if peer else None,
                                     row["each_us"]), 1)]
         for name, row in rows.items()])


def run(context):
    print_tables(run_benchmarks(context, "elf_symbols_bench"))
    compare_tools(context)
    compare_reports(context)
