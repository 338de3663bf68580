#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants defects and holds clang-tidy to what it finds of them.

    planted.py PLUGIN DIRECTORY

DIRECTORY is below the project, whose .clang-tidy is in force there. As
scripts/lint runs it, with the plugin on a file that includes the source, each
defect must be found in its file and line, and nothing else; and the same on the
source alone, without the plugin.
"""

import os
import re
import subprocess
import sys

# A line that ends in "// CHECK" has one finding of it.
HEADER = """\
#pragma once

#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace planted {

std::expected<int, std::string> Fallible(int value);

class Wrapper {
 public:
  Wrapper(int value) : value_(value) {}  // google-explicit-constructor
  int value() const { return value_; }

 private:
  int value_;
};

class Base {
 public:
  virtual ~Base() = default;
  virtual int Run() const = 0;
};

class Derived : public Base {
 public:
  virtual int Run() const;  // modernize-use-override
};

template <typename T>
int* Pointer(const T& value) {
  if (value > 0) return 0;  // modernize-use-nullptr
  return nullptr;
}

inline int BadlyNamed() {
  const int BadName = 1;  // readability-identifier-naming
  return BadName;
}

}  // namespace planted
"""

SOURCE = """\
#include "%s"

#include <algorithm>
#include <map>
#include <memory>

namespace planted {
namespace {

constexpr int kUnused = 1;  // clang-diagnostic-unused-const-variable

[[maybe_unused]] constexpr int kMayBeUnused = 1;

int never_read = 1;  // clang-diagnostic-unused-variable

inline int NeverCalled() { return 1; }  // clang-diagnostic-unused-function

struct Item {
  std::string name;
  std::vector<int> values;
};

int Count(const std::vector<Item>& items) {
  size_t total = 0;
  for (const Item item : items) {  // performance-for-range-copy
    total += item.values.size();
  }
  return static_cast<int>(total);
}

std::string Twice(std::string text) {
  const std::string moved = std::move(text);
  return moved + text;  // bugprone-use-after-move
}

// In what the standard library calls.
bool AnyFails(const std::vector<int>& values) {
  return std::any_of(values.begin(), values.end(), [](int value) {
    Fallible(value);  // bugprone-unused-return-value
    return value > 0;
  });
}

// In a template that is used with a type of the standard library.
template <typename Map>
const typename Map::mapped_type* First(const Map& map) {
  if (map.empty()) return NULL;  // modernize-use-nullptr
  return &map.begin()->second;
}

int Unused(int used, int unused) { return used; }  // misc-unused-parameters

}  // namespace

int Derived::Run() const {
  const std::map<int, std::string> map;
  Fallible(1);  // bugprone-unused-return-value
  std::unique_ptr<Wrapper> wrapper = std::make_unique<Wrapper>(1);
  return Count({}) + static_cast<int>(Twice("a").size()) + AnyFails({}) +
         (First(map) == nullptr) + Unused(1, 2) + BadlyNamed() + wrapper->value() +
         (Pointer(1) == nullptr);
}

}  // namespace planted
"""

MARK = re.compile(r"// ([a-z]+(?:-[a-z]+)+)$")
FINDING = re.compile(r"^(/[^:]+):(\d+):\d+: (?:warning|error): .*\[([a-z-]+)")


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return {(path, number, mark[1])
            for number, line in enumerate(text.splitlines(), 1)
            if (mark := MARK.search(line))}


def findings(source, *options):
    done = subprocess.run(
        ["clang-tidy-19", "--quiet", *options, source, "--", "-std=c++23",
         "-Wunused-const-variable", "-Wunused-function",
         "-Wunused-variable"],
        capture_output=True, text=True, check=False)
    found = [match.groups() for line in done.stdout.splitlines()
             if (match := FINDING.match(line))]
    return {(path, int(line), check) for path, line, check in found}


def main():
    plugin, directory = map(os.path.abspath, sys.argv[1:])
    directory = os.path.join(directory, "ksym")
    os.makedirs(directory, exist_ok=True)
    header, source = (os.path.join(directory, "planted" + suffix)
                      for suffix in (".h", ".cc"))
    planted = write(header, HEADER) | write(source, SOURCE % header)
    together = os.path.join(directory, "together.cxx")
    write(together, '#include "%s"\n' % source)
    wrong = 0
    for how, file, options in (("together", together, ["-load", plugin]),
                               ("alone", source, [])):
        found = findings(file, *options)
        for one in sorted(found ^ planted):
            wrong += 1
            print("%s %s: %s:%d: %s" % (
                how, "not found" if one in planted else "not planted", *one))
    print("%d planted defects, %d wrong findings" % (len(planted), wrong))
    return 1 if wrong or not planted else 0


if __name__ == "__main__":
    sys.exit(main())
