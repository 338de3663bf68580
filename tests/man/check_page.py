#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_page.py PAGE PROGRAM [COMMAND...]: the page has the options of --help.

Each option that the program's --help names, and that of each of its commands,
has an entry (".It Fl") in the page, and each entry is an option that one of
them knows. Where groff is
installed it also formats the page without a warning.
"""

import re
import shutil
import subprocess
import sys

# An option in a help text: at a word's start, not within one.
HELP_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[A-Za-z])(?![\w-])")
PAGE_OPTION = re.compile(r"\bFl (-?[A-Za-z][a-z-]*)")


def help_options(text):
    """Options of a help text, without those of other programs in it."""
    text = text.split("\nExamples:")[0]
    return set(HELP_OPTION.findall(re.sub(r"\bnm -\S+", "nm", text)))


def page_entries(text):
    """Per entry of an mdoc page, the set of its option's spellings."""
    return [{"-" + name for name in PAGE_OPTION.findall(line)}
            for line in text.splitlines() if line.startswith(".It Fl ")]


def formatting_warnings(page):
    """What groff says of the page; None where it is not installed."""
    if shutil.which("groff") is None:
        return None
    done = subprocess.run(["groff", "-mdoc", "-Tutf8", "-ww", page],
                          capture_output=True, text=True, check=False)
    return done.stderr


def main():
    page, program, *commands = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        entries = page_entries(file.read())
    known = set()
    for command in [[], *([name] for name in commands)]:
        shown = subprocess.run([program, *command, "--help"], check=True,
                               capture_output=True, text=True).stdout
        options = help_options(shown)
        assert len(options) >= 4, f"{program} {command}: no options found"
        known |= options
    # The usual ones need not be written down, neither there nor here.
    usual = {"-h", "--help", "--version"}
    status = 0
    for option in sorted(known - usual - set().union(*entries)):
        print(f"{page}: {option} of {program} --help has no entry")
        status = 1
    for entry in entries:
        # A usage line may have one spelling of several.
        if not entry & (known | usual):
            print(f"{page}: {program} --help has none of {sorted(entry)}")
            status = 1
    warnings = formatting_warnings(page)
    if warnings is None:
        print("groff is not installed: the page's markup was not checked")
    elif warnings:
        print(warnings)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
