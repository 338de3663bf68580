// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/unwind_file.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

using ksym::Address;
using ksym::ElfAddress;
using ksym::FileOffset;

// Code at ELF addresses 0x401000 to 0x402fff, from file offset 0x1000 on.
UnwindFile MakeFile() {
  UnwindFile file;
  file.base = ElfAddress{0x401000};
  file.code = {{.file_offset = FileOffset{0x1000},
                .file_size = 0x2000,
                .address = ElfAddress{0x401000},
                .executable = true}};
  file.pieces = {{.begin = 0,
                  .end = 0x1000,
                  .rows_at = 5,
                  .place = {.shard = 1, .first = 100, .count = 50}},
                 {.begin = 0x1000,
                  .end = 0x2000,
                  .rows_at = 5,
                  .place = {.shard = 2, .first = 0, .count = 50}}};
  return file;
}

ksym::Mapping MakeMapping(uint64_t start, uint64_t end, uint64_t offset) {
  ksym::Mapping mapping;
  mapping.start = Address{start};
  mapping.end = Address{end};
  mapping.file_offset = FileOffset{offset};
  mapping.inode = 1;
  return mapping;
}

// A mapping of all the code has an entry per piece, with the run-time address
// of the table's base.
TEST(UnwindFileTest, HasAnEntryPerPiece) {
  const UnwindFile file = MakeFile();
  std::vector<unwind_mapping> list;
  AppendUnwindMappings(MakeMapping(0x7000'1000, 0x7000'3000, 0x1000), file,
                       list);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].start, 0x7000'1000u);
  EXPECT_EQ(list[0].size, 0x1000u);
  EXPECT_EQ(list[0].base, 0x7000'1000u);
  EXPECT_EQ(list[0].shard, 1u);
  EXPECT_EQ(list[0].index, 100);
  EXPECT_EQ(list[0].rows, 105);
  EXPECT_EQ(list[1].start, 0x7000'2000u);
  EXPECT_EQ(list[1].base, 0x7000'1000u);
  EXPECT_EQ(list[1].shard, 2u);
  EXPECT_EQ(list[1].first_block, 0x10u);
}

// What stands for mappings that were not kept is no code, however large it is.
TEST(UnwindFileTest, LeavesOutWhatStandsForOthers) {
  ksym::Mapping mapping = MakeMapping(0x1000, uint64_t{1} << 63, 0);
  mapping.path = ksym::kTooLargePath;
  std::vector<unwind_mapping> list;
  AppendUnwindMappings(mapping, NoTable::kEver, list);
  EXPECT_TRUE(list.empty());
}

// What a mapping shows before and behind the code has no table.
TEST(UnwindFileTest, FillsGaps) {
  const UnwindFile file = MakeFile();
  std::vector<unwind_mapping> list;
  AppendUnwindMappings(MakeMapping(0x7000'0000, 0x7000'5000, 0), file, list);
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].shard, UNWIND_NO_TABLE);
  EXPECT_EQ(list[0].size, 0x1000u);
  EXPECT_EQ(list[1].start, 0x7000'1000u);
  EXPECT_EQ(list[3].start, 0x7000'3000u);
  EXPECT_EQ(list[3].size, 0x2000u);
  EXPECT_EQ(list[3].shard, UNWIND_NO_TABLE);
}

// A mapping of the second half of the code begins within the table.
TEST(UnwindFileTest, ShowsPartOfATable) {
  const UnwindFile file = MakeFile();
  std::vector<unwind_mapping> list;
  AppendUnwindMappings(MakeMapping(0x7000'0000, 0x7000'1000, 0x2000), file,
                       list);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].base, 0x6fff'f000u);
  EXPECT_EQ(list[0].shard, 2u);
}

// Without a table: one entry, or several if it is larger than one can be;
// none for what is not user memory.
TEST(UnwindFileTest, HasEntriesWithoutATable) {
  std::vector<unwind_mapping> list;
  AppendUnwindMappings(MakeMapping(0x1000, 0x2'0000'2000, 0), NoTable::kEver,
                       list);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[1].start, list[0].start + list[0].size);
  EXPECT_EQ(list[2].start + list[2].size, 0x2'0000'2000u);
  list.clear();
  AppendUnwindMappings(
      MakeMapping(0xffff'ffff'ff60'0000, 0xffff'ffff'ff60'1000, 0),
      NoTable::kEver, list);
  EXPECT_TRUE(list.empty());
}

// What will have a table is told apart from what never will.
TEST(UnwindFileTest, MarksWhatIsToCome) {
  std::vector<unwind_mapping> list;
  AppendUnwindMappings(MakeMapping(0x1000, 0x3000, 0), NoTable::kYet, list);
  AppendUnwindMappings(MakeMapping(0x3000, 0x4000, 0), NoTable::kEver, list);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].start, 0x1000u);
  EXPECT_EQ(list[0].size, 0x2000u);
  EXPECT_EQ(list[0].shard, UNWIND_PENDING);
  EXPECT_EQ(list[1].shard, UNWIND_NO_TABLE);
}

}  // namespace
}  // namespace profd
