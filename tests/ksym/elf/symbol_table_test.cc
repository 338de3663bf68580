// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/symbol_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace ksym {
namespace {

constexpr uint64_t kSectionEnd = 0x10000;

SymbolCandidate Sized(uint64_t start, uint64_t size, uint32_t name) {
  return {.start = {start}, .end = {start + size}, .name = name};
}

SymbolCandidate Unsized(uint64_t start, uint32_t name) {
  return {.start = {start}, .end = {kSectionEnd}, .name = name, .sized = false};
}

SymbolCandidate Label(uint64_t start, uint32_t name) {
  SymbolCandidate candidate = Unsized(start, name);
  candidate.label = true;
  return candidate;
}

// The first alias's name offset stands for the name; 0 is none.
uint32_t NameAt(const SymbolTable& table, uint64_t address) {
  const auto match = table.Find({address});
  return match ? table.alias(*match, 0).offset : 0;
}

std::set<uint32_t> NamesAt(const SymbolTable& table, uint64_t address) {
  std::set<uint32_t> names;
  const auto match = table.Find({address});
  if (!match) return names;
  for (size_t i = 0; i < table.AliasCount(*match); ++i) {
    names.insert(table.alias(*match, i).offset);
  }
  return names;
}

// A symbol covers its first and last byte and none beside them.
TEST(SymbolTableTest, CoversHalfOpenRanges) {
  const auto table =
      SymbolTable::Build({Sized(0x2000, 0x10, 2), Sized(0x1000, 0x10, 1)});
  EXPECT_EQ(NameAt(table, 0xfff), 0u);
  EXPECT_EQ(NameAt(table, 0x1000), 1u);
  EXPECT_EQ(NameAt(table, 0x100f), 1u);
  EXPECT_EQ(NameAt(table, 0x1010), 0u);
  EXPECT_EQ(NameAt(table, 0x1fff), 0u);
  EXPECT_EQ(NameAt(table, 0x200f), 2u);
  EXPECT_EQ(NameAt(table, 0x2010), 0u);
  EXPECT_EQ(NameAt(table, UINT64_MAX), 0u);
}

// A label names the code up to the next symbol where nothing else does, and
// nothing within another symbol or where one starts.
TEST(SymbolTableTest, LabelsFillGapsOnly) {
  const auto table = SymbolTable::Build(
      {Label(0x1000, 1), Sized(0x1020, 0x40, 2), Label(0x1020, 3),
       Label(0x1030, 4), Label(0x105f, 5), Label(0x1060, 6), Label(0x1070, 7),
       Unsized(0x1080, 8), Label(0x1080, 9), Label(0x1090, 10)});
  EXPECT_EQ(NameAt(table, 0xfff), 0u);
  EXPECT_EQ(NameAt(table, 0x1000), 1u);
  EXPECT_EQ(NameAt(table, 0x101f), 1u);
  EXPECT_EQ(NamesAt(table, 0x1020), std::set<uint32_t>{2});
  EXPECT_EQ(NameAt(table, 0x1030), 2u);
  EXPECT_EQ(NameAt(table, 0x105f), 2u);
  EXPECT_EQ(NameAt(table, 0x1060), 6u);
  EXPECT_EQ(NameAt(table, 0x106f), 6u);
  EXPECT_EQ(NameAt(table, 0x1070), 7u);
  EXPECT_EQ(NamesAt(table, 0x1080), std::set<uint32_t>{8});
  EXPECT_EQ(NameAt(table, 0x108f), 8u);
  EXPECT_EQ(NameAt(table, 0x1090), 10u);
  EXPECT_EQ(NameAt(table, kSectionEnd - 1), 10u);
  EXPECT_EQ(NameAt(table, kSectionEnd), 0u);
}

// What starts a section names nothing behind the function there.
TEST(SymbolTableTest, ALabelDoesNotNameTheGapBehindAFunction) {
  const auto table =
      SymbolTable::Build({Label(0x1000, 1), Sized(0x1000, 0x10, 2)});
  EXPECT_EQ(NameAt(table, 0x100f), 2u);
  EXPECT_EQ(NameAt(table, 0x1010), 0u);
}

// A table without symbols finds nothing.
TEST(SymbolTableTest, EmptyTableFindsNothing) {
  EXPECT_EQ(NameAt(SymbolTable(), 0), 0u);
  EXPECT_TRUE(SymbolTable::Build({}).empty());
  EXPECT_TRUE(SymbolTable::Build({Sized(0x1000, 0, 1)}).empty());
}

// Around an inner symbol the outer one goes on, with its own start.
TEST(SymbolTableTest, OuterSymbolGoesOnBehindInnerOnes) {
  const auto table = SymbolTable::Build(
      {Sized(0x1000, 0x100, 1), Sized(0x1020, 0x10, 2), Sized(0x1024, 4, 3)});
  EXPECT_EQ(NameAt(table, 0x101f), 1u);
  EXPECT_EQ(NameAt(table, 0x1020), 2u);
  EXPECT_EQ(NameAt(table, 0x1024), 3u);
  EXPECT_EQ(NameAt(table, 0x1027), 3u);
  EXPECT_EQ(NameAt(table, 0x1028), 2u);
  EXPECT_EQ(NameAt(table, 0x1030), 1u);
  EXPECT_EQ(NameAt(table, 0x10ff), 1u);
  EXPECT_EQ(NameAt(table, 0x1100), 0u);
  EXPECT_EQ(table.Find({0x1030})->start.value, 0x1000u);
  EXPECT_EQ(table.Find({0x1028})->start.value, 0x1020u);
}

// A symbol without a size ends at the next start or at its section's end.
TEST(SymbolTableTest, BoundsUnsizedSymbols) {
  const auto table = SymbolTable::Build(
      {Unsized(0x1000, 1), Sized(0x2000, 0x10, 2), Unsized(0x3000, 3)});
  EXPECT_EQ(NameAt(table, 0x1fff), 1u);
  EXPECT_EQ(NameAt(table, 0x2000), 2u);
  EXPECT_EQ(NameAt(table, 0x2010), 0u);
  EXPECT_EQ(NameAt(table, kSectionEnd - 1), 3u);
  EXPECT_EQ(NameAt(table, kSectionEnd), 0u);
}

// At one start a sized symbol goes before an unsized, a smaller before a
// larger one; where only one covers, that one is found.
TEST(SymbolTableTest, PrefersSizedThenSmaller) {
  const auto table =
      SymbolTable::Build({Unsized(0x1000, 1), Sized(0x1000, 0x20, 2),
                          Sized(0x1000, 0x10, 3), Sized(0x1080, 1, 4)});
  EXPECT_EQ(NameAt(table, 0x1000), 3u);
  EXPECT_EQ(NameAt(table, 0x1010), 2u);
  EXPECT_EQ(NameAt(table, 0x1020), 1u);
  EXPECT_EQ(NameAt(table, 0x107f), 1u);
}

// All names of the same bytes are given.
TEST(SymbolTableTest, KeepsAliases) {
  const auto table = SymbolTable::Build(
      {Sized(0x1000, 0x10, 1), Sized(0x1000, 0x10, 2), Sized(0x1004, 4, 3)});
  EXPECT_EQ(NamesAt(table, 0x1000), (std::set<uint32_t>{1, 2}));
  EXPECT_EQ(NamesAt(table, 0x1004), (std::set<uint32_t>{3}));
  EXPECT_EQ(NamesAt(table, 0x100f), (std::set<uint32_t>{1, 2}));
}

// The dynamic copies of full symbols are dropped; one that the full table
// lacks is kept.
TEST(SymbolTableTest, DropsDynamicCopies) {
  SymbolCandidate copy = Sized(0x1000, 0x10, 7);
  copy.table = NameTable::kDynamic;
  SymbolCandidate extra = Sized(0x2000, 0x10, 8);
  extra.table = NameTable::kDynamic;
  const auto table = SymbolTable::Build({copy, Sized(0x1000, 0x10, 1), extra});
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(NamesAt(table, 0x1000), (std::set<uint32_t>{1}));
  EXPECT_EQ(NamesAt(table, 0x2000), (std::set<uint32_t>{8}));
}

// However many symbols share a place, a lookup compares a bounded number.
TEST(SymbolTableTest, BoundsAliases) {
  std::vector<SymbolCandidate> candidates;
  for (uint32_t i = 1; i <= 1000; ++i) candidates.push_back(Sized(16, 16, i));
  const auto table = SymbolTable::Build(candidates);
  EXPECT_EQ(NamesAt(table, 20).size(), SymbolTable::kMaxAliases);
}

// Symbols up to the last byte of the span are found, those across it not.
TEST(SymbolTableTest, LeavesOutWhatIsTooFarAway) {
  const uint64_t base = 0x400000;
  const auto table = SymbolTable::Build(
      {Sized(base, 0x10, 1), Sized(base + SymbolTable::kMaxSpan - 8, 8, 2),
       Sized(base + SymbolTable::kMaxSpan - 4, 8, 3),
       Sized(base + (uint64_t{1} << 40), 8, 4)});
  EXPECT_EQ(NameAt(table, base + SymbolTable::kMaxSpan - 1), 2u);
  EXPECT_EQ(NameAt(table, base + SymbolTable::kMaxSpan), 0u);
  EXPECT_EQ(NameAt(table, base + (uint64_t{1} << 40)), 0u);
}

// The innermost symbol that covers an address is found, of nested and crossing
// ones: the same as by looking at each.
TEST(SymbolTableTest, AgreesWithALinearSearch) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<SymbolCandidate> candidates;
    const auto count = 1 + random() % 40;
    for (uint32_t i = 1; i <= count; ++i) {
      candidates.push_back(Sized(random() % 100, 1 + random() % 50, i));
    }
    const auto table = SymbolTable::Build(candidates);
    for (uint64_t address = 0; address < 160; ++address) {
      std::set<uint32_t> expected;
      std::optional<std::pair<uint64_t, uint64_t>> best;
      for (const SymbolCandidate& c : candidates) {
        if (address < c.start.value || address >= c.end.value) continue;
        const std::pair rank(c.start.value, ~c.end.value);
        if (best && rank < *best) continue;
        if (!best || rank > *best) expected.clear();
        best = rank;
        expected.insert(c.name);
      }
      EXPECT_EQ(NamesAt(table, address), expected) << address;
    }
  }
}

// The order of preference among aliases, one rule at a time.
TEST(AliasTest, PrefersByTheRules) {
  using enum SymbolBinding;
  const std::vector<SymbolAlias> best_first = {
      {"ab", kGlobal},  {"abc", kGlobal}, {"abd", kGlobal}, {"b@@V2", kWeak},
      {"b@V1", kWeak},  {"_a", kGlobal},  {"_b", kWeak},    {"__a", kGlobal},
      {"___", kGlobal}, {"ab", kLocal},   {"__a", kLocal}};
  for (size_t i = 0; i < best_first.size(); ++i) {
    for (size_t j = 0; j < best_first.size(); ++j) {
      EXPECT_EQ(IsPreferredAlias(best_first[i], best_first[j]), i < j)
          << best_first[i].name << " " << best_first[j].name;
    }
  }
}

// A version is what follows the last '@' or "@@"; "@plt" is none.
TEST(AliasTest, VersionsAreCutOff) {
  EXPECT_EQ(WithoutVersion("memcpy@GLIBC_2.2.5"), "memcpy");
  EXPECT_EQ(WithoutVersion("_ZN1a1bEv@@V1"), "_ZN1a1bEv");
  for (const char* name :
       {"", "main", "f@plt", "@V1", "@@V1", "f@", "f@@", "f@V1 and@V2"}) {
    EXPECT_EQ(WithoutVersion(name), name);
  }
}

}  // namespace
}  // namespace ksym
