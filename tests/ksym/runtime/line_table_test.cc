// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/line_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace ksym {
namespace {

std::optional<uint32_t> LineAt(const std::string& table, uint32_t index) {
  return CpythonLineAt(
      {.table = std::as_bytes(std::span(table)), .first_line = 10}, index);
}

// The two forms before 3.11, of which the later one has code without lines.
// Both have pairs of a step in code and one in lines.
TEST(CpythonLineTest, FormsOfPairs) {
  const std::string pairs("\x04\x01\x06\xff\x00\x7f\x02\x80", 8);
  const auto at = [&](CpythonLayout::LineTable form, uint32_t index) {
    return CpythonLineAt({.form = form,
                          .table = std::as_bytes(std::span(pairs)),
                          .first_line = 10},
                         index);
  };
  using enum CpythonLayout::LineTable;
  EXPECT_EQ(at(kDeltas, 0), 10u);
  EXPECT_EQ(at(kDeltas, 1), 10u);
  EXPECT_EQ(at(kDeltas, 2), 11u);
  EXPECT_EQ(at(kDeltas, 4), 11u);
  EXPECT_EQ(at(kDeltas, 5), 137u);  // two pairs for one step
  EXPECT_EQ(at(kDeltas, 6), 9u);
  EXPECT_EQ(at(kDeltas, 0xffffffff), 9u);

  EXPECT_EQ(at(kRanges, 0), 11u);
  EXPECT_EQ(at(kRanges, 1), 11u);
  EXPECT_EQ(at(kRanges, 2), 10u);
  EXPECT_EQ(at(kRanges, 4), 10u);
  EXPECT_EQ(at(kRanges, 5), std::nullopt);  // no line
  EXPECT_EQ(at(kRanges, 6), std::nullopt);  // behind the end
}

// A table that is cut off says what is known up to there, and no line is
// outside of what lines can be.
TEST(CpythonLineTest, MalformedPairs) {
  const std::string pairs("\x04\x80\x04", 3);
  for (const auto form :
       {CpythonLayout::LineTable::kDeltas, CpythonLayout::LineTable::kRanges}) {
    for (uint32_t index = 0; index < 8; ++index) {
      const auto line = CpythonLineAt({.form = form,
                                       .table = std::as_bytes(std::span(pairs)),
                                       .first_line = 10},
                                      index);
      const bool is_first =
          form == CpythonLayout::LineTable::kDeltas && index < 2;
      EXPECT_EQ(line, is_first ? std::optional(10u) : std::nullopt) << index;
    }
  }
}

// Each form of an entry, at both ends of the instructions that it is of.
TEST(CpythonLineTest, Forms) {
  const std::string table =
      "\x81\x12"                  // short form 0, two units
      "\xd8\x12\x34"              // one line further
      "\xe8\x02"                  // no columns: a varint, +1
      "\xf1\x43\x02\x01\x01\x01"  // long form: -65 would be below line 1
      "\xf8";                     // no location
  EXPECT_EQ(LineAt(table, 0), 10u);
  EXPECT_EQ(LineAt(table, 1), 10u);
  EXPECT_EQ(LineAt(table, 2), 11u);
  EXPECT_EQ(LineAt(table, 3), 12u);
  EXPECT_EQ(LineAt(table, 4), std::nullopt);
  EXPECT_EQ(LineAt(table, 6), std::nullopt);
  EXPECT_EQ(LineAt(table, 7), std::nullopt);  // behind the end
  EXPECT_EQ(LineAt(table, 0xffffffff), std::nullopt);
}

// A table that does not begin with an entry, or ends within one, says nothing.
TEST(CpythonLineTest, Malformed) {
  EXPECT_EQ(LineAt("", 0), std::nullopt);
  EXPECT_EQ(LineAt("\x01\x12", 0), std::nullopt);
  EXPECT_EQ(LineAt("\x80", 0), std::nullopt);
  EXPECT_EQ(LineAt("\xe8\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 0), std::nullopt);
}

struct CloseDeleter {
  void operator()(std::FILE* file) const { ::pclose(file); }
};

// Lines of all code of modules of Python's own library are those that the
// interpreter tells of it.
TEST(CpythonLineTest, AgreesWithPython) {
  const char* python = "/usr/bin/python3.11";
  if (::access(python, X_OK) != 0) GTEST_SKIP() << "no " << python;
  const std::string program = R"(
import types, argparse, ast, decimal, inspect, typing, tarfile, threading
def walk(code):
    print(code.co_firstlineno, code.co_linetable.hex() or "-",
          " ".join(f"{a}:{b}:{line or 0}" for a, b, line in code.co_lines()))
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            walk(const)
for module in (argparse, ast, inspect, typing, tarfile, threading):
    with open(module.__file__) as file:
        walk(compile(file.read(), module.__file__, "exec"))
)";
  const std::string command = std::string(python) + " -I -c '" + program + "'";
  const std::unique_ptr<std::FILE, CloseDeleter> output(
      ::popen(command.c_str(), "r"));
  ASSERT_TRUE(output);
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (const size_t got =
             std::fread(buffer.data(), 1, buffer.size(), output.get())) {
    text.append(buffer.data(), got);
  }
  std::istringstream lines(text);
  size_t checked = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    uint32_t first_line = 0;
    std::string hex;
    fields >> first_line >> hex;
    std::string table;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      table += static_cast<char>(std::stoul(hex.substr(i, 2), nullptr, 16));
    }
    const auto bytes = std::as_bytes(std::span(table));
    unsigned begin = 0;
    unsigned end = 0;
    unsigned expected = 0;
    for (std::string entry; fields >> entry;) {
      ASSERT_EQ(std::sscanf(entry.c_str(), "%u:%u:%u", &begin, &end, &expected),
                3);
      for (unsigned at = begin; at < end; at += 2) {
        ASSERT_EQ(
            CpythonLineAt({.table = bytes, .first_line = first_line}, at / 2)
                .value_or(0),
            expected)
            << line << " at " << at;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 10000u);
}

}  // namespace
}  // namespace ksym
