# SPDX-License-Identifier: Apache-2.0
"""An independent view of which bytes of a file have a symbol: readelf's."""

import bisect
import functools
import re
import subprocess

SYMBOL = re.compile(r"^\s*\d+: ([0-9a-f]+)\s+(\d+|0x[0-9a-f]+) (\w+)\s+\w+\s+"
                    r"\w+\s+(\w+)", re.M)
LOAD = re.compile(r"^\s*LOAD\s+0x(\w+)\s+0x(\w+)\s+0x\w+\s+0x(\w+)", re.M)
BUILD_ID = re.compile(r"Build ID: (..)(\w+)")


def readelf(options, path):
    done = subprocess.run(["readelf", "-W", options, path], text=True,
                          capture_output=True, check=False, errors="replace")
    return done.stdout


@functools.cache
def tables(path):
    """Loaded parts as (offset, address, size), and covered ranges."""
    loads = [tuple(int(text, 16) for text in found)
             for found in LOAD.findall(readelf("-l", path))]
    texts = [readelf("-s", path)]
    build_id = BUILD_ID.search(readelf("-n", path))
    if build_id:
        texts.append(readelf("-s", "/usr/lib/debug/.build-id/%s/%s.debug" %
                             build_id.groups()))
    ranges = []
    for text in texts:
        for start, size, kind, section in SYMBOL.findall(text):
            if kind in ("FUNC", "IFUNC", "NOTYPE") and section != "UND" and int(size, 0):
                ranges.append((int(start, 16), int(start, 16) + int(size, 0)))
    ranges.sort()
    # The furthest end so far, because symbols may be nested.
    ends, end = [], 0
    for _, stop in ranges:
        end = max(end, stop)
        ends.append(end)
    return loads, [start for start, _ in ranges], ends


def covers(path, offset):
    """Whether a function symbol covers the byte; None if nobody can tell."""
    loads, starts, ends = tables(path)
    if not loads:
        return None
    for file_offset, address, size in loads:
        if file_offset <= offset < file_offset + size:
            at = bisect.bisect_right(starts, address + offset - file_offset)
            return at > 0 and address + offset - file_offset < ends[at - 1]
    return None
