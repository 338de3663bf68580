// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kernel_symbol_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/kernel/kernel_symbol_source.h"
#include "tests/ksym/kernel/kernel_tables.h"

namespace {

size_t allocations = 0;

}  // namespace

// Not inlined: the compiler would see free() called on what new gave.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
// The standard library asks with this one for room that it can do without.
[[gnu::noinline]] void* operator new(size_t size,
                                     const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace ksym {
namespace {

using ksym_test::FdOf;
using testing::ElementsAre;

KernelSymbolMap MapOf(std::string_view text) {
  auto map = LoadKallsyms(FdOf(text).get());
  if (!map) std::abort();
  return std::move(*map);
}

std::string Find(const KernelSymbolMap& map, uint64_t address,
                 SymbolQuery query = {}) {
  SymbolNameBuffer buffer;
  const auto symbol = map.Find(Address{address}, buffer, query);
  if (!symbol) return "none";
  return std::string(symbol->name) + "+" + std::to_string(symbol->offset) +
         "/" + std::to_string(symbol->size);
}

constexpr SymbolQuery kAllKinds = {SymbolKinds::kAll, PrefixNames::kFold};
constexpr SymbolQuery kKeepNames = {SymbolKinds::kText, PrefixNames::kKeep};

// A symbol answers from its first byte to the last before the next symbol.
TEST(KernelSymbolMap, SymbolsAreHalfOpenRanges) {
  const auto map = MapOf("1000 T a\n1010 t b\n1030 T _etext\n");
  EXPECT_EQ(Find(map, 0xfff), "none");
  EXPECT_EQ(Find(map, 0x1000), "a+0/16");
  EXPECT_EQ(Find(map, 0x100f), "a+15/16");
  EXPECT_EQ(Find(map, 0x1010), "b+0/32");
  EXPECT_EQ(Find(map, 0x102f), "b+31/32");
  EXPECT_EQ(Find(map, 0x1030), "none");
}

// Nothing is between _etext and the next section, nor past _einittext.
TEST(KernelSymbolMap, SectionEndsBoundTheText) {
  const auto map = MapOf(
      "1000 T a\n1040 T _etext\n2000 D data\n3000 T _sinittext\n3010 t init\n"
      "3020 T _einittext\n4000 t later\n");
  EXPECT_EQ(Find(map, 0x103f), "a+63/64");
  EXPECT_EQ(Find(map, 0x1041), "none");
  EXPECT_EQ(Find(map, 0x301f), "init+15/16");
  EXPECT_EQ(Find(map, 0x3020), "none");
  EXPECT_EQ(Find(map, 0x4000), "later+0/4096");
}

// Data symbols end the function before them and answer only when asked for.
TEST(KernelSymbolMap, DataAnswersOnlyWhenAskedFor) {
  const auto map = MapOf("1000 T a\n1010 d table\n1020 T b\n");
  EXPECT_EQ(Find(map, 0x100f), "a+15/16");
  EXPECT_EQ(Find(map, 0x1010), "none");
  EXPECT_EQ(Find(map, 0x1018, kAllKinds), "table+8/16");
}

// A module's last function does not reach into the next module, nor into the
// data pages of its own.
TEST(KernelSymbolMap, ModulesAreBounded) {
  const auto map = MapOf(
      "c0201000 t f\t[m]\nc0203010 d table\t[m]\nc0203020 b last\t[m]\n"
      "c0301000 t g\t[n]\n");
  SymbolNameBuffer buffer;
  EXPECT_EQ(Find(map, 0xc0202fff), "f+8191/8192");
  EXPECT_EQ(Find(map, 0xc0203000), "none");
  EXPECT_EQ(Find(map, 0xc0203fff, kAllKinds), "last+4063/4064");
  EXPECT_EQ(Find(map, 0xc0204000, kAllKinds), "none");
  EXPECT_EQ(map.Find(Address{0xc0301000}, buffer)->module, "n");
}

// The best name answers for every byte of its address's symbols; all of them
// can be had.
TEST(KernelSymbolMap, AliasesHaveOneRule) {
  const auto map = MapOf(
      "1000 T __x64_sys_a\n1000 W a\n1000 T sys_ni\n1000 t local\n1010 T b\n");
  EXPECT_EQ(Find(map, 0x1000), "sys_ni+0/16");
  EXPECT_EQ(Find(map, 0x100f), "sys_ni+15/16");
  std::vector<std::string> names;
  SymbolNameBuffer buffer;
  map.FindAliases(Address{0x1008}, buffer, [&](const KernelSymbol& symbol) {
    EXPECT_EQ(symbol.offset, 8u);
    names.emplace_back(symbol.name);
    return true;
  });
  EXPECT_THAT(names, ElementsAre("sys_ni", "__x64_sys_a", "local", "a"));
}

// Hundreds of aliases, more than any block holds, still answer with the best.
TEST(KernelSymbolMap, AliasesAcrossBlocks) {
  for (int before = 0; before < 10; ++before) {
    std::string text;
    for (int i = 0; i < before; ++i) {
      text += "1" + std::to_string(i) + "0 t f" + std::to_string(i) + "\n";
    }
    for (int i = 0; i < 100; ++i) {
      text += "2010 W alias" + std::to_string(i) + "\n";
      text += "2000 t __pfx_alias" + std::to_string(i) + "\n";
    }
    text += "2010 T zz\n2000 T __pfx_zz\n2020 T next\n2040 T _etext\n";
    const auto map = MapOf(text);
    EXPECT_EQ(Find(map, 0x2010), "zz+0/16") << before;
    EXPECT_EQ(Find(map, 0x201f), "zz+15/16");
    EXPECT_EQ(Find(map, 0x2000), "zz+0/16");
    EXPECT_EQ(Find(map, 0x200f), "zz+15/16");
    EXPECT_EQ(Find(map, 0x2020), "next+0/32");
    size_t count = 0;
    SymbolNameBuffer buffer;
    map.FindAliases(Address{0x2010}, buffer,
                    [&](const KernelSymbol&) { return ++count != 0; });
    EXPECT_EQ(count, 101u);
  }
}

// Padding is named like its function, with its own extent, and can be asked
// for by its own name.
TEST(KernelSymbolMap, PaddingIsFolded) {
  const auto map = MapOf("1000 t a\n1030 T __pfx_b\n1040 T b\n1060 T _etext\n");
  EXPECT_EQ(Find(map, 0x102f), "a+47/48");
  EXPECT_EQ(Find(map, 0x1030), "b+0/16");
  EXPECT_EQ(Find(map, 0x103f), "b+15/16");
  EXPECT_EQ(Find(map, 0x1040), "b+0/32");
  EXPECT_EQ(Find(map, 0x1030, kKeepNames), "__pfx_b+0/16");
  EXPECT_EQ(Find(map, 0x1040, kKeepNames), "b+0/32");
  EXPECT_THAT(map.FindByName("__pfx_b"), ElementsAre(Address{0x1030}));
  EXPECT_THAT(map.FindByName("b"), ElementsAre(Address{0x1040}));
}

// Padding that shares bytes with another symbol, or has no function, is kept
// as it is and still folded in the answer.
TEST(KernelSymbolMap, PaddingThatIsNotAPair) {
  const auto map = MapOf(
      "1000 t __pfx_a\n1008 t inside\n1010 t a\n1020 T __pfx_orphan\n"
      "1030 T other\n1040 D __pfx_c\n1050 T c\n1060 T _etext\n"
      "2000 t __pfx_\n");
  EXPECT_EQ(Find(map, 0x1000), "a+0/8");
  EXPECT_EQ(Find(map, 0x1008), "inside+0/8");
  EXPECT_EQ(Find(map, 0x1010), "a+0/16");
  EXPECT_EQ(Find(map, 0x1020), "orphan+0/16");
  EXPECT_EQ(Find(map, 0x1040), "none");
  EXPECT_EQ(Find(map, 0x2000), "__pfx_+0/4096");
  EXPECT_EQ(map.symbol_count(), 9u);
}

// The order of the lines does not matter for what is answered, and the same
// lines give the same bytes.
TEST(KernelSymbolMap, OrderOfLinesDoesNotMatter) {
  std::vector<std::string> lines;
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    char line[64];
    const unsigned address = 0x1000 + static_cast<unsigned>(i) * 32;
    std::snprintf(line, sizeof line, "%x t __pfx_f_%d\n", address, i % 90);
    lines.emplace_back(line);
    std::snprintf(line, sizeof line, "%x t f_%d\n", address + 16, i % 90);
    lines.emplace_back(line);
  }
  const auto join = [&] {
    std::string text;
    for (const std::string& line : lines) text += line;
    return text;
  };
  const auto sorted = MapOf(join());
  const auto again = MapOf(join());
  EXPECT_TRUE(std::ranges::equal(sorted.bytes(), again.bytes()));
  std::ranges::shuffle(lines, random);
  const auto shuffled = MapOf(join());
  for (uint64_t address = 0xff8; address < 0x5000; address += 8) {
    EXPECT_EQ(Find(sorted, address), Find(shuffled, address));
  }
  EXPECT_EQ(sorted.symbol_count(), shuffled.symbol_count());
}

// Names of every shape come back: separators anywhere, long words, non-ASCII.
TEST(KernelSymbolMap, NamesOfAnyShape) {
  std::vector<std::string> names = {
      "_",       "__",    "___",           ".",     "..", "a_", "a__b_",
      "_a.b_.c", "a___b", "\xc3\xa9_\xff", "A b(c)"};
  for (size_t length = 60; length < 70; ++length) {
    names.emplace_back(length, 'x');
    names.push_back(std::string(length, '_') + "y");
    names.push_back(std::string(length, 'Z') + "_z");
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    char address[32];
    std::snprintf(address, sizeof address, "%zx t ", 0x1000 + i * 16);
    text += address + names[i] + "\n";
  }
  const auto map = MapOf(text);
  for (size_t i = 0; i < names.size(); ++i) {
    SymbolNameBuffer buffer;
    const auto found = map.Find(Address{0x1000 + i * 16}, buffer);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->name, names[i]);
  }
}

// Letters for a number, so that all of these words are equally long.
std::string Word(uint32_t number) {
  std::string word;
  for (int i = 0; i < 4; ++i, number /= 26) {
    word += static_cast<char>('a' + number % 26);
  }
  return word;
}

// Thousands of words that are equally rare, and equally long or of all lengths,
// with characters inside and outside of the alphabet: more than a code has
// words, so many share one.
TEST(KernelSymbolMap, ManyDistinctWords) {
  for (const uint32_t count : {1u, 3u, 2500u, 30000u}) {
    for (const uint32_t lengths : {1u, 50u}) {
      std::vector<std::string> names;
      std::string text;
      for (uint32_t i = 0; i < count; ++i) {
        std::string name = Word(i) + std::string(i % lengths, 'k');
        if (i % 7 == 3) name += "_Q";
        if (i % 31 == 5) name.insert(2, "\xc3\xa9");
        if (i % 3 == 1) name += "." + name;
        char address[32];
        std::snprintf(address, sizeof address, "%x t ", 0x1000 + i * 16);
        text += address + name + "\n";
        names.push_back(std::move(name));
      }
      const auto map = MapOf(text);
      SymbolNameBuffer buffer;
      size_t at = 0;
      map.ForEach(buffer, [&](const KernelSymbol& symbol) {
        return symbol.name == names[at] && ++at != 0;
      });
      EXPECT_EQ(at, names.size()) << count << " words, " << lengths;
    }
  }
}

// Symbols whose distances and names are of no listed value, with gaps, at every
// place of a block.
TEST(KernelSymbolMap, RareValuesAtEveryPlace) {
  std::string text;
  std::vector<std::string> names;
  uint64_t address = 0x1000;
  for (uint32_t i = 0; i < 300; ++i) {
    std::string name = i % 7 == 0 ? "_etext" : "f_" + Word(i);
    if (i % 11 == 0) name = "long";
    if (i % 11 == 0)
      for (uint32_t n = 0; n < i * 9; ++n) name += "_" + Word(n);
    char line[32];
    std::snprintf(line, sizeof line, "%lx %c ", address,
                  i % 13 == 0 ? '?' : 'T');
    text += line + name + "\n";
    names.push_back(std::move(name));
    address += i % 17 == 0 ? 0x123456789 : 16 + i;
  }
  const auto map = MapOf(text);
  SymbolNameBuffer buffer;
  size_t at = 0;
  map.ForEach(buffer, [&](const KernelSymbol& symbol) {
    return symbol.name == names[at] && ++at != 0;
  });
  EXPECT_EQ(at, names.size());
}

// One gap in a large table, whose values are too rare to be listed, at every
// place of a block.
TEST(KernelSymbolMap, ARareGapAtEveryPlace) {
  constexpr uint32_t kSymbols = 40000;
  for (uint32_t gap = 20000; gap < 20005; ++gap) {
    std::string text;
    std::vector<std::string> names;
    for (uint32_t i = 0; i < kSymbols; ++i) {
      names.push_back(i == gap ? "_etext" : "f_" + Word(i));
      char line[32];
      std::snprintf(line, sizeof line, "%x T ", 0x1000 + i * 16);
      text += line + names.back() + "\n";
    }
    const auto map = MapOf(text);
    SymbolNameBuffer buffer;
    size_t at = 0;
    map.ForEach(buffer, [&](const KernelSymbol& symbol) {
      return symbol.name == names[at] && ++at != 0;
    });
    EXPECT_EQ(at, names.size()) << gap;
    EXPECT_EQ(Find(map, 0x1008 + gap * 16), "none");
    EXPECT_EQ(Find(map, 0x1018 + gap * 16), "f_" + Word(gap + 1) + "+8/16");
  }
}

// Addresses at both ends of 64 bits, gigabytes apart, and odd types.
TEST(KernelSymbolMap, ExtremeAddressesAndTypes) {
  const auto map = MapOf(
      "0 A zero\n100000000 t far\nffffffff80000000 ? odd\n"
      "fffffffffffffff0 T last\n");
  EXPECT_EQ(Find(map, 0, kAllKinds), "zero+0/4294967296");
  EXPECT_EQ(Find(map, 0x100000000), "far+0/18446744067267100672");
  EXPECT_EQ(Find(map, 0xfffffffffffffff0), "last+0/15");
  SymbolNameBuffer buffer;
  EXPECT_EQ(map.Find(Address{0xffffffff80000000}, buffer, kAllKinds)->type,
            '?');
}

// After the buffer's first use a lookup allocates nothing.
TEST(KernelSymbolMap, LookupsDoNotAllocate) {
  const auto map = MapOf("1000 T a_b_c\n1010 t __pfx_d\n1020 t d\n1030 T e\n");
  SymbolNameBuffer buffer;
  ASSERT_TRUE(map.Find(Address{0x1000}, buffer));
  const size_t before = allocations;
  for (uint64_t address = 0x1000; address < 0x1040; ++address) {
    map.Find(Address{address}, buffer);
  }
  EXPECT_EQ(allocations, before);
}

// The bytes work wherever they are: owned, borrowed at any alignment, mapped
// from a file.
TEST(KernelSymbolMap, BytesCanBeMovedAndMapped) {
  const auto map = MapOf("1000 T a\n1010 t b\t[m]\n");
  std::vector<std::byte> bytes(map.bytes().begin(), map.bytes().end());
  for (size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> moved(bytes.size() + shift);
    std::ranges::copy(bytes, moved.begin() + static_cast<ptrdiff_t>(shift));
    const auto view = KernelSymbolMap::Borrow(std::span(moved).subspan(shift));
    ASSERT_TRUE(view) << view.error().message();
    EXPECT_EQ(Find(*view, 0x1008), "a+8/16");
  }
  const std::string path = testing::TempDir() + "/map";
  auto file = AtomicFile::Create(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(
      file->Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  ASSERT_TRUE(file->Commit());
  const auto mapped = KernelSymbolMap::MapFile(path);
  ASSERT_TRUE(mapped) << mapped.error().message();
  EXPECT_EQ(Find(*mapped, 0x1008), "a+8/16");
  auto owned = KernelSymbolMap::FromBytes(bytes);
  ASSERT_TRUE(owned);
  const auto elsewhere = std::move(*owned);
  EXPECT_EQ(Find(elsewhere, 0x1008), "a+8/16");
}

// Any changed byte and any lost tail is noticed.
TEST(KernelSymbolMap, DamageIsNoticed) {
  const auto map = MapOf("1000 T a_b\n1010 t b\t[m]\n1020 t a_c\n");
  std::vector<std::byte> bytes(map.bytes().begin(), map.bytes().end());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x40};
    EXPECT_FALSE(KernelSymbolMap::Borrow(bytes)) << i;
    bytes[i] ^= std::byte{0x40};
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(KernelSymbolMap::Borrow(std::span(bytes).first(size)));
  }
  EXPECT_TRUE(KernelSymbolMap::Borrow(bytes));
}

}  // namespace
}  // namespace ksym
