#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds what sources use of the standard library and do not include.

    check_includes.py ROOT            checks the tree at ROOT
    check_includes.py --self-test     proves that what is missing is found

A compiler finds that only where it has no precompiled headers and compiles each
source alone. A source has what its own includes lead to through headers of the
project; what another library's header happens to include does not count.
"""

import os
import re
import sys
import tempfile

DIRECTORIES = ("ksym", "gen", "daemon", "tests", "examples")

# Names of std:: by the header that the standard says has them. A move of a
# range, which is of <algorithm>, is not told from one of an object.
NAMES = {
    "algorithm": "sort stable_sort find find_if count_if any_of all_of none_of "
                 "min max clamp lower_bound upper_bound equal_range reverse "
                 "copy copy_if copy_n fill fill_n transform unique replace "
                 "replace_if min_element max_element equal partition_point "
                 "inplace_merge nth_element rotate is_sorted is_sorted_until "
                 "shuffle for_each binary_search set_union set_intersection "
                 "includes generate partition merge mismatch search count "
                 "lexicographical_compare move_backward",
    "array": "to_array",
    "atomic": "atomic memory_order_relaxed memory_order_acquire "
              "memory_order_release",
    "bit": "bit_cast bit_width bit_ceil bit_floor countl_zero countr_zero "
           "endian popcount byteswap",
    "bitset": "bitset",
    "charconv": "from_chars to_chars",
    "chrono": "chrono",
    "concepts": "unsigned_integral convertible_to integral",
    "condition_variable": "condition_variable",
    "cstddef": "byte to_integer",
    "cstdio": "snprintf printf fprintf fputs fflush perror fwrite fclose fgets "
              "vsnprintf vfprintf sscanf puts putchar getchar fread fopen "
              "tmpfile",
    "cstdlib": "abort getenv free malloc realloc atoi atof exit qsort strtol "
               "strtod strtoull",
    "cstring": "memcpy memcmp memset memmove memchr strlen strcmp strcpy "
               "strerror strrchr strcspn",
    "deque": "deque",
    "exception": "current_exception set_terminate",
    "expected": "expected unexpected",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream fstream",
    "functional": "function not_fn",
    "future": "future async launch future_status",
    "initializer_list": "initializer_list",
    "iterator": "back_inserter make_move_iterator istreambuf_iterator",
    "latch": "latch",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "unique_ptr shared_ptr weak_ptr make_unique make_shared "
              "make_unique_for_overwrite",
    "mutex": "mutex lock_guard scoped_lock unique_lock once_flag call_once",
    "new": "bad_alloc nothrow_t",
    "numeric": "iota accumulate partial_sum",
    "optional": "optional nullopt",
    "queue": "priority_queue queue",
    "random": "mt19937 mt19937_64 minstd_rand random_device "
              "uniform_int_distribution",
    "ranges": "views",
    "regex": "regex regex_match regex_replace smatch",
    "set": "set multiset",
    "span": "span as_bytes as_writable_bytes",
    "sstream": "istringstream ostringstream",
    "stdexcept": "runtime_error logic_error invalid_argument out_of_range",
    "stop_token": "stop_source stop_token",
    "string": "string to_string stoul stoull",
    "string_view": "string_view",
    "system_error": "error_code errc system_error generic_category",
    "thread": "thread jthread this_thread",
    "tuple": "tuple tie make_tuple",
    "type_traits": "invoke_result_t make_unsigned_t is_trivially_copyable_v",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set",
    "utility": "move forward exchange pair in_place cmp_less",
    "variant": "variant get_if holds_alternative monostate visit",
    "vector": "vector",
}
# Headers that have another one's names too, as the standard says.
ALSO = {
    "algorithm": ["ranges"],
    "array": ["tuple"],
    "string_view": ["string"],
    "initializer_list": ["vector", "string", "map", "set", "array"],
    "system_error": ["filesystem"],
    "iterator": ["string", "vector", "map", "set", "span", "array", "ranges"],
    "utility": ["map", "tuple", "unordered_map"],
    "stop_token": ["thread"],
}
HEADERS_OF = {name: [header] + ALSO.get(header, [])
              for header, names in NAMES.items() for name in names.split()}
# No word of the table above, as a header has its name.
HEADERS_OF["array"] = ["array"]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.M)
# Raw strings first: they have quotes.
NO_CODE = re.compile(
    r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.S)
USE = re.compile(r"\bstd::(?:ranges::)?(\w+)")


class Tree:
    """The sources below a directory, and what they include."""

    def __init__(self, root):
        self.root = root
        self.read_files = {}
        self.reached = {}

    def sources(self):
        for top in DIRECTORIES:
            for directory, _, names in os.walk(os.path.join(self.root, top)):
                for name in sorted(names):
                    if name.endswith((".cc", ".h")):
                        path = os.path.join(directory, name)
                        yield os.path.relpath(path, self.root)

    def read(self, path):
        """Names of std::, system headers and existing project headers."""
        if path not in self.read_files:
            with open(os.path.join(self.root, path), encoding="utf-8") as file:
                text = file.read()
            system, own = set(), set()
            beside = os.path.dirname(path)
            for mark, name in INCLUDE.findall(text):
                if mark == "<":
                    system.add(name)
                    continue
                for found in (name, os.path.join(beside, name)):
                    if os.path.isfile(os.path.join(self.root, found)):
                        own.add(os.path.normpath(found))
                        break
            names = set(USE.findall(NO_CODE.sub(" ", text)))
            self.read_files[path] = names, system, own
        return self.read_files[path]

    def headers_of(self, path):
        """All system headers that a source's own headers lead to."""
        if path not in self.reached:
            seen, left, system = {path}, [path], set()
            while left:
                _, some, own = self.read(left.pop())
                system |= some
                left += own - seen
                seen |= own
            self.reached[path] = system
        return self.reached[path]


def violations(root):
    tree = Tree(root)
    for path in tree.sources():
        names = tree.read(path)[0]
        has = tree.headers_of(path)
        for name in sorted(names):
            headers = HEADERS_OF.get(name, [])
            if headers and not has.intersection(headers):
                yield f"{path}: std::{name} without <{headers[0]}>"


def self_test():
    files = {
        "ksym/a.h": "#include <vector>\nstd::vector<int> a();\n",
        "ksym/a.cc": '#include "ksym/a.h"\n// std::map\n'
                     'const char* t = "std::set"; auto r = R"(std::list)";\n'
                     "std::vector<int> a() { return {}; }\n",
        "daemon/b.cc": '#include "ksym/a.h"\n#include <gtest/gtest.h>\n'
                       "std::vector<int> v; std::string s;\n"
                       "void f() { std::ranges::sort(v); }\n"}
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)),
                        exist_ok=True)
            with open(os.path.join(root, path), "w",
                      encoding="ascii") as file:
                file.write(text)
        found = list(violations(root))
    wanted = ["daemon/b.cc: std::sort without <algorithm>",
              "daemon/b.cc: std::string without <string>"]
    if found != wanted:
        sys.exit(f"self test: {found}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--self-test":
        self_test()
        return
    found = list(violations(sys.argv[1]))
    print("\n".join(found))
    if found:
        sys.exit(f"{len(found)} includes are missing")


if __name__ == "__main__":
    main()
