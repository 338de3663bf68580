#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names the source files that do not say under which licence they are.

    check_licences.py ROOT
"""

import os
import subprocess
import sys

ENDINGS = (".c", ".cc", ".cmake", ".css", ".h", ".html", ".js", ".mjs", ".py",
           ".s", ".sh", "CMakeLists.txt")
# What tests read byte by byte.
DATA = ("tests/data/", "tests/fuzz/corpus/")
TAG = "SPDX-License-Identifier: "
FIRST_LINES = 3


def is_source(path, first):
    return not path.startswith(DATA) and (
        path.endswith(ENDINGS) or first.startswith("#!"))


def main():
    root = sys.argv[1]
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"],
                            stdout=subprocess.PIPE, check=False)
    if listed.returncode != 0:
        print("skipped: not a checkout of git")
        return 77
    missing = []
    for path in filter(None, listed.stdout.decode().split("\0")):
        full = os.path.join(root, path)
        if not os.path.isfile(full):
            continue
        with open(full, encoding="utf-8", errors="replace") as file:
            lines = [file.readline(200) for _ in range(FIRST_LINES)]
        if is_source(path, lines[0]) and not any(TAG in line for line in lines):
            missing.append(path)
    for path in missing:
        print(f"{path}: no line with {TAG}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
