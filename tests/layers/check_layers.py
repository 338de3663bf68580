#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rejects #includes that point the wrong way.

    check_layers.py ROOT            checks the tree at ROOT
    check_layers.py --self-test     proves that planted violations are found

MODULES says which directories of this project a directory may include from, and
RESTRICTED_HEADERS where a library's headers may be used. A directory that holds
sources and has no entry is an error: a new module states its layer here.
MODULES has no cycle: two modules that need each other are one.
"""

import graphlib
import os
import re
import sys
import tempfile

# The modules of libksym that stand beside each other, above ksym/base.
SIBLINGS = ["ksym/breakpad", "ksym/demangle", "ksym/dwarf", "ksym/elf",
            "ksym/fetch", "ksym/gsym", "ksym/kernel", "ksym/markup",
            "ksym/process", "ksym/runtime", "ksym/unwind"]
KSYM = ["ksym", "ksym/base"] + SIBLINGS

MODULES = {
    "ksym/base": [],
    "ksym/breakpad": ["ksym/base"],
    "ksym/demangle": ["ksym/base"],
    # DWARF is read through the ELF file that holds it.
    "ksym/dwarf": ["ksym/base", "ksym/elf"],
    "ksym/elf": ["ksym/base"],
    "ksym/fetch": ["ksym/base", "ksym/elf"],
    "ksym/gsym": ["ksym/base"],
    "ksym/kernel": ["ksym/base"],
    "ksym/markup": ["ksym/base"],
    "ksym/process": ["ksym/base"],
    # An interpreter is a mapped ELF file, whose code says where it keeps things.
    "ksym/runtime": ["ksym/base", "ksym/elf", "ksym/unwind"],
    "ksym/unwind": ["ksym/base", "ksym/elf"],
    # The facade: ksym/symbolizer.h and its parts.
    "ksym": KSYM,
    # What programs with options share; no part of libksym.
    "ksym/cli": ["ksym/base"],
    "ksym/tools": KSYM + ["ksym/cli"],
    # The C interface: a shell around what names addresses and logs.
    "ksym/c_api": KSYM + ["ksym/tools"],
    "gen": KSYM + ["ksym/cli"],
    # What rows are called is said once, in plain C.
    "bpf": ["ksym/unwind"],
    "daemon/base": ["ksym/base"],
    "daemon/files": KSYM,
    "daemon/profile": KSYM,
    "daemon/raw": KSYM + ["daemon/profile"],
    "daemon/naming": KSYM + ["daemon/base", "daemon/profile", "daemon/raw"],
    "daemon/output": KSYM + ["daemon/profile", "daemon/raw"],
    # Rows of a fleet's tables.
    "daemon/clickhouse": KSYM + ["daemon/base", "daemon/output",
                                 "daemon/profile"],
    "daemon/history": KSYM + ["daemon/base", "daemon/output",
                              "daemon/profile"],
    "daemon/input": KSYM + ["daemon/profile"],
    "daemon/runtime": KSYM + ["daemon/profile"],
    # What files of this machine and environments say of processes.
    "daemon/labels": KSYM + ["daemon/base", "daemon/profile"],
    "daemon/perf": KSYM + ["daemon/base"],
    "daemon/track": KSYM + ["daemon/base", "daemon/perf", "daemon/profile",
                            "bpf"],
    "daemon/unwind": KSYM + ["daemon/base", "daemon/files", "bpf"],
    "daemon/capture": KSYM + ["daemon/base", "daemon/files", "daemon/perf",
                              "daemon/profile", "daemon/runtime",
                              "daemon/track", "daemon/unwind", "bpf"],
    # Threads at one moment: values and their writers.
    "daemon/dump": KSYM + ["daemon/naming", "daemon/output", "daemon/profile"],
    # A table on a terminal: values, their lines, keys.
    "daemon/top": KSYM + ["daemon/output", "daemon/profile"],
    # Requests of HTTP as they arrive.
    "daemon/http": ["ksym/base"],
    # What a program does from start to end: these put the stages together.
    "daemon/oneshot": KSYM + ["ksym/cli", "daemon/base", "daemon/capture",
                              "daemon/dump", "daemon/files",
                              "daemon/history", "daemon/input",
                              "daemon/naming", "daemon/output",
                              "daemon/profile", "daemon/raw", "daemon/runtime",
                              "daemon/top", "daemon/unwind"],
    "daemon/ui": ["ksym/base", "daemon/base", "daemon/http",
                  "daemon/oneshot"],
    "daemon/service": KSYM + ["ksym/cli", "daemon/base", "daemon/capture",
                              "daemon/clickhouse", "daemon/files",
                              "daemon/history", "daemon/http",
                              "daemon/labels", "daemon/naming",
                              "daemon/output", "daemon/profile", "daemon/raw",
                              "daemon/runtime", "daemon/unwind"],
    # The samples of many hosts, in a database of theirs. Of the service it has
    # what speaks HTTP.
    "daemon/fleet": ["ksym/base", "ksym/cli", "daemon/base",
                     "daemon/clickhouse", "daemon/history",
                     "daemon/http", "daemon/output", "daemon/profile",
                     "daemon/service"],
    "daemon/symbolize": KSYM + ["ksym/tools", "daemon/naming", "daemon/output",
                                "daemon/profile", "daemon/raw"],
    # The main functions.
    "daemon": ["ksym/cli", "ksym/tools", "daemon/base", "daemon/fleet",
               "daemon/output",
               "daemon/oneshot", "daemon/service", "daemon/symbolize",
               "daemon/ui"],
}

# Header pattern -> modules that may use it; a module stands for the directories
# below it as well.
RESTRICTED_HEADERS = {
    r"bpf/.*|.*\.skel\.h": ["bpf", "daemon/capture", "daemon/track",
                            "daemon/unwind"],
    r"(linux/)?bpf(_common)?\.h": ["bpf", "daemon/capture"],
    r"linux/perf_event\.h": ["bpf", "daemon/capture", "daemon/perf",
                             "daemon/track"],
    r"spdlog/.*|nlohmann/.*": ["daemon"],
    r"protozero/.*": ["daemon", "gen"],
    r"fmt/.*|CLI/.*": ["daemon", "gen", "ksym/cli", "ksym/tools"],
    r"libelf\.h|gelf\.h|elfutils/.*|dwarf\.h": [
        "ksym/elf", "ksym/dwarf", "ksym/fetch", "ksym/unwind"],
    # libksym has no threads and prints nothing; ksym/cli is no part of it.
    r"thread|jthread|future|condition_variable|pthread\.h": ["daemon", "gen",
                                                            "ksym/cli",
                                                            "ksym/tools"],
    r"iostream|syslog\.h": ["daemon", "gen", "ksym/tools"],
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]+(.*?)[ \t]*$')
NAME = re.compile(r'^[<"]([^>"]+)[>"]')
SOURCE = re.compile(r".*\.(h|c|cc|cpp|inc)$")
TOP_DIRECTORIES = ("bpf", "daemon", "gen", "ksym")


def contains(directories, path):
    return any(path == f or path.startswith(f + "/") for f in directories)


def module_of(path):
    """The longest entry of MODULES that holds the path, or None.

    Directories below an entry belong to it, but for the tops, ksym and daemon,
    whose entries stand for the files directly in them.
    """
    directory = os.path.dirname(path)
    if directory in MODULES:
        return directory
    while "/" in directory:
        directory = os.path.dirname(directory)
        if directory in MODULES and directory not in ("ksym", "daemon"):
            return directory
    return None


def check_include(module, header):
    """Why `module` may not include `header`, or None."""
    if header.startswith(".") or "/../" in header:
        return "includes are written from the project's root"
    for pattern, modules in RESTRICTED_HEADERS.items():
        if re.fullmatch(pattern, header) and not contains(modules, module):
            return "only allowed in " + ", ".join(modules)
    if not header.startswith(tuple(f + "/" for f in TOP_DIRECTORIES)):
        return None
    target = module_of(header)
    if target == module or target in MODULES[module]:
        return None
    # <bpf/...> is libbpf's directory as well as ours; where it may be used at
    # all has been checked above.
    if header.startswith("bpf/") and "bpf" in MODULES[module] + [module]:
        return None
    return f"{module} may include from: " + (
        ", ".join(MODULES[module]) or "nothing but itself")


def check_file(root, path):
    module = module_of(path)
    if module is None:
        return [f"{path}: its directory has no entry in MODULES"]
    problems = []
    with open(os.path.join(root, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            include = INCLUDE.match(line)
            if include is None:
                continue
            name = NAME.match(include.group(1))
            why = (check_include(module, name.group(1)) if name
                   else "an include names its header")
            if why:
                problems.append(f"{path}:{number}: {line.strip()}: {why}")
    return problems


def check_cycles(modules):
    """What is wrong with the modules among themselves, as sentences."""
    problems = [f"MODULES: {module} may include from {target}, which has no "
                "entry" for module, targets in modules.items()
                for target in targets if target not in modules]
    # An entry that stands for its own module, as in KSYM, is no cycle.
    graph = {module: [t for t in targets if t != module]
             for module, targets in modules.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        # The sorter tells a cycle against the direction of the includes.
        problems.append("MODULES: a cycle: " +
                        " includes ".join(reversed(error.args[1])))
    return problems


def check_tree(root):
    """All problems of the tree, and how many files were read."""
    problems, files = check_cycles(MODULES), 0
    for top in TOP_DIRECTORIES:
        for directory, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if not SOURCE.match(name):
                    continue
                path = os.path.relpath(os.path.join(directory, name), root)
                problems += check_file(root, path)
                files += 1
    return problems, files


# One line per rule: file, include, whether it is allowed.
CASES = [
    ("ksym/base/a.cc", '"ksym/base/result.h"', True),
    ("ksym/base/a.cc", '"ksym/elf/elf_image.h"', False),
    ("ksym/base/a.cc", '"ksym/symbolizer.h"', False),
    ("ksym/elf/a.cc", '"ksym/base/result.h"', True),
    ("ksym/elf/a.cc", '"ksym/process/process_image.h"', False),
    ("ksym/dwarf/a.cc", '"ksym/elf/elf_image.h"', True),
    ("ksym/symbolizer.h", '"ksym/process/process_image.h"', True),
    ("ksym/symbolizer.cc", '"ksym/tools/a.h"', False),
    ("ksym/symbolizer.cc", '"daemon/profile/profile.h"', False),
    ("ksym/symbolizer.cc", "<daemon/profile/profile.h>", False),
    ("ksym/kernel/a.h", '"bpf/profile_abi.h"', False),
    ("ksym/kernel/a.h", "<thread>", False),
    ("ksym/kernel/a.h", "<spdlog/spdlog.h>", False),
    ("ksym/kernel/a.h", "<fmt/format.h>", False),
    ("ksym/kernel/deeper/a.h", '"ksym/base/text.h"', True),
    ("ksym/kernel/a.h", "<vector>", True),
    ("ksym/kernel/a.h", '"../base/text.h"', False),
    ("ksym/kernel/a.h", "SOME_MACRO", False),
    ("ksym/tools/a.cc", "<fmt/format.h>", True),
    ("ksym/unheard_of/a.cc", "<vector>", False),
    ("gen/a.cc", '"ksym/kernel/kallsyms_blob.h"', True),
    ("gen/a.cc", '"daemon/profile/profile.h"', False),
    ("gen/a.cc", "<nlohmann/json.hpp>", False),
    ("bpf/a.bpf.c", "<bpf/bpf_helpers.h>", True),
    ("bpf/a.bpf.c", '"daemon/capture/a.h"', False),
    ("daemon/profile/a.cc", '"daemon/output/a.h"', False),
    ("daemon/profile/a.cc", '"daemon/capture/a.h"', False),
    ("daemon/profile/a.cc", "<bpf/libbpf.h>", False),
    ("daemon/profile/a.cc", '"daemon/naming/naming.h"', False),
    ("daemon/naming/a.cc", '"daemon/raw/raw_file.h"', True),
    ("daemon/track/a.cc", '"daemon/unwind/unwind_tables.h"', False),
    ("daemon/output/a.cc", '"daemon/profile/profile.h"', True),
    ("daemon/output/a.cc", '"daemon/capture/a.h"', False),
    ("daemon/output/a.cc", "<nlohmann/json.hpp>", True),
    ("daemon/capture/a.cc", '"daemon/output/a.h"', False),
    ("daemon/capture/a.cc", "<bpf/libbpf.h>", True),
    ("daemon/capture/a.cc", '"profile.skel.h"', True),
    ("daemon/capture/a.cc", '"bpf/profile_abi.h"', True),
    ("daemon/oneshot/a.cc", '"daemon/capture/a.h"', True),
    ("daemon/oneshot/a.cc", '"daemon/output/a.h"', True),
    ("daemon/oneshot/a.cc", '"daemon/service/a.h"', False),
    ("daemon/oneshot/a.cc", '"bpf/profile_abi.h"', False),
    ("daemon/profile/a.cc", '"daemon/oneshot/a.h"', False),
    ("daemon/ksym_profile.cc", '"daemon/oneshot/a.h"', True),
    ("daemon/ksym_profile.cc", '"daemon/capture/a.h"', False),
    ("daemon/ksym_profile.cc", "<bpf/libbpf.h>", False),
    ("daemon/ksym_profile.cc", '"profile.skel.h"', False),
]

# Modules and a part of what is said about them; None: nothing is wrong.
CYCLE_CASES = [
    ({"a": [], "b": ["a", "b"], "c": ["a", "b"]}, None),
    ({"a": ["b"], "b": ["a"]}, "a cycle: "),
    ({"a": ["b"], "b": ["c"], "c": ["a"], "d": []}, "a includes b"),
    ({"a": ["b"]}, "no entry"),
]


def self_test():
    wrong = 0
    for modules, said in CYCLE_CASES:
        problems = check_cycles(modules)
        if (said is None) != (not problems) or said and said not in problems[0]:
            print(f"{modules}: expected {said}: {problems}")
            wrong += 1
    for path, header, allowed in CASES:
        with tempfile.TemporaryDirectory() as root:
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full))
            with open(full, "w", encoding="utf-8") as file:
                file.write(f"#pragma once\n  #  include {header}  // why\n")
            problems, files = check_tree(root)
        if files != 1 or (not problems) != allowed:
            print(f"{path}: #include {header}: expected "
                  f"{'no problem' if allowed else 'a problem'}: {problems}")
            wrong += 1
    print(f"{len(CASES) + len(CYCLE_CASES)} cases, {wrong} wrong")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__)
        return 2
    problems, files = check_tree(arguments[0])
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(problems)} problems")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
