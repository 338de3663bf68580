#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_library_page.py PAGE HEADER: the page's synopsis has the functions that
the header declares, with the same parameters, and groff formats it without a
warning where it is installed."""

import re
import sys

import check_page


def spaced(text):
    """A declaration's text with one kind of spaces."""
    return re.sub(r"\s*\*\s*", " *", " ".join(text.split())).strip()


def header_functions(text):
    """Name -> parameters, of each function that the header declares."""
    text = re.sub(r"//.*", "", text)
    found = re.findall(r"(?m)^[a-z][\w \n]*\*?[ \n](ksym_\w+)\(([^()]*)\);", text)
    return {name: [spaced(part) for part in parameters.split(",")]
            for name, parameters in found}


def page_functions(text):
    found = re.findall(r"(?m)^\.Fn (ksym_\w+) (void|\".*\")$",
                       text.split(".Sh DESCRIPTION")[0])
    return {name: [spaced(part) for part in
                   re.findall(r'"([^"]*)"', parameters)] or ["void"]
            for name, parameters in found}


def main():
    page, header = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        in_page = page_functions(file.read())
    with open(header, encoding="utf-8") as file:
        in_header = header_functions(file.read())
    assert len(in_header) > 15, in_header
    status = 0
    for name in sorted(in_page.keys() | in_header.keys()):
        if in_page.get(name) != in_header.get(name):
            print(f"{name}: page {in_page.get(name)}, "
                  f"header {in_header.get(name)}")
            status = 1
    warnings = check_page.formatting_warnings(page)
    if warnings:
        print(warnings)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
