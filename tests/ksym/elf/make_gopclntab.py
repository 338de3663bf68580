#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes hand-made tables of Go functions, one file per layout.

    make_gopclntab.py DIRECTORY

They are what the linkers of these versions of Go write into .gopclntab, with
the parts that ksym/elf/go_symbols.h does not name left empty, for a program
whose .text is [0x401000, 0x401100). They are both a fixture of
go_symbols_test and the corpus of gopclntab_fuzz, and are kept there.
"""

import os
import struct
import sys

TEXT = 0x401000
FUNCTIONS = [(0x00, b"main.init"), (0x10, b"main.main"),
             (0x50, b"main.(*T).String")]
END = 0x100

NAMES = b"".join(name + b"\0" for _, name in FUNCTIONS)
PLACES = [sum(len(name) + 1 for _, name in FUNCTIONS[:i])
          for i in range(len(FUNCTIONS))]
# What follows a function's start and name in its record.
REST = b"\0" * 28


def pad(data, size):
    return data + b"\0" * (-len(data) % size)


def header(magic, word):
    return struct.pack("<IHBB", magic, 0, 1, word)


def number(value, size):
    return value.to_bytes(size, "little")


def list_and_records(starts, end, places, records_at, field):
    """The list, and behind it the records, at `records_at` + list's size."""
    lines, records = b"", b""
    behind = records_at + (2 * len(starts) + 1) * field + 4
    for start, name in zip(starts, places):
        lines += number(start, field) + number(behind + len(records), field)
        records += pad(number(start, field) + number(name, 4) + REST, 8)
    return lines + number(end, field) + b"\0" * 4 + records


def go1_2(word):
    start = header(0xfffffffb, word) + number(len(FUNCTIONS), word)
    starts = [TEXT + at for at, _ in FUNCTIONS]
    size = len(list_and_records(starts, TEXT + END, PLACES, 0, word))
    places = [len(start) + size + place for place in PLACES]
    return start + list_and_records(starts, TEXT + END, places, len(start),
                                    word) + NAMES


def go1_16(word):
    names_at = 8 + 7 * word
    list_at = len(pad(b"\0" * names_at + NAMES, 8))
    words = [len(FUNCTIONS), 0, names_at, list_at, list_at, list_at, list_at]
    start = header(0xfffffffa, word) + b"".join(number(w, word) for w in words)
    starts = [TEXT + at for at, _ in FUNCTIONS]
    return pad(start + NAMES, 8) + list_and_records(starts, TEXT + END, PLACES,
                                                    0, word)


def go1_18(word, magic=0xfffffff0, text=TEXT):
    names_at = 8 + 8 * word
    list_at = len(pad(b"\0" * names_at + NAMES, 8))
    words = [len(FUNCTIONS), 0, text, names_at, list_at, list_at, list_at,
             list_at]
    start = header(magic, word) + b"".join(number(w, word) for w in words)
    starts = [at for at, _ in FUNCTIONS]
    return pad(start + NAMES, 8) + list_and_records(starts, END, PLACES, 0, 4)


def main(arguments):
    if len(arguments) != 1:
        print(__doc__)
        return 2
    tables = {
        "go1_2": go1_2(8), "go1_2_32bit": go1_2(4),
        "go1_16": go1_16(8), "go1_16_32bit": go1_16(4),
        "go1_18": go1_18(8), "go1_18_32bit": go1_18(4),
        "go1_20": go1_18(8, 0xfffffff1),
        "no_text_start": go1_18(8, 0xfffffff1, 0),
    }
    for name, table in tables.items():
        with open(os.path.join(arguments[0], name), "wb") as file:
            file.write(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
