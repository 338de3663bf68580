#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds in corpus/raw_profile_fuzz: raw captures as whole files and
as bare payloads, see docs/formats.md. Run without arguments."""

import pathlib
import struct
import zlib


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def chunk(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, numbers):
    return chunk(field, b"".join(varint(n) for n in numbers))


def zigzag(n):
    return n << 1 if n >= 0 else (-n << 1) - 1


def stack(stack_id, frames, extra=b""):
    deltas = [zigzag(b - a) for a, b in zip([0] + frames, frames)]
    fixed = varint(1 << 3 | 1) + struct.pack("<Q", stack_id)
    return chunk(4, fixed + packed(2, deltas) + extra)


def mixed_stack(stack_id, runs):
    """runs: (kind, frames); a frame is an address, or (unit, value)."""
    address = unit = value = 0
    frames = b""
    for kind, run in runs:
        frames += varint(kind) + varint(len(run))
        for frame in run:
            if kind == 0:
                frames += varint(zigzag(frame - address))
                address = frame
            else:
                frames += varint(zigzag(frame[0] - unit))
                frames += varint(zigzag(frame[1] - value))
                unit, value = frame
    fixed = varint(1 << 3 | 1) + struct.pack("<Q", stack_id)
    return chunk(4, fixed + chunk(7, frames) + number(5, 0))


def mapping(start, size, path):
    numbers = enumerate([start, size, 0x1000, 8, 1, 77, path], start=1)
    return chunk(5, b"".join(number(field, n) for field, n in numbers))


def process(pid, mappings):
    return chunk(5, number(1, pid) + number(3, 5) + number(4, 1) + mappings)


def full():
    metadata = chunk(1, b"0.1.0") + chunk(2, b"cpu-clock") + number(3, 99)
    accounting = number(1, 12) + number(2, 10) + packed(3, [1, 1, 0])
    samples = [[0, 1], [0, 9], [1, 1], [16, 1], [17, 0], [7, 3]]
    return b"".join([
        chunk(1, metadata + chunk(13, b"a warning")),
        chunk(2, accounting + packed(4, [0, 0, 1])),
        stack(100, [0x401136, 0x401180, 0x7F0000000000]),
        stack(200, [0xFFFFFFFF81000000 - (1 << 64)], number(3, 1)),
        stack(300, [], number(4, 1)),
        process(1, mapping(0x400000, 0x2000, 2) + mapping(0x500000, 1, 2)),
        process(2, b""),
        chunk(6, b"".join(packed(i + 1, c) for i, c in enumerate(samples))),
        chunk(3, b""), chunk(3, b"app"), chunk(3, b"/usr/bin/app"),
        chunk(7, b"symbols"), number(8, 0), chunk(9, b"\x7fELF"),
        chunk(11, number(1, 8) + number(2, 1) + number(3, 77) + number(4, 2) +
              chunk(5, b"0123abcd") + chunk(6, number(1, 0x1000) +
                                            number(2, 0x2000) +
                                            number(3, 0x401000))),
        chunk(12, chunk(1, b"[kernel]") + chunk(2, b"ab") +
              number(3, 0xFFFFFFFF81000000) + number(4, 0x1000000)),
    ])


def mixed():
    python = [(0x7F0000001000, 12), (0x7F0000001200, 4)]
    return b"".join([
        chunk(1, chunk(2, b"cpu-clock") + number(3, 99) + chunk(14, b"auto")),
        chunk(2, number(1, 3) + number(2, 3)),
        mixed_stack(100, [(0, [0x401136, 0x401180]), (1, python),
                          (0, [0x401200]), (2, [(77, 1 << 40)])]),
        process(1, mapping(0x400000, 0x2000, 1)),
        chunk(6, b"".join(packed(i + 1, [n])
                          for i, n in enumerate([0, 0, 0, 16, 0, 3]))),
        chunk(3, b"app"), chunk(3, b"/usr/bin/app"),
    ])


def kinds():
    """Samples of CPU time and of waits, which have values."""
    cpu = chunk(1, b"cpu") + chunk(2, b"nanoseconds") + number(4, 99)
    wait = chunk(1, b"blocked") + chunk(2, b"nanoseconds") + number(6, 1)
    samples = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [3, 2], [0, 1], [0, 900]]
    return b"".join([
        chunk(1, chunk(2, b"cpu-clock") + number(3, 99) + chunk(28, cpu) +
              chunk(28, wait)),
        chunk(2, number(1, 5) + number(2, 5)),
        process(1, b""),
        chunk(6, b"".join(packed(i + 1, c) for i, c in enumerate(samples))),
        chunk(3, b"app"),
    ])


def thread_sums():
    """Of three threads, two of which are listed."""
    columns = [[7, 7], [7, 8], [0, 1], [900, 1 << 63], [20, 0], [300, 4]]
    totals = [3, 1000, 20, 1 << 40]
    return b"".join([
        chunk(1, chunk(2, b"sched_switch") + number(3, 99)),
        chunk(2, number(1, 0) + number(2, 0)),
        chunk(3, b"app"), chunk(3, b"worker \xff"),
        chunk(16, b"".join(number(i + 1, n) for i, n in enumerate(totals)) +
              b"".join(packed(i + 5, c) for i, c in enumerate(columns))),
    ])


def with_header(payload, version=1):
    head = struct.pack("<IIQ", version, zlib.crc32(payload), len(payload))
    return b"KSYMRAW\n" + head + payload


def main():
    directory = pathlib.Path(__file__).parent / "corpus" / "raw_profile_fuzz"
    directory.mkdir(parents=True, exist_ok=True)
    payload = full()
    seeds = {
        "empty_capture": with_header(b""),
        "full_file": with_header(payload),
        "full_payload": payload,
        "mixed_file": with_header(mixed(), 3),
        "mixed_payload": mixed(),
        "kinds_file": with_header(kinds(), 4),
        "kinds_payload": kinds(),
        "thread_sums_file": with_header(thread_sums(), 5),
        "thread_sums_payload": thread_sums(),
        "truncated_file": with_header(payload)[:-1],
        "huge_length": chunk(3, b"x")[:1] + varint(1 << 40),
        "shared_path": chunk(3, b"p" * 4096) + process(
            1, b"".join(mapping(16 + i, 1, 0) for i in range(64))),
        "uneven_columns": chunk(3, b"") + process(1, b"") + chunk(
            6, packed(1, [0, 0]) + packed(2, [0])),
    }
    for name, data in seeds.items():
        (directory / name).write_bytes(data)


if __name__ == "__main__":
    main()
