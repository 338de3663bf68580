# SPDX-License-Identifier: Apache-2.0
"""Programs whose files are hostile, and that run."""

import os
import shutil
import stat
import struct

from attacks import EVIL, wait
from loads import hostile

SYMBOL_BYTES = 24
DEBUG_FILES = 20
DEBUG_FILE_BYTES = 1 << 38  # sparse
MANY_ROWS = 4_000_000
# Of DWARF.
ADVANCE_LOC_1 = b"\x41"
DEF_CFA_OFFSET = b"\x0e"


def sections(place):
    path = hostile.many_sections(
        place.program("spinners"), place.path(EVIL + "-sections"),
        place.random.choice([70_000, 400_000, 1_000_000]),
        place.random.choice([1, 1 << 12, 1 << 20]))
    place.start_load(path, 1)
    wait()


def symbols(place):
    path = hostile.many_symbols(
        place.program("spinners"), place.path(EVIL + "-symbols"),
        place.random.choice([100_000, 700_000, 1_500_000]))
    place.start_load(path, 1)
    wait()


def long_names(place):
    """Each function's name is megabytes long, and they share them."""
    count = place.random.randrange(100, 20_000)
    size = place.random.choice([1 << 12, 1 << 16, 1 << 22])

    def build(offset):
        prefix = place.random.choice([b"", b"_Z", b"_R", b"_D", b"_ZN1"])
        name = prefix + EVIL.encode() * (size // 4)
        text = hostile.aligned(b"\0" + name + b"\0")
        functions = b"".join(
            hostile.SYMBOL.pack(1 + i % 1000 * 4, hostile.FUNCTION, 0, 1,
                                0x1000 + i, 1)
            for i in range(count))
        return (text + functions,
                hostile.code_section(0, 0x1000, count) +
                hostile.section(kind=hostile.SHT_STRTAB, offset=offset,
                                size=len(text)) +
                hostile.section(kind=hostile.SHT_SYMTAB,
                                offset=offset + len(text),
                                size=len(functions), link=2,
                                entry=SYMBOL_BYTES), 2)
    place.start_load(hostile.with_sections(
        place.program("spinners"), place.path(EVIL + "-names"), build), 1)
    wait()


def entry(body):
    return struct.pack("<I", len(body)) + body


def frame_rows(place):
    """Call-frame information with a row for each byte of code."""
    rows = place.random.choice([10_000, 500_000, MANY_ROWS])
    common = entry(hostile.aligned(
        struct.pack("<IB", 0, 1) + b"zR\0" + b"\1\x78\x10\1\x03" +
        b"\x0c\7\10\x90\1"))

    def build(offset):
        names = hostile.aligned(b"\0.eh_frame\0")
        steps = b"".join(ADVANCE_LOC_1 + DEF_CFA_OFFSET + bytes([8 + i % 100])
                         for i in range(100)) * (rows // 100)
        frame = entry(hostile.aligned(
            struct.pack("<III", len(common) + 4, 0x1000, 0x7000_0000) +
            b"\0" + steps))
        data = common + frame + b"\0\0\0\0"
        at = offset + len(names)
        return (names + data,
                hostile.section(kind=hostile.SHT_STRTAB, offset=offset,
                                size=len(names)) +
                hostile.SECTION.pack(1, hostile.SHT_PROGBITS, hostile.ALLOC,
                                     0x10000, at, len(data), 0, 0, 8, 0), 1)
    place.start_load(hostile.with_sections(
        place.program("spinners"), place.path(EVIL + "-rows"), build), 1)
    wait()


def debug_links(place):
    """Programs whose debug files are huge and sparse, or no files."""
    directory = place.path(".debug")
    os.makedirs(directory)
    for i in range(DEBUG_FILES):
        name = b"%s-%d.debug" % (EVIL.encode(), i)
        path = os.path.join(directory, name.decode())
        kind = place.random.randrange(4)
        if kind == 0:
            os.mkfifo(path)
        elif kind == 1:
            os.symlink("/dev/zero", path)
        else:
            with open(path, "wb") as file:
                file.truncate(place.random.choice(
                    [200 << 20, (256 << 20) + 1, DEBUG_FILE_BYTES]))

        def build(offset, name=name):
            link = name + b"\0" * (4 - len(name) % 4) + struct.pack("<I", i)
            names = hostile.aligned(b"\0.gnu_debuglink\0")
            return (names + link,
                    hostile.section(kind=hostile.SHT_STRTAB, offset=offset,
                                    size=len(names)) +
                    hostile.section(name=1, offset=offset + len(names),
                                    size=len(link)), 1)
        place.start_load(hostile.with_sections(
            place.program("spinners"), place.path("%s-link-%d" % (EVIL, i)),
            build), 1)
    wait()


def twins(place):
    """The victim's own program with its build-id, and other names in it."""
    with open(place.program("calls"), "rb") as file:
        data = file.read()
    for name in [b"Recurse", b"Allocate", b"CallLibrary", b"Compare"]:
        data = data.replace(name, EVIL.encode() + name[4:])
    path = place.path(EVIL + "-twin")
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o755)
    while True:
        place.start(path)
        place.start(place.program("calls")).wait()


def noise(place):
    """Programs that run, with bytes at random where no code is."""
    with open(place.program("spinners"), "rb") as file:
        whole = file.read()
    fields = hostile.HEADER.unpack_from(whole)
    table, count = fields[6], fields[-2]
    while True:
        data = bytearray(whole)
        # The table of sections, and what is not in memory before it.
        start = table - place.random.choice([0, 1000, 8000])
        for _ in range(place.random.randrange(1, 200)):
            at = place.random.randrange(max(start, len(data) * 3 // 4),
                                        table + count * 64)
            data[at] = place.random.choice([0, 1, 0x7f, 0x80, 0xff])
        path = place.path("%s-%d" % (EVIL, place.random.getrandbits(40)))
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o755)
        process = place.start_load(path, 1)
        try:
            process.wait(0.3)
        except Exception:
            process.kill()
            process.wait()
        os.unlink(path)


def replaced(place):
    """A program whose file is replaced, deleted and cut while it runs."""
    while True:
        path = place.path(EVIL + "-program")
        shutil.copy(place.program("spinners"), path)
        os.chmod(path, stat.S_IRWXU)
        process = place.start_load(path, 1)
        kind = place.random.randrange(3)
        if kind == 0:
            os.unlink(path)
        elif kind == 1:
            shutil.copy(place.program("calls"), path + "2")
            os.rename(path + "2", path)
        else:
            os.unlink(path)
            os.mkfifo(path)
        try:
            process.wait(0.5)
        except Exception:
            process.kill()
            process.wait()
        if os.path.lexists(path):
            os.unlink(path)


KINDS = {"sections": sections, "symbols": symbols, "long-names": long_names,
         "frame-rows": frame_rows, "debug-links": debug_links, "twins": twins,
         "noise": noise, "replaced": replaced}
