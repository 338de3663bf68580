// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/go_symbols.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/elf/elf_symbols.h"
#include "ksym/elf/symbol_reader.h"
#include "tests/ksym/elf/elf_builder.h"

namespace ksym {
namespace {

using Builder = ElfBuilder<Elf64Types>;

// A table by make_gopclntab.py.
std::string Table(const std::string& version) {
  return ReadFile(KSYM_GOPCLNTAB_DIR "/" + version, 1 << 16).value_or("");
}

TestElf GoElf(std::string table) {
  TestElf elf;
  elf.text_size = 0x100;
  elf.extra_name = ".gopclntab";
  elf.extra_bytes = std::move(table);
  return elf;
}

std::string NameAt(const TestElf& elf, uint64_t offset) {
  const auto symbols =
      ElfSymbols::Load(ByteSource::OfMemory(Builder::Build(elf)));
  if (!symbols) return symbols.error().message();
  const auto match = symbols->Find({offset});
  return match ? symbols->ReadName(*match).value_or("?") : "-";
}

ErrorCode CodeOf(const std::string& table) {
  const auto source = ByteSource::OfMemory(Builder::Build(GoElf(table)));
  const auto image = ElfImage::Parse(source);
  const auto functions = ReadGoFunctions(source, *image);
  return functions ? ErrorCode::kIo : functions.error().code();
}

template <typename T>
std::string With(std::string table, size_t at, T value) {
  std::memcpy(table.data() + at, &value, sizeof(value));
  return table;
}

class GoSymbolsTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(
    Layouts, GoSymbolsTest,
    testing::Values("go1_2", "go1_2_32bit", "go1_16", "go1_16_32bit", "go1_18",
                    "go1_18_32bit", "go1_20", "no_text_start"),
    [](const auto& param) { return std::string(param.param); });

// Each function is named from its first byte to its last.
TEST_P(GoSymbolsTest, NamesFunctions) {
  const TestElf elf = GoElf(Table(GetParam()));
  EXPECT_EQ(NameAt(elf, 0x0fff), "-");
  EXPECT_EQ(NameAt(elf, 0x1000), "main.init");
  EXPECT_EQ(NameAt(elf, 0x100f), "main.init");
  EXPECT_EQ(NameAt(elf, 0x1010), "main.main");
  EXPECT_EQ(NameAt(elf, 0x104f), "main.main");
  EXPECT_EQ(NameAt(elf, 0x1050), "main.(*T).String");
  EXPECT_EQ(NameAt(elf, 0x10ff), "main.(*T).String");
  EXPECT_EQ(NameAt(elf, 0x1100), "-");
}

// Where position-independent programs have the table.
TEST_P(GoSymbolsTest, FindsTheRelocatedSection) {
  TestElf elf = GoElf(Table(GetParam()));
  elf.extra_name = ".data.rel.ro.gopclntab";
  EXPECT_EQ(NameAt(elf, 0x1010), "main.main");
}

// A file with a symbol table is named by that.
TEST_P(GoSymbolsTest, IsNotNeededBesideASymbolTable) {
  TestElf elf = GoElf(Table(GetParam()));
  elf.symbols = {{"own", 0x401000, 0x10}};
  EXPECT_EQ(NameAt(elf, 0x1000), "own");
  EXPECT_EQ(NameAt(elf, 0x1010), "-");
}

// A table that is cut off anywhere has no wrong names: its strings end early.
TEST_P(GoSymbolsTest, SurvivesEachTruncation) {
  const std::string good = Table(GetParam());
  ASSERT_FALSE(good.empty());
  for (size_t size = 0; size < good.size(); ++size) {
    const std::string name = NameAt(GoElf(good.substr(0, size)), 0x1010);
    EXPECT_TRUE(name == "-" || name == "main.main" ||
                std::string_view("main.main").starts_with(name) || name == "?")
        << size << " " << name;
  }
}

// Each byte, set to each of the values that break arithmetic, gives an answer
// or none: no crash, no read outside.
TEST_P(GoSymbolsTest, SurvivesEachByte) {
  const std::string good = Table(GetParam());
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      NameAt(GoElf(With(good, at, static_cast<uint8_t>(value))), 0x1010);
    }
  }
}

// A header's or list's field that contradicts another is refused, whatever it
// would lead to.
TEST(GoSymbolsErrorTest, RefusesContradictions) {
  const std::string good = Table("go1_18");
  ASSERT_EQ(CodeOf(good), ErrorCode::kIo);
  uint64_t list = 0;
  std::memcpy(&list, good.data() + 64, sizeof(list));
  EXPECT_EQ(CodeOf(""), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(With(good, 0, 0xfffffff2u)), ErrorCode::kUnsupported);
  for (const auto& bad : {
           With(good, 4, uint8_t{1}),              // padding
           With(good, 6, uint8_t{3}),              // quantum
           With(good, 7, uint8_t{2}),              // pointer size
           With(good, 8, uint64_t{0}),             // number of functions
           With(good, 8, uint64_t{1 << 20}),       //
           With(good, 24, uint64_t{0x401001}),     // start of the text
           With(good, 24, ~uint64_t{0}),           //
           With(good, 32, uint64_t{good.size()}),  // place of the names
           With(good, 64, uint64_t{good.size()}),  // place of the list
           With(good, 64, ~uint64_t{0}),           //
           With(good, list, 0x11u),                // first function's start
           With(good, list + 4, 0xffffu),          // and its record
           With(good, list + 8, 0xfu),     // second one's, before the record's
           With(good, list + 24, 0x4fu),   // end before the start
           With(good, list + 24, 0x101u),  // end behind the section
       }) {
    EXPECT_EQ(CodeOf(bad), ErrorCode::kCorrupt);
  }
  EXPECT_EQ(CodeOf(With(good, 8, kMaxSymbols + 1)), ErrorCode::kLimit);
  EXPECT_EQ(CodeOf(With(good, 8, ~uint64_t{0})), ErrorCode::kLimit);
}

// Without a start of the text .text's is taken only where Go's functions fill
// it up to their alignment.
TEST(GoSymbolsErrorTest, GuessesNoTextStart) {
  TestElf elf = GoElf(Table("no_text_start"));
  elf.text_size = 0x100 + 63;
  EXPECT_EQ(NameAt(elf, 0x1010), "main.main");
  elf.text_size = 0x100 + 64;
  EXPECT_EQ(NameAt(elf, 0x1010), "-");
  elf.text_size = 0xff;
  EXPECT_EQ(NameAt(elf, 0x1010), "-");
}

}  // namespace
}  // namespace ksym
