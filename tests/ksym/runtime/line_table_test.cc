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
  return CpythonLineAt(std::as_bytes(std::span(table)), 10, index);
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
        ASSERT_EQ(CpythonLineAt(bytes, first_line, at / 2).value_or(0),
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
