# SPDX-License-Identifier: Apache-2.0
"""The kernel's symbol table: the compact map beside the other forms."""

import json
import os
import re
import subprocess

import programs
import tables

# Which form of the table a benchmark is about, by a word of its name. Only
# reading the text is the least that loading could take.
FORMS = {"map": r"<Compact\w*>", "one thread": r"<OneThread\w*>", "blob": r"<Blob\w*>",
         "vector": r"<String\w*>", "read only": r"^BM_ReadListing"}
# What Google Benchmark reports of each benchmark beside our own counters.
STANDARD_KEYS = {
    "name", "family_index", "per_family_instance_index", "run_name",
    "run_type", "repetitions", "repetition_index", "threads", "iterations",
    "real_time", "cpu_time", "time_unit", "label", "aggregate_name",
    "aggregate_unit", "error_occurred", "error_message"}


def split_name(name):
    """(form, the name without its form), or (None, name)."""
    name = name.removesuffix("/real_time")
    for form, words in FORMS.items():
        rest, found = re.subn(words, "", name, count=1)
        if found:
            rest = re.sub(r"^BM_", "", rest)
            what, _, table = (rest if form != "read only" else
                              "Load" + rest).partition("/")
            return form, f"{what}, table {table}"
    return None, name


def collect(report):
    """{(what, figure): {form: value}} in the order of the report."""
    figures = {}
    for one in report["benchmarks"]:
        if one.get("error_occurred"):
            continue
        form, what = split_name(one["name"])
        if form is None:
            continue
        # Of what takes several CPUs the time that passes counts.
        time = "real" if one["name"].endswith("/real_time") else "cpu"
        values = {f"time, {one['time_unit']}": one[time + "_time"]}
        values.update((key, value) for key, value in one.items()
                      if key not in STANDARD_KEYS)
        for figure, value in values.items():
            figures.setdefault((what, figure), {})[form] = value
    return figures


def run(context):
    program = os.path.join(context.build, "tests", "bench",
                           "kernel_symbols_bench")
    if not os.access(program, os.X_OK):
        raise programs.Skipped(program + " is not built")
    command = [program, "--benchmark_format=json"]
    if context.quick:
        command.append("--benchmark_min_time=0.001")
    done = subprocess.run(command, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise programs.Failed(f"{program}: {done.stderr.strip()[-300:]}")
    report = json.loads(done.stdout)
    rows = []
    for (what, figure), values in collect(report).items():
        row = [f"{what}: {figure}", tables.number(values.get("map"), 2)]
        for form in list(FORMS)[1:]:
            row += [tables.number(values.get(form), 2),
                    tables.number(
                        tables.ratio(values.get("map"), values.get(form)), 3)]
        rows.append(row)
    print("Table 0: this machine's /proc/kallsyms; 1: a Debian kernel's with "
          "modules, from a file.\nmap: loaded as the profiler does, which "
          "reads ahead in a thread; vector: a sorted vector of strings; read "
          "only: reading the text and nothing else")
    tables.print_table(
        ["figure", "map"] + [cell for form in list(FORMS)[1:]
                             for cell in (form, "ratio")], rows)
    for one in report["benchmarks"]:
        if "load_to_read" in one:
            print("Loading and reading in turn, table 0, medians: %.1f ms and "
                  "%.1f ms; of each pair's ratios: %.2f" % (
                      one["load_ms"], one["read_ms"], one["load_to_read"]))
