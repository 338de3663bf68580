#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds hash tables of texts whose hash has no secret.

    check_hashes.py ROOT            checks the tree at ROOT
    check_hashes.py --self-test     proves that such a table is found

Others choose names so that all have one slot of a table, where they know the
hash: std::hash is the same in all processes (ksym/base/keyed_hash.h).
"""

import os
import re
import sys
import tempfile

DIRECTORIES = ("ksym", "gen", "daemon")
TABLE = re.compile(r"\bunordered_(?:multi)?(map|set)\s*<")
TEXT = re.compile(r"\bstring(?:_view)?\b|\bvector\b|\bspan\b")
HASH_OF_TEXT = re.compile(r"\bstd::hash\s*<\s*std::string")


def without_comments(source):
    """The same text with blanks for comments, so that places stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    return re.sub(r"//[^\n]*|/\*.*?\*/", blank, source, flags=re.DOTALL)


def arguments(source, begin):
    """The arguments of the template whose first one begins there."""
    found, depth, start = [], 0, begin
    for at in range(begin, len(source)):
        char = source[at]
        if depth == 0 and char in ",>":
            found.append(source[start:at].strip())
            start = at + 1
            if char == ">":
                return found
        elif char in "<({":
            depth += 1
        elif char in ">)}":
            depth -= 1
    return found


def findings(source):
    """Lines with a table of texts, or a hash, that has no secret."""
    source = without_comments(source)
    places = [match.start() for match in HASH_OF_TEXT.finditer(source)]
    for match in TABLE.finditer(source):
        given = arguments(source, match.end())
        before_hash = 2 if match.group(1) == "map" else 1
        if TEXT.search(given[0]) and len(given) <= before_hash:
            places.append(match.start())
    return sorted(source.count("\n", 0, place) + 1 for place in places)


def check(root):
    bad = 0
    for directory in DIRECTORIES:
        for path, _, names in os.walk(os.path.join(root, directory)):
            for name in sorted(names):
                if not name.endswith((".cc", ".h")):
                    continue
                full = os.path.join(path, name)
                with open(full, encoding="utf-8") as file:
                    for line in findings(file.read()):
                        bad += 1
                        print(f"{os.path.relpath(full, root)}:{line}: the hash "
                              "of a text needs a secret, as ksym::TextHash")
    return bad


SELF_TEST = """
std::unordered_map<std::string, int> bad;
// std::unordered_map<std::string, int> of a comment
std::unordered_map<std::string_view, std::pair<int, int>, TextHash> good;
std::unordered_set<
    std::string> bad_too;
std::unordered_set<std::string, ksym::TextHash> good_too;
std::unordered_map<uint64_t, std::string> of_numbers;
size_t h = std::hash<std::string_view>()(name);
"""


def self_test():
    assert findings(SELF_TEST) == [2, 5, 9], findings(SELF_TEST)
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "ksym", "base"))
        with open(os.path.join(root, "ksym", "base", "a.h"), "w",
                  encoding="utf-8") as file:
            file.write(SELF_TEST)
        assert check(root) == 3
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    return 1 if check(sys.argv[1]) else 0


if __name__ == "__main__":
    sys.exit(main())
