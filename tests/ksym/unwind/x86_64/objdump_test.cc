// SPDX-License-Identifier: Apache-2.0
// Lengths of instructions, beside what objdump says.

#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/unwind/x86_64/instruction.h"
#include "tests/ksym/sanitized.h"

namespace ksym {
namespace {

struct Listed {
  std::vector<std::byte> bytes;
  std::string_view text;
};

// "  401000:\tc3                   \tret"; with -w all bytes are on one line.
std::optional<Listed> ParseLine(std::string_view line) {
  const size_t first = line.find('\t');
  const size_t second = line.find('\t', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) {
    return std::nullopt;
  }
  Listed listed;
  listed.text = line.substr(second + 1);
  for (size_t at = first + 1; at + 1 < second && line[at] != ' '; at += 3) {
    unsigned value = 0;
    std::from_chars(line.data() + at, line.data() + at + 2, value, 16);
    listed.bytes.push_back(static_cast<std::byte>(value));
  }
  return listed;
}

bool IsPrefixAlone(std::string_view text) {
  for (const std::string_view name : {"rex", "data16", "addr32", "lock", "rep",
                                      "cs", "ds", "es", "ss", "fs", "gs"}) {
    const bool is_name = text.starts_with(name);
    if (is_name && text.find('%') == std::string_view::npos &&
        text.find(' ') == std::string_view::npos) {
      return true;
    }
  }
  return text.starts_with("rex");
}

// What is data, or no instruction as compilers write it.
bool IsOdd(std::string_view text) {
  return text.find("(bad)") != std::string_view::npos ||
         text.find(".byte") != std::string_view::npos || IsPrefixAlone(text);
}

struct Differences {
  size_t instructions = 0;
  size_t unknown = 0;
  size_t other = 0;
};

Differences Compare(const std::string& path, size_t most) {
  const std::string command = "objdump -d -w -j .text " + path;
  const std::unique_ptr<FILE, int (*)(FILE*)> out(::popen(command.c_str(), "r"),
                                                  ::pclose);
  Differences found;
  std::array<char, 512> line = {};
  while (found.instructions < most &&
         std::fgets(line.data(), line.size(), out.get()) != nullptr) {
    const auto listed = ParseLine(line.data());
    if (!listed || listed->bytes.empty() || IsOdd(listed->text)) continue;
    ++found.instructions;
    // objdump takes "fwait", an instruction of its own, together with the next.
    std::span<const std::byte> bytes = listed->bytes;
    if (bytes.size() > 1 && bytes[0] == std::byte{0x9b}) {
      bytes = bytes.subspan(1);
    }
    const size_t size = DecodeInstruction(bytes).size;
    if (size == bytes.size()) continue;
    size_t& count = size == 0 ? found.unknown : found.other;
    if (++count <= 10) std::printf("%zu: %s", size, line.data());
  }
  return found;
}

class Objdump : public testing::TestWithParam<const char*> {};

// Each instruction is as long as objdump says.
TEST_P(Objdump, AgreesAboutLengths) {
  const std::string path = GetParam();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "there is no " << path;
  if (IsTooLargeToCompare(path)) {
    GTEST_SKIP() << "takes too long with a sanitizer";
  }
  constexpr size_t kMaxInstructions = 200'000;
  const char* all = std::getenv("KSYM_TEST_ALL_INSTRUCTIONS");
  const Differences found =
      Compare(path, all == nullptr ? kMaxInstructions : SIZE_MAX);
  std::printf("%s: %zu instructions, %zu unknown, %zu of another length\n",
              path.c_str(), found.instructions, found.unknown, found.other);
  if (found.instructions == 0) GTEST_SKIP() << "objdump lists nothing";
  EXPECT_EQ(found.other, 0u);
  EXPECT_EQ(found.unknown, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Files, Objdump,
    testing::Values(
        "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
        "/lib/ld-musl-x86_64.so.1", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
        "/usr/lib/x86_64-linux-gnu/libdav1d.so.6",
        "/usr/lib/x86_64-linux-gnu/libgmp.so.10",
        "/usr/lib/x86_64-linux-gnu/libnettle.so.8",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/lib/x86_64-linux-gnu/libx264.so.164", "/usr/bin/python3"));

}  // namespace
}  // namespace ksym
