// SPDX-License-Identifier: Apache-2.0
#include "ksym/breakpad/breakpad_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ksym/elf/elf_image.h"
#include "ksym/gsym_convert.h"
#include "tests/ksym/gsym/gsym_samples.h"

namespace ksym {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kModule =
    "MODULE Linux x86_64 04030201060508070910111213141516A server\n";

// One function with code of two others in it, one in two pieces.
constexpr std::string_view kProgram =
    "MODULE Linux x86_64 04030201060508070910111213141516A server\n"
    "FILE 3 /src/server.cc\n"
    "FILE 7 /src/util.h\n"
    "INLINE_ORIGIN 0 Scale(int)\n"
    "INLINE_ORIGIN 4 Get() const\n"
    "FUNC 1000 40 0 Outer(int)\n"
    "INLINE 1 6 7 0 1014 4\n"  // before the one that it is in
    "INLINE 0 42 3 4 1010 10 1030 4\n"
    "1000 10 41 3\n"
    "1010 4 5 7\n"
    "1014 4 9 7\n"
    "1018 8 5 7\n"
    "1030 4 6 7\n"
    "FUNC m 1100 20 8 main\n"
    "1100 20 50 3\n"
    "PUBLIC 2000 0 first\n"
    "PUBLIC m 2010 0 last\n"
    "STACK CFI INIT 1000 40 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n";

std::string Lookup(std::string_view text, uint64_t address) {
  const auto made = ConvertBreakpadToGsym(text, {});
  return made ? LookupText(made->bytes, address) : made.error().message();
}

BreakpadLosses LossesOf(const std::string& text) {
  auto file = BreakpadFile::Parse(text);
  EXPECT_TRUE(file);
  file->ForEachBatch({}, [](const FunctionBatch&) {});
  return file->losses();
}

// Functions, lines and inlined calls, whatever the order of INLINE lines; a
// gap between lines has none.
TEST(BreakpadFileTest, Functions) {
  EXPECT_EQ(Lookup(kProgram, 0xfff), "none");
  EXPECT_EQ(Lookup(kProgram, 0x1000), "Outer(int)+0 /src/server.cc:41");
  EXPECT_EQ(Lookup(kProgram, 0x100f), "Outer(int)+15 /src/server.cc:41");
  EXPECT_EQ(Lookup(kProgram, 0x1010),
            "Get() const+0 /src/util.h:5; Outer(int)+16 /src/server.cc:42");
  EXPECT_EQ(Lookup(kProgram, 0x1017),
            "Scale(int)+3 /src/util.h:9; Get() const+7 /src/util.h:6; "
            "Outer(int)+23 /src/server.cc:42");
  EXPECT_EQ(Lookup(kProgram, 0x1018),
            "Get() const+8 /src/util.h:5; Outer(int)+24 /src/server.cc:42");
  EXPECT_EQ(Lookup(kProgram, 0x1020), "Outer(int)+32");
  EXPECT_EQ(Lookup(kProgram, 0x1033),
            "Get() const+35 /src/util.h:6; Outer(int)+51 /src/server.cc:42");
  EXPECT_EQ(Lookup(kProgram, 0x103f), "Outer(int)+63");
  EXPECT_EQ(Lookup(kProgram, 0x1040), "none");
  EXPECT_EQ(Lookup(kProgram, 0x111f), "main+31 /src/server.cc:50");
  EXPECT_EQ(Lookup(kProgram, 0x1120), "none");
}

// A public symbol reaches to the next one; how far the last one does is not
// known. One within a function, or at the place of another, is left out.
TEST(BreakpadFileTest, PublicSymbols) {
  EXPECT_EQ(Lookup(kProgram, 0x1fff), "none");
  EXPECT_EQ(Lookup(kProgram, 0x200f), "first+15");
  EXPECT_EQ(Lookup(kProgram, 0x2010), "last+0");
  EXPECT_EQ(Lookup(kProgram, 0x2011), "none");
  const std::string text = std::string(kModule) +
                           "PUBLIC 104 0 within\n"
                           "PUBLIC f0 0 before\n"
                           "PUBLIC f0 0 alias\n"
                           "FUNC 100 10 0 function\n";
  EXPECT_EQ(Lookup(text, 0xff), "before+15");
  EXPECT_EQ(Lookup(text, 0x104), "function+4");
  EXPECT_EQ(LossesOf(text).publics, 2u);
}

// The build-id comes from CODE_ID, else from the debug identifier, whose first
// three numbers have their bytes the other way round.
TEST(BreakpadFileTest, BuildId) {
  const auto of_module = BreakpadFile::Parse(kModule);
  ASSERT_TRUE(of_module);
  EXPECT_EQ(ToHex(of_module->build_id()), "01020304050607080910111213141516");
  const std::string text =
      std::string(kModule) + "INFO CODE_ID 0102030405AABBCC server\n";
  const auto of_code = BreakpadFile::Parse(text);
  ASSERT_TRUE(of_code);
  EXPECT_EQ(ToHex(of_code->build_id()), "0102030405aabbcc");
}

TEST(BreakpadFileTest, Options) {
  auto file = BreakpadFile::Parse(kProgram);
  ASSERT_TRUE(file);
  size_t lines = 0;
  size_t inlines = 0;
  const auto count = [&](const FunctionBatch& batch) {
    lines += batch.lines.size();
    inlines += batch.inlines.size();
  };
  file->ForEachBatch({.lines = BreakpadReadOptions::Lines::kSkip}, count);
  EXPECT_EQ(lines, 0u);
  EXPECT_EQ(inlines, 2u);
  file->ForEachBatch({.inlines = BreakpadReadOptions::Inlines::kSkip}, count);
  EXPECT_GT(lines, 0u);
  EXPECT_EQ(inlines, 2u);
}

// What is malformed is left out, counted, and shown with its number.
TEST(BreakpadFileTest, MalformedLines) {
  const std::string text = std::string(kModule) +
                           "100 4 1 0\n"  // in no function
                           "FUNC 100 10 0 good\r\n"
                           "100 zz 1 0\n"
                           "FUNC 200\n"
                           "FUNC ffffffffffffff00 200 0 wraps\n"
                           "FILE x /a\n"
                           "INLINE 0 1 1 1 300\n"
                           "INLINE 2 1 1 1 300 10\n"
                           "nonsense\n"
                           "FUNC 300 10 0 orphan\n"
                           "INLINE 2 1 1 1 300 10\n";
  const BreakpadLosses losses = LossesOf(text);
  EXPECT_EQ(losses.malformed_lines, 6u);
  EXPECT_EQ(losses.misplaced_lines, 2u);
  EXPECT_EQ(losses.inlined_calls, 1u);
  EXPECT_EQ(losses.first, "line 7: 'FILE x /a'");
  EXPECT_EQ(Lookup(text, 0x100), "good+0");
}

TEST(BreakpadFileTest, Refused) {
  EXPECT_THAT(Lookup("", 0), HasSubstr("not a Breakpad symbol file"));
  EXPECT_THAT(Lookup("\x7f"
                     "ELF",
                     0),
              HasSubstr("not a Breakpad symbol file"));
  EXPECT_THAT(Lookup("MODULE Linux x86_64\n", 0),
              HasSubstr("a debug identifier"));
  EXPECT_THAT(Lookup(kModule, 0), HasSubstr("no FUNC"));
}

// A file that is cut off anywhere is refused, or has nothing but what the whole
// one says.
TEST(BreakpadFileTest, Truncations) {
  for (size_t size = 0; size < kProgram.size(); ++size) {
    auto file = BreakpadFile::Parse(kProgram.substr(0, size));
    if (!file) continue;
    size_t functions = 0;
    file->ForEachBatch({}, [&](const FunctionBatch& batch) {
      for (const FunctionInfo& function : batch.functions) {
        ++functions;
        EXPECT_THAT(std::string(kProgram), HasSubstr(function.name));
        EXPECT_LT(function.range.start, function.range.end);
      }
    });
    EXPECT_LE(functions, 4u);
  }
}

}  // namespace
}  // namespace ksym
