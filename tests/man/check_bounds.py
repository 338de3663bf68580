#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_bounds.py DOCUMENT SOURCE_DIR: each constant in the document's table of
bounds is in the file that it names, with the value that it names.

    check_bounds.py --self-test proves that what is wrong is found.
"""

import os
import re
import sys
import tempfile

ROW = re.compile(r"^\| [^|]+ \| `(\w+)` in `([\w/.]+)` \| ([^|]+) \|", re.M)
UNITS = {"": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
         "s": 1, "ms": 0.001}
FEWEST_ROWS = 40
NUMBER = r"[0-9][0-9']*"


def value_of(text):
    """A value as the document has it: "1,024 bytes", "32 MiB", "20 s"."""
    number, _, unit = text.strip().partition(" ")
    return int(number.replace(",", "")) * UNITS[unit]


def evaluate(text):
    """What a constant is set to: numbers, shifts and products of them."""
    text = re.sub(r"\b(?:size_t|u?int\d+_t)\{(%s)\}" % NUMBER, r"\1", text)
    text = re.sub(r"['(){}]", "", text)
    number = 1
    for factor in text.split("*"):
        base, _, shift = factor.partition("<<")
        number *= int(base) << int(shift or 0)
    return number


def find(name, source):
    """The value that the source gives the name."""
    patterns = [r"#define[ \t]+%s[ \t]+([^\n/]+)", r"\b%s\s*=\s*([^;]+);",
                r"\b%s\{([^;]+)\};", r"\b%s\((\d+)\);"]
    for pattern in patterns:
        found = re.search(pattern % name, source)
        if found:
            return found.group(1)
    return None


def problems(document, directory):
    rows = ROW.findall(document)
    if len(rows) < FEWEST_ROWS:
        yield "there are %d rows only" % len(rows)
    for name, path, value in rows:
        try:
            with open(os.path.join(directory, path), encoding="utf-8") as file:
                source = file.read()
        except OSError as error:
            yield "%s: %s" % (path, error.strerror)
            continue
        text = find(name, source)
        if text is None:
            yield "%s: there is no %s" % (path, name)
            continue
        is_time = "chrono" in source and re.search(
            r"(?:milli)?seconds %s\b" % name, source)
        scale = (1000 if is_time and is_time.group().startswith("milli")
                 else 1)
        try:
            real, said = evaluate(text), value_of(value) * scale
        except (KeyError, ValueError) as error:
            yield "%s in %s: %s" % (name, path, error)
            continue
        if real != said:
            yield "%s in %s is %d, not %s" % (name, path, real, value.strip())


def self_test():
    """Each kind of mistake in a table that is otherwise right."""
    good = "".join("| w | `kA%d` in `a.h` | 2 MiB | x | y |\n" % i
                   for i in range(FEWEST_ROWS))
    source = "".join("constexpr size_t kA%d = size_t{2} << 20;\n" % i
                     for i in range(FEWEST_ROWS))
    with tempfile.TemporaryDirectory() as directory:
        with open(directory + "/a.h", "w", encoding="utf-8") as file:
            file.write(source)
        assert not list(problems(good, directory)), list(problems(good, directory))
        for planted in [good.replace("2 MiB", "3 MiB", 1),
                        good.replace("kA1`", "kB1`", 1),
                        good.replace("a.h", "b.h", 1),
                        good.replace("2 MiB", "2 stones", 1),
                        good.split("\n", 1)[1]]:
            assert len(list(problems(planted, directory))) == 1, planted
    print("found what was planted")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    with open(sys.argv[1], encoding="utf-8") as file:
        found = list(problems(file.read(), sys.argv[2]))
    for line in found:
        print(line)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
