# SPDX-License-Identifier: Apache-2.0
"""Programs and files that a hostile neighbour would run: each is valid, and
each is far larger than anything real.
"""

import os
import shutil
import struct

SECTIONS = 1_000_000
SECTION_NAME_BYTES = 1 << 20
SYMBOLS = 2_000_000
MAPPINGS = 30_000
PATH_BYTES = 3900
PERF_MAP_FUNCTIONS = 500
PERF_MAP_NAME_BYTES = 60_000

# Of ELF files of 64 bits.
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB = 1, 2, 3
ALLOC, EXECUTE = 2, 4
FUNCTION = 0x12  # STB_GLOBAL, STT_FUNC


def section(name=0, kind=SHT_PROGBITS, offset=0, size=0, link=0, entry=0):
    return SECTION.pack(name, kind, 0, 0, offset, size, link, 0, 1, entry)


def code_section(name, address, size):
    return SECTION.pack(name, SHT_PROGBITS, ALLOC | EXECUTE, address, address,
                        size, 0, 0, 16, 0)


def aligned(data):
    return data + b"\0" * (-len(data) % 16)


def with_sections(program, target, build_table):
    """Copies a program, with other sections. build_table(offset) returns bytes
    to append at that offset of the file, the table's sections after the first
    as bytes, and the index of the section of their names."""
    with open(program, "rb") as file:
        data = aligned(file.read())
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(program + " is no ELF file of 64 bits, little endian")
    contents, sections, names = build_table(len(data))
    count = len(sections) // SECTION.size + 1
    fields = list(HEADER.unpack_from(data))
    # Large numbers are in the first section.
    fields[6] = len(data) + len(contents)
    fields[-2] = count if count < 0xff00 else 0
    fields[-1] = names if names < 0xff00 else 0xffff
    first = section(kind=0, size=count, link=names)
    with open(target, "wb") as file:
        file.write(HEADER.pack(*fields) + data[HEADER.size:])
        file.write(contents)
        file.write(first)
        file.write(sections)
    os.chmod(target, 0o755)
    return target


def many_sections(program, target, count=SECTIONS,
                  name_bytes=SECTION_NAME_BYTES):
    """A copy of a program with that many sections, all with the same name."""
    def build(offset):
        names = aligned(b"\0" + b"s" * name_bytes + b"\0")
        return (names,
                section(name=1, kind=SHT_STRTAB, offset=offset,
                        size=len(names)) +
                section(name=1, offset=offset, size=1) * (count - 2), 1)
    return with_sections(program, target, build)


def many_symbols(program, target, count=SYMBOLS):
    """A copy of a program with that many functions of one byte each."""
    def build(offset):
        text = aligned(b"\0.text\0.strtab\0.symtab\0" + b"f" * 200 + b"\0")
        functions = len(text) - 2
        symbols = b"".join(
            SYMBOL.pack(functions - 1 - i % 190, FUNCTION, 0, 1, 0x1000 + i, 1)
            for i in range(count))
        at = offset + len(text)
        return (text + symbols,
                code_section(1, 0x1000, count) +
                section(name=7, kind=SHT_STRTAB, offset=offset,
                        size=len(text)) +
                section(name=15, kind=SHT_SYMTAB, offset=at,
                        size=len(symbols), link=2, entry=SYMBOL.size), 2)
    return with_sections(program, target, build)


def large_frames(program, target, size):
    """A copy of a program whose call-frame information has that many bytes,
    none of which take room on the disk."""
    def build(offset):
        names = aligned(b"\0.eh_frame\0")
        return (names,
                section(name=0, kind=SHT_STRTAB, offset=offset,
                        size=len(names)) +
                SECTION.pack(1, SHT_PROGBITS, ALLOC, 0x10000, offset, size, 0,
                             0, 8, 0), 1)
    with_sections(program, target, build)
    os.truncate(target, size + os.stat(target).st_size)
    return target


def long_path(directory, size=PATH_BYTES):
    """Makes directories for a path of `size` bytes, and returns that path."""
    directory = os.path.abspath(directory)
    while len(directory) + 202 < size:
        directory = os.path.join(directory, "d" * 200)
    os.makedirs(directory, exist_ok=True)
    return os.path.join(directory, "f" * (size - len(directory) - 1))


def start_names(load):
    """A perf map that is a hundred times as large as any real one."""
    load.start("long_names", 1, PERF_MAP_FUNCTIONS, PERF_MAP_NAME_BYTES)


def start(load):
    """One process of each kind."""
    spinners = os.path.join(load.programs, "spinners")
    load.start(many_sections(spinners, os.path.join(load.directory, "sections")),
               1)
    load.start(many_symbols(spinners, os.path.join(load.directory, "symbols")), 1)
    far = long_path(load.directory)
    shutil.copy(spinners, far)
    # Two files by turns, so that no mapping continues its neighbour.
    shutil.copy(spinners, far[:-1])
    load.start("mapping_storm", 1, MAPPINGS, 200, far, far[:-1])
    start_names(load)
