// SPDX-License-Identifier: Apache-2.0
// Call-frame information that no compiler writes, or only an old one.

#include "ksym/unwind/call_frames.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ksym/elf/elf_builder.h"
#include "tests/ksym/unwind/cfi_builder.h"
#include "tests/ksym/unwind/describe_row.h"
#include "tests/ksym/unwind/table_of.h"

namespace ksym {
namespace {

using std::string_literals::operator""s;

constexpr uint64_t kText = 0x1000;
constexpr uint64_t kTextSize = 0x1000;
// advance_loc 1; def_cfa_offset 16
constexpr std::string_view kPush = "\x41\x0e\x10";

// The table of a file with this section.
Result<UnwindTable> TableOf(const std::string& bytes,
                            const std::string& name = ".eh_frame") {
  TestElf elf;
  elf.text_address = kText;
  elf.text_offset = kText;
  elf.text_size = kTextSize;
  elf.extra_name = name;
  elf.extra_bytes = bytes;
  return TableOf(ByteSource::OfMemory(ElfBuilder<Elf64Types>::Build(elf)));
}

std::string RowAt(const Result<UnwindTable>& table, uint64_t pc) {
  if (!table) return table.error().message();
  return DescribeRow(FindUnwindRow(*table, pc));
}

// A section with one FDE, of the first 0x100 bytes.
std::string OneFunction(const CieFields& cie, std::string_view instructions) {
  CfiBuilder builder(CfiLayout::kEhFrame);
  builder.AddFde(builder.AddCie(cie), kText, 0x100, instructions);
  return builder.bytes();
}

// Functions are found through every encoding of pointers that can be read
// without the process.
TEST(CallFramesTest, ReadsPointerEncodings) {
  for (const uint8_t encoding :
       std::to_array<uint8_t>({0x00, 0x01, 0x02, 0x03, 0x04, 0x0a, 0x0b, 0x0c,
                               0x10, 0x13, 0x14, 0x1a, 0x1b, 0x1c})) {
    CieFields cie;
    cie.pointers = encoding;
    const auto table = TableOf(OneFunction(cie, kPush));
    EXPECT_EQ(RowAt(table, 0), "rsp+8") << int{encoding};
    EXPECT_EQ(RowAt(table, 1), "rsp+16") << int{encoding};
    EXPECT_EQ(RowAt(table, 0xff), "rsp+16") << int{encoding};
    EXPECT_EQ(RowAt(table, 0x100), "no info") << int{encoding};
  }
}

// Indirect pointers, and those that are relative to a section or a function,
// are refused and counted.
TEST(CallFramesTest, RefusesOtherPointerEncodings) {
  for (const uint8_t encoding : std::to_array<uint8_t>(
           {0x80, 0x9b, 0x20, 0x30, 0x40, 0x50, 0x05, 0xff})) {
    CieFields cie;
    cie.pointers = encoding;
    const auto table = TableOf(OneFunction(cie, kPush));
    ASSERT_TRUE(table);
    EXPECT_EQ(table->counts.bad_fdes, 1u) << int{encoding};
    EXPECT_EQ(RowAt(table, 0), "no info") << int{encoding};
  }
}

// Both widths of both sections, and every version of a CIE.
TEST(CallFramesTest, ReadsEveryLayout) {
  for (const CfiLayout layout : {CfiLayout::kEhFrame, CfiLayout::kDebugFrame}) {
    for (const CfiWidth width : {CfiWidth::k32, CfiWidth::k64}) {
      for (const uint8_t version : std::to_array<uint8_t>({1, 3, 4})) {
        CfiBuilder builder(layout, width);
        CieFields cie;
        cie.version = version;
        cie.augmentation = layout == CfiLayout::kEhFrame ? "zR" : "";
        const size_t first = builder.AddCie(cie);
        builder.AddFde(first, kText, 0x10, kPush);
        builder.AddFde(first, kText + 0x10, 0x10, "");
        const auto table = TableOf(
            builder.bytes(),
            layout == CfiLayout::kEhFrame ? ".eh_frame" : ".debug_frame");
        EXPECT_EQ(RowAt(table, 0xf), "rsp+16");
        EXPECT_EQ(RowAt(table, 0x1f), "rsp+8");
        EXPECT_EQ(RowAt(table, 0x20), "no info");
      }
    }
  }
}

// set_loc moves to an address, forwards only.
TEST(CallFramesTest, SetsLocations) {
  const std::string forwards = "\x01\x20\x10\0\0\x0e\x18"s;
  const std::string backwards = "\x60\x01\x10\x10\0\0\x0e\x18"s;
  CieFields cie;
  cie.pointers = 0x03;
  const auto table = TableOf(OneFunction(cie, forwards));
  EXPECT_EQ(RowAt(table, 0x1f), "rsp+8");
  EXPECT_EQ(RowAt(table, 0x20), "rsp+24");
  EXPECT_EQ(RowAt(TableOf(OneFunction(cie, backwards)), 0), "no info");
}

// A bad entry costs its own range: the one before and the one behind it stay.
TEST(CallFramesTest, ABadEntryCostsItsOwnRange) {
  const std::string unknown = "\x3f"s;
  const std::string cut = "\x0c\x07"s;
  const std::string unpaired = "\x0b"s;
  const std::string endless(100, '\x0a');
  const std::string wide_leb =
      "\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s;
  for (const std::string& bad : {unknown, cut, unpaired, endless, wide_leb}) {
    CfiBuilder builder(CfiLayout::kEhFrame);
    const size_t cie = builder.AddCie({});
    builder.AddFde(cie, kText, 0x10, kPush);
    builder.AddFde(cie, kText + 0x10, 0x10, std::string(kPush) + bad);
    builder.AddFde(cie, kText + 0x20, 0x10, kPush);
    const auto table = TableOf(builder.bytes());
    ASSERT_TRUE(table);
    EXPECT_EQ(table->counts.bad_fdes, 1u);
    EXPECT_EQ(table->counts.fdes, 3u);
    EXPECT_EQ(RowAt(table, 0x0f), "rsp+16");
    EXPECT_EQ(RowAt(table, 0x10), "no info");
    EXPECT_EQ(RowAt(table, 0x1f), "no info");
    EXPECT_EQ(RowAt(table, 0x21), "rsp+16");
    EXPECT_EQ(table->first_problem.rfind(".eh_frame, entry at offset 0x", 0),
              0u)
        << table->first_problem;
  }
}

// A bad CIE costs the functions that begin with it.
TEST(CallFramesTest, ABadCommonEntryCostsItsFunctions) {
  CieFields unknown;
  unknown.augmentation = "zQ";
  CieFields old;
  old.augmentation = "eh";
  CieFields version;
  version.version = 2;
  CieFields other_register;
  other_register.return_register = 15;
  CieFields instructions;
  instructions.instructions = "\x3e";
  for (const CieFields& bad :
       {unknown, old, version, other_register, instructions}) {
    CfiBuilder builder(CfiLayout::kEhFrame);
    builder.AddFde(builder.AddCie(bad), kText, 0x10, "");
    builder.AddFde(builder.AddCie({}), kText + 0x10, 0x10, "");
    const auto table = TableOf(builder.bytes());
    ASSERT_TRUE(table);
    EXPECT_EQ(table->counts.bad_fdes, 1u);
    EXPECT_EQ(RowAt(table, 0), "no info");
    EXPECT_EQ(RowAt(table, 0x10), "rsp+8");
  }
}

// An entry that is longer than the section ends it; what was before counts.
TEST(CallFramesTest, ALengthPastTheEndEndsTheSection) {
  for (const std::string& end :
       {"\x40\0\0\0\0\0\0\0"s, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s,
        "\x02\0\0\0\0\0"s, "\x01"s}) {
    CfiBuilder builder(CfiLayout::kEhFrame);
    builder.AddFde(builder.AddCie({}), kText, 0x10, kPush);
    builder.AddRaw(end);
    const auto table = TableOf(builder.bytes());
    ASSERT_TRUE(table);
    EXPECT_EQ(table->counts.bad_fdes, 1u);
    EXPECT_EQ(RowAt(table, 1), "rsp+16");
  }
}

// Functions that are not code, and pointers to where no CIE is, are counted.
TEST(CallFramesTest, CountsWhatIsNoCode) {
  CfiBuilder builder(CfiLayout::kEhFrame);
  const size_t cie = builder.AddCie({});
  builder.AddFde(cie, kText - 1, 0x10, "");
  builder.AddFde(cie, kText + kTextSize - 1, 2, "");
  builder.AddFde(cie, ~uint64_t{0}, 2, "");
  builder.AddFde(cie + 1, kText, 0x10, "");
  builder.AddFde(cie, kText, 0, "");
  builder.AddFde(cie, kText + kTextSize - 1, 1, "");
  const auto table = TableOf(builder.bytes());
  ASSERT_TRUE(table);
  EXPECT_EQ(table->counts.bad_fdes, 4u);
  EXPECT_EQ(table->counts.fdes, 1u);
  EXPECT_EQ(RowAt(table, kTextSize - 2), "no info");
  EXPECT_EQ(RowAt(table, kTextSize - 1), "rsp+8");
}

// The function that begins later counts from there on where two overlap, and
// the first of two at one place.
TEST(CallFramesTest, OverlapsHaveARule) {
  CfiBuilder builder(CfiLayout::kEhFrame);
  const size_t cie = builder.AddCie({});
  builder.AddFde(cie, kText + 0x10, 0x10, "\x0e\x18");
  builder.AddFde(cie, kText, 0x40, "\x0e\x10");
  builder.AddFde(cie, kText + 0x10, 0x20, "\x0e\x20");
  const auto table = TableOf(builder.bytes());
  ASSERT_TRUE(table);
  EXPECT_EQ(table->counts.overlapping_fdes, 2u);
  EXPECT_EQ(RowAt(table, 0x0f), "rsp+16");
  EXPECT_EQ(RowAt(table, 0x10), "rsp+24");
  EXPECT_EQ(RowAt(table, 0x1f), "rsp+24");
  EXPECT_EQ(RowAt(table, 0x20), "no info");
}

// In .debug_frame a CIE may stand behind its functions.
TEST(CallFramesTest, FindsCommonEntriesBehindTheirFunctions) {
  CieFields cie;
  cie.augmentation = "";
  CfiBuilder measure(CfiLayout::kDebugFrame);
  measure.AddFde(0, kText, 0x10, kPush);
  CfiBuilder builder(CfiLayout::kDebugFrame);
  builder.AddFde(measure.bytes().size(), kText, 0x10, kPush);
  builder.AddCie(cie);
  const auto table = TableOf(builder.bytes(), ".debug_frame");
  EXPECT_EQ(RowAt(table, 0), "rsp+8");
  EXPECT_EQ(RowAt(table, 1), "rsp+16");
}

// Terminators in the middle of a section that the file's headers bound are
// skipped.
TEST(CallFramesTest, SkipsInnerTerminators) {
  CfiBuilder builder(CfiLayout::kEhFrame);
  const size_t cie = builder.AddCie({});
  builder.AddRaw("\0\0\0\0"s);
  builder.AddFde(cie, kText, 0x10, kPush);
  EXPECT_EQ(RowAt(TableOf(builder.bytes()), 1), "rsp+16");
}

// The return from a signal handler is known by its code, from one byte before
// it to its end, and not where it has rows.
TEST(CallFramesTest, KnowsSignalReturnsByTheirCode) {
  const std::string code = "\x48\xc7\xc0\x0f\0\0\0\x0f\x05"s;
  TestElf elf;
  elf.text_address = kText;
  elf.text_offset = kText;
  elf.text_size = kTextSize;
  std::string file = ElfBuilder<Elf64Types>::Build(elf);
  file.replace(kText + 0x20, code.size(), code);
  file.replace(kText + kTextSize - code.size(), code.size(), code);
  const auto table = ksym::TableOf(ByteSource::OfMemory(file));
  EXPECT_EQ(RowAt(table, 0x1e), "no info");
  EXPECT_EQ(RowAt(table, 0x1f), "signal");
  EXPECT_EQ(RowAt(table, 0x28), "signal");
  EXPECT_EQ(RowAt(table, 0x29), "no info");
  EXPECT_EQ(RowAt(table, kTextSize - 1), "signal");

  CfiBuilder builder(CfiLayout::kEhFrame);
  builder.AddFde(builder.AddCie({}), kText, 0x40, "");
  elf.extra_name = ".eh_frame";
  elf.extra_bytes = builder.bytes();
  file = ElfBuilder<Elf64Types>::Build(elf);
  file.replace(kText + 0x20, code.size(), code);
  EXPECT_EQ(RowAt(ksym::TableOf(ByteSource::OfMemory(file)), 0x20), "rsp+8");
}

// Files that have no rows say so, or why they cannot.
TEST(CallFramesTest, FilesWithoutRows) {
  const auto none = TableOf("", ".other");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->rows, std::vector<UnwindRow>(1));
  EXPECT_EQ(none->base, ElfAddress{kText});
  EXPECT_EQ(none->size, kTextSize);

  const auto narrow = ksym::TableOf(
      ByteSource::OfMemory(ElfBuilder<Elf32Types>::Build(TestElf())));
  ASSERT_FALSE(narrow);
  EXPECT_EQ(narrow.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(narrow.error().message().find("32-bit"), std::string::npos);
}

}  // namespace
}  // namespace ksym
