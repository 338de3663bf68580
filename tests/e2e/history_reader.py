# SPDX-License-Identifier: Apache-2.0
"""Reads the directory of a history by what docs/formats.md says, and by
nothing else: a second reader, which finds what the first one and its writer
both have wrong."""

import collections
import ctypes
import os
import re
import struct
import zlib

ZSTD = ctypes.CDLL("libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
ZSTD.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t,
                                 ctypes.c_char_p, ctypes.c_size_t]
NAME = re.compile(r"(\d{12})(?:\.journal|-(\d{12})-(\d+)-(\d+)\.segment)$")
# Each table's columns: u, ULEB128; s, a step; d, a distance.
TABLES = {"functions": "suuuuuuuu", "nodes": "du", "kinds": "uuuuuu",
          "settings": "uuuuuuuuuuuu", "parts": "suuu", "counters": "uu",
          "series": "uusuuuuu", "rows": "ssssuu", "names": "suuu",
          "thinning": "u"}
# The tables that each version of the format brought.
NEW_TABLES = {1: [], 2: ["names"], 3: ["thinning"], 4: [], 5: [], 6: []}
# From which on a segment has a summary behind its columns, and flames behind
# that.
SUMMARY_VERSION = 4
FLAMES_VERSION = 5
# From which on the last column of the tables says in which 20 ms rows were.
SLICES_VERSION = 6
FLAME_TABLES = {"flames": "uuuuuu", "roots": "uuuu", "nodes": "duuuu",
                "counters": "uu"}


def unpack(packed, size):
    out = ctypes.create_string_buffer(max(size, 1))
    done = ZSTD.ZSTD_decompress(out, size, packed, len(packed))
    assert done == size, "packed bytes are damaged"
    return out.raw[:size]


def number(data, at, is_signed=False):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if is_signed and byte & 64:
        value -= 1 << shift
    return value, at


def read_tables(columns, codes_of_tables, tables):
    """Appends what columns have to lists of tuples."""
    columns = iter(columns)
    for name, codes in codes_of_tables.items():
        there, read = len(tables[name]), []
        for code in codes:
            data, values, at, before = next(columns), [], 0, 0
            while at < len(data):
                value, at = number(data, at, code == "s")
                if code == "s":
                    value = before = before + value
                elif code == "d":
                    value = there + len(values) - value
                values.append(value)
            read.append(values)
        assert len({len(values) for values in read}) == 1, name
        tables[name].extend(zip(*read))
    assert next(columns, None) is None


class File:
    """The tables of one file, each a list of tuples."""

    def __init__(self):
        self.strings = [""]
        self.summary = self.flames = None
        self.tables = {name: [] for name in TABLES}
        self.tables["nodes"].append((0, 0))
        self.slices = []  # by row

    def append(self, columns, version):
        lacking = sum(len(TABLES[name]) for later, names in NEW_TABLES.items()
                      for name in names if later > version)
        wanted = 2 + sum(map(len, TABLES.values()))
        slices = columns[-1] if version >= SLICES_VERSION else b""
        columns = columns[:-1] if version >= SLICES_VERSION else columns
        assert len(columns) == wanted - lacking
        columns = columns + [b""] * lacking
        sizes, texts = columns[:2]
        at = begin = 0
        while at < len(sizes):
            size, at = number(sizes, at)
            self.strings.append(texts[begin:begin + size].decode("utf-8",
                                                                 "replace"))
            begin += size
        assert begin == len(texts)
        read_tables(columns[2:], TABLES, self.tables)
        rows, at = len(self.tables["rows"]), 0
        while at < len(slices):
            value, at = number(slices, at)
            self.slices.append(value)
        # Nothing: none is known.
        self.slices.extend([0] * (rows - len(self.slices)) if not slices
                           else [])
        assert len(self.slices) == rows

    def stack(self, node):
        """Names, outermost first."""
        names = []
        while node:
            node, function = self.tables["nodes"][node]
            names.append(self.strings[self.tables["functions"][function][0]])
        return names[::-1]

    def shown(self, function):
        """The function as a flame graph shows it."""
        name, module, _, _, _, kind, reason, _, flags = \
            self.tables["functions"][function]
        return (*(self.strings[text] for text in (name, module, kind, reason)),
                flags)

    def shown_stack(self, node):
        """The same of a stack's functions, outermost first."""
        functions = []
        while node:
            node, function = self.tables["nodes"][node]
            functions.append(self.shown(function))
        return functions[::-1]

    def by_cgroup(self):
        """Samples by cgroup and kind."""
        sums = collections.Counter()
        for series, _, _, _, count, _ in self.tables["rows"]:
            _, cgroup, _, _, kind, *_ = self.tables["series"][series]
            sums[self.strings[cgroup],
                 self.strings[self.tables["kinds"][kind][0]]] += count
        return sums


def version_of(data):
    version = struct.unpack("<I", data[8:12])[0]
    assert version in NEW_TABLES
    return version


def split(payload):
    """The columns of a record."""
    place, columns = 0, []
    while place < len(payload):
        length, place = number(payload, place)
        columns.append(payload[place:place + length])
        place += length
    return columns


def read_journal(data):
    assert data[:8] == b"KSYMHJN\n"
    assert zlib.crc32(data[:20]) == struct.unpack("<I", data[20:24])[0]
    file, at = File(), 24
    while at + 12 <= len(data):
        packed_size, size, checksum = struct.unpack("<III", data[at:at + 12])
        packed = data[at + 12:at + 12 + packed_size]
        if zlib.crc32(packed, zlib.crc32(data[at:at + 8])) != checksum:
            break
        file.append(split(unpack(packed, size)), version_of(data))
        at += 12 + packed_size
    return file


def read_summary(payload, version):
    """The tables of a summary; nothing where there is none."""
    if not payload:
        return None
    file = File()
    file.append(split(payload), version)
    return file


class Flames:
    """The trees of a segment, for flame graphs of all of it."""

    def __init__(self, payload):
        self.tables = {name: [] for name in FLAME_TABLES}
        self.tables["nodes"].append((0, 0, 0, 0, 0))
        read_tables(split(payload), FLAME_TABLES, self.tables)

    def check(self, file):
        """Whether they say what the file's rows say."""
        node, root, counter = 1, 0, 0
        kinds = file.tables["kinds"]
        named = {kind[:2] for kind in kinds if kind[0]}
        assert len(self.tables["flames"]) == 1 + len(named)
        for i, flame in enumerate(self.tables["flames"]):
            kind, rare, value_of_sample, roots, nodes, counters = flame
            alike = set()
            if i > 0:
                named.remove(kinds[kind][:2])
                alike = {other for other in range(len(kinds))
                         if kinds[other][:2] == kinds[kind][:2]}
            shown = self.sums(file, (node, nodes), (root, roots),
                              value_of_sample)
            check_flame(shown, sums_of_stacks(file, alike), rare)
            said = {file.strings[name]: value for name, value
                    in self.tables["counters"][counter:counter + counters]}
            assert said == counters_of(file, alike)
            node, root, counter = node + nodes, root + roots, counter + counters
        assert (node, root, counter) == tuple(
            len(self.tables[name]) for name in ("nodes", "roots", "counters"))

    def sums(self, file, places, roots, value_of_sample):
        """(count, value), with all that is called, by path."""
        first, count = places
        paths, sums = {}, {}
        own_root = roots[0]
        for place in range(first, first + count):
            parent, frame, is_kernel, *_ = self.tables["nodes"][place]
            if parent == 0:
                comm, *states = self.tables["roots"][own_root]
                paths[place] = ((file.strings[comm], *states),)
                own_root += 1
            else:
                paths[place] = (*paths[parent],
                                (is_kernel, frame and file.shown(frame - 1)))
        assert own_root == sum(roots)
        totals = collections.defaultdict(lambda: [0, 0])
        for place in range(first + count - 1, first - 1, -1):
            parent, _, _, count, more = self.tables["nodes"][place]
            totals[place][0] += count
            totals[place][1] += count * value_of_sample + more
            for i in (0, 1):
                totals[parent][i] += totals[place][i]
            # Stacks below a mark are not told apart.
            if all(frame for _, frame in paths[place][1:]):
                assert paths[place] not in sums
                sums[paths[place]] = tuple(totals[place])
        sums[()] = tuple(totals[0])
        return sums


def sums_of_stacks(file, kinds):
    """The same of all rows of some kinds."""
    sums = collections.defaultdict(lambda: [0, 0])
    for series, user, kernel, _, count, value in file.tables["rows"]:
        comm, _, _, _, kind, *states = file.tables["series"][series]
        if kind not in kinds:
            continue
        _, _, _, rate, period, has_values = file.tables["kinds"][kind]
        if not has_values:
            value = count * (10**9 // rate if rate else period)
        path = [(file.strings[comm], *states)]
        path += [(0, function) for function in file.shown_stack(user)]
        path += [(1, function) for function in file.shown_stack(kernel)]
        for length in range(len(path) + 1):
            of_path = sums[tuple(path[:length])]
            of_path[0] += count
            of_path[1] += value
    return {path: tuple(of_path) for path, of_path in sums.items()} or {
        (): (0, 0)}


def check_flame(shown, all_sums, rare):
    assert all(all_sums[path] == of_path for path, of_path in shown.items())
    for path, (_, value) in all_sums.items():
        assert path in shown or value <= rare


def counters_of(file, kinds):
    """The sums of the counters of all parts, less the samples of other kinds."""
    others, damaged = collections.Counter(), collections.Counter()
    causes = {"stack-fault": {4}, "collision": {5}, "truncated": {2}}
    for series, _, _, part, count, _ in file.tables["rows"]:
        *_, kind, user, kernel, _ = file.tables["series"][series]
        if kind not in kinds:
            others[part] += count
            continue
        for cause, states in causes.items():
            damaged[part, cause] += count * bool(states & {user, kernel})
        damaged[part, "broken"] += count * (user == 3 or user >= 6)
    sums, first = collections.Counter(), 0
    for number_of_part, (_, _, _, counters) in enumerate(file.tables["parts"]):
        said = {file.strings[name]: value for name, value
                in file.tables["counters"][first:first + counters]}
        first += counters
        if number_of_part in others:
            said = {name: value for name, value in said.items()
                    if not name.startswith(("damaged ", "end ", "helped"))}
            for name in ("taken", "emitted"):
                said[name] -= others[number_of_part]
            for cause in (*causes, "broken"):
                said["damaged " + cause] = damaged[number_of_part, cause]
        sums.update(said)
    return {name: value for name, value in sums.items() if value}


def read_segment(data):
    assert data[:8] == b"KSYMHSG\n"
    count, checksum = struct.unpack("<II", data[28:36])
    entries = data[36:36 + 12 * count]
    assert zlib.crc32(entries, zlib.crc32(data[:32])) == checksum
    columns, at = [], 36 + 12 * count
    for packed_size, size, checksum in struct.iter_unpack("<III", entries):
        packed = data[at:at + packed_size]
        assert zlib.crc32(packed) == checksum
        columns.append(unpack(packed, size))
        at += packed_size
    assert at == len(data)
    file = File()
    flames = b""
    if version_of(data) >= FLAMES_VERSION:
        flames = columns.pop()
    if version_of(data) >= SUMMARY_VERSION:
        file.summary = read_summary(columns.pop(), version_of(data))
    file.append(columns, version_of(data))
    assert len(file.tables["thinning"]) <= 1
    if file.summary:
        assert file.summary.by_cgroup() == file.by_cgroup()
    if flames:
        file.flames = Flames(flames)
        file.flames.check(file)
    return file


def read_directory(directory):
    """The files that count, oldest first; nobody writes that directory."""
    found = []
    for name in os.listdir(directory):
        match = NAME.match(name)
        if match:
            first = int(match[1])
            found.append((first, -int(match[2] or first), match[2] is None,
                          name))
    files, covered_to = [], 0
    for first, last, is_journal, name in sorted(found):
        if -last <= covered_to:
            continue
        with open(os.path.join(directory, name), "rb") as file:
            data = file.read()
        files.append(read_journal(data) if is_journal else read_segment(data))
        covered_to = covered_to if is_journal else -last
    return files


def names_of(files):
    """(namespace, pod, container) by cgroup, of the last file that has any."""
    names = {}
    for file in files:
        for cgroup, *texts in file.tables["names"]:
            names[file.strings[cgroup]] = tuple(file.strings[text]
                                                for text in texts)
    return names


def sums_of(file):
    """(count, value) by (command, cgroup, pid, tid, kind, part)."""
    sums = collections.defaultdict(lambda: (0, 0))
    for series, _, _, part, *more in file.tables["rows"]:
        comm, cgroup, pid, tid, kind, *_ = file.tables["series"][series]
        key = (file.strings[comm], file.strings[cgroup], pid, tid, kind, part)
        sums[key] = tuple(map(sum, zip(sums[key], more)))
    return dict(sums)


def samples_when_thinned(file):
    """What samples_of() is to give of it once it is thinned out, and how many
    stacks are folded then."""
    kinds, nodes = file.tables["kinds"], file.tables["nodes"]
    kind_of = [series[4] for series in file.tables["series"]]
    sums = collections.defaultdict(lambda: [0, 0])
    for series, _, _, _, count, value in file.tables["rows"]:
        of_kind = sums[kinds[kind_of[series]][:2]]
        of_kind[0] += count
        of_kind[1] += value
    weights = [0] * len(nodes)
    for series, user, kernel, _, count, value in file.tables["rows"]:
        kind = kinds[kind_of[series]]
        counts, values = sums[kind[:2]]
        is_large = kind[5] and value * counts > values
        for node in (user, kernel):
            weights[node] += 2 if is_large else count
    for node in range(len(nodes) - 1, 0, -1):
        weights[nodes[node][0]] += weights[node]

    def is_rare(node):
        return nodes[node][0] != 0 and weights[node] == 1

    def stack(node):
        mark = ()
        while is_rare(node):
            node, mark = nodes[node][0], ("[rare callees]",)
        return (*file.stack(node), *mark)
    samples = collections.Counter()
    for series, user, kernel, _, count, _ in file.tables["rows"]:
        comm, _, pid, *_ = file.tables["series"][series]
        samples[file.strings[comm], pid, stack(user), stack(kernel)] += count
    return samples, sum(map(is_rare, range(1, len(nodes))))


def samples_of(files):
    """How many there are by (command, pid, user stack, kernel stack)."""
    samples = collections.Counter()
    for file in files:
        for series, user, kernel, _, count, _ in file.tables["rows"]:
            comm, _, pid, *_ = file.tables["series"][series]
            samples[file.strings[comm], pid, tuple(file.stack(user)),
                    tuple(file.stack(kernel))] += count
    return samples
