// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/function_ranges.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/elf/elf_symbols.h"

namespace ksym {
namespace {

struct Extent {
  uint64_t start = 0;
  uint64_t size = 0;
};

FunctionRanges RangesOf(std::initializer_list<Extent> extents) {
  CallFrames frames;
  for (const Extent& extent : extents) {
    frames.functions.push_back({.start = extent.start,
                                .size = extent.size,
                                .common = 0,
                                .offset = 0,
                                .instructions = 0,
                                .instructions_size = 0});
  }
  return FunctionRanges(frames);
}

// 0: no function.
uint64_t StartOf(const FunctionRanges& ranges, uint64_t address) {
  const auto start = ranges.FindStart({address});
  return start ? start->value : 0;
}

ByteSource SourceOf(const char* path) {
  auto file = OpenForRead(path);
  EXPECT_TRUE(file.has_value());
  struct stat status = {};
  EXPECT_EQ(::fstat(file->get(), &status), 0);
  return ByteSource::OfFile(std::move(*file),
                            static_cast<uint64_t>(status.st_size));
}

// A function covers its bytes and no others, whatever the entries' order.
TEST(FunctionRangesTest, FindsStarts) {
  const FunctionRanges ranges =
      RangesOf({{0x2000, 0x20}, {0x1000, 0x10}, {0x1010, 1}});
  EXPECT_EQ(StartOf(ranges, 0xfff), 0u);
  EXPECT_EQ(StartOf(ranges, 0x1000), 0x1000u);
  EXPECT_EQ(StartOf(ranges, 0x100f), 0x1000u);
  EXPECT_EQ(StartOf(ranges, 0x1010), 0x1010u);
  EXPECT_EQ(StartOf(ranges, 0x1011), 0u);
  EXPECT_EQ(StartOf(ranges, 0x201f), 0x2000u);
  EXPECT_EQ(StartOf(ranges, 0x2020), 0u);
  EXPECT_EQ(StartOf(ranges, std::numeric_limits<uint64_t>::max()), 0u);
  EXPECT_EQ(StartOf(FunctionRanges(), 0), 0u);
}

// Entries that lie do not matter to others: without a size, too large, too far
// away, or a second one at the same place.
TEST(FunctionRangesTest, TakesOnlyWhatHoldsUp) {
  constexpr uint64_t k4Gib = uint64_t{1} << 32;
  const FunctionRanges ranges = RangesOf({{0x1000, 0x10},
                                          {0x1000, 0x20},
                                          {0x500, 0},
                                          {0x800, k4Gib},
                                          {0x3000, k4Gib},
                                          {0x1000 + k4Gib, 0x10},
                                          {0xfff + k4Gib, 0x10}});
  EXPECT_EQ(ranges.size(), 2u);
  EXPECT_EQ(StartOf(ranges, 0x100f), 0x1000u);
  EXPECT_EQ(StartOf(ranges, 0x1010), 0u);
  EXPECT_EQ(StartOf(ranges, 0x500), 0u);
  EXPECT_EQ(StartOf(ranges, 0x900), 0u);
  EXPECT_EQ(StartOf(ranges, 0x3000), 0u);
  EXPECT_EQ(StartOf(ranges, k4Gib + 0x1000), k4Gib + 0xfff);
}

// This test's own functions begin where their symbols do, and memory is asked
// for while they are read.
TEST(FunctionRangesTest, AgreesWithSymbols) {
  constexpr const char* kSelf = "/proc/self/exe";
  uint64_t asked = 0;
  const auto ranges =
      FunctionRanges::Load(SourceOf(kSelf), [&asked](uint64_t bytes) {
        asked += bytes;
        return std::shared_ptr<void>();
      });
  ASSERT_TRUE(ranges.has_value());
  EXPECT_GT(asked, ranges->memory_bytes());
  const auto symbols = ElfSymbols::Load(SourceOf(kSelf));
  ASSERT_TRUE(symbols.has_value());
  size_t compared = 0;
  size_t equal = 0;
  for (const ElfSegment& segment : symbols->segments()) {
    if (!segment.executable) continue;
    for (uint64_t at = 0; at < segment.file_size; at += 64) {
      const ElfAddress address = segment.address + at;
      const auto symbol = symbols->FindAddress(address);
      const auto start = ranges->FindStart(address);
      if (!symbol || !start) continue;
      ++compared;
      equal += symbol->start == *start ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 1000u);
  // A symbol may stand for several functions, as that of linkage stubs does.
  EXPECT_GT(equal, compared - compared / 50);
}

// A file without call-frame information has no functions; what is no ELF file
// is an error.
TEST(FunctionRangesTest, NeedsAnElfFile) {
  EXPECT_FALSE(FunctionRanges::Load(ByteSource::OfMemory("text")).has_value());
}

}  // namespace
}  // namespace ksym
