# SPDX-License-Identifier: Apache-2.0
"""Rows of a fleet in ClickHouse, as docs/fleet.md describes them: written by a
test, which knows their sums."""

import hashlib
import struct

# The kinds of frames that tests use.
MARK, NATIVE, JIT, KERNEL, PYTHON = 0, 1, 3, 4, 8
EMPTY_STACK = 0xe3b0c44298fc1c14


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    length, out = len(data), b""
    while length >= 0x80:
        out += bytes([length & 0x7f | 0x80])
        length >>= 7
    return out + bytes([length]) + data


def array(values, encode):
    # Lengths of arrays and of texts are written alike.
    return text(b"\0" * len(values))[:-len(values) or None] + b"".join(
        encode(value) for value in values)


def stack_number(frames):
    content = b""
    for kind, name, module in frames:
        content += bytes([kind])
        for part in (name, module):
            data = part if isinstance(part, bytes) else part.encode()
            content += struct.pack("<I", len(data)) + data
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big")


class FleetRows:
    """Rows that wait to be inserted."""

    def __init__(self):
        self.samples = []
        self.stacks = {}
        self.intervals = []

    def interval(self, time, host, run="r" * 16, kinds=("cpu",), lost=0,
                 taken=190, seconds=10, attempt=1):
        self.intervals.append(
            struct.pack("<I", time) + text(host) + text(run) +
            struct.pack("<QQI", attempt, seconds * 10**9, 2) + text("6.1") +
            text("x86_64") + text("1") + array(kinds, text) +
            array(["nanoseconds"] * len(kinds), text) +
            array([19] * len(kinds), lambda hz: struct.pack("<Q", hz)) +
            struct.pack("<QQI", taken, lost, 1))

    def sample(self, time, frames, count, value, *, service="shop", host="a",
               run="r" * 16, kind="cpu", command="main", unit="", namespace="",
               pod="", container="", container_id="", version="", parked=0,
               has_stack=True):
        number = stack_number(frames)
        if has_stack:
            self.stacks[(time // 86400, number)] = frames
        self.samples.append(
            struct.pack("<II", time, time // 3600 * 3600) +
            b"".join(text(each) for each in (
                service, host, run, kind, command, unit, namespace, pod,
                container, container_id, version)) +
            struct.pack("<BQQQ", parked, number, count, value))

    def insert(self, server):
        stacks = [
            struct.pack("<HQ", day, number) +
            array([name for _, name, _ in frames], text) +
            array([module for _, _, module in frames], text) +
            array([kind for kind, _, _ in frames], lambda k: bytes([k]))
            for (day, number), frames in self.stacks.items()]
        for table, rows in (("intervals", self.intervals), ("stacks", stacks),
                            ("samples", self.samples)):
            if rows:
                server.insert(table, b"".join(rows))
