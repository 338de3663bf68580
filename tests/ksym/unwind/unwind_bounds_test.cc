// SPDX-License-Identifier: Apache-2.0
// The bounds of what is read of call-frame information.

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/unwind/call_frame_section.h"
#include "ksym/unwind/call_frames.h"
#include "ksym/unwind/unwind_table.h"
#include "ksym/unwind/x86_64/undescribed_code.h"
#include "tests/ksym/elf/elf_builder.h"
#include "tests/ksym/sanitized.h"
#include "tests/ksym/unwind/cfi_builder.h"

namespace ksym {
namespace {

constexpr CodeExtent kExtent = {.base = {0x1000}, .size = 0x40000000};
constexpr uint8_t kAbsolute4 = 3;  // DW_EH_PE_udata4

CieFields Common() {
  CieFields cie;
  cie.pointers = kAbsolute4;
  return cie;
}

CallFrameSection SectionOf(const std::string& text) {
  CallFrameSection section;
  const auto bytes = std::as_bytes(std::span(text));
  section.bytes.assign(bytes.begin(), bytes.end());
  return section;
}

// So many functions of 16 bytes, one after the other.
std::string WithFunctions(size_t count) {
  CfiBuilder builder(CfiLayout::kEhFrame);
  const size_t cie = builder.AddCie(Common());
  for (size_t i = 0; i < count; ++i) {
    builder.AddFde(cie, kExtent.base.value + 16 * i, 16, "");
  }
  return builder.bytes();
}

// As many functions as there may be have a table, and with one more there is
// none.
TEST(UnwindBoundsTest, Functions) {
  if (kIsSanitized) GTEST_SKIP() << "takes too long with a sanitizer";
  const auto most =
      BuildSectionTable(SectionOf(WithFunctions(kMaxFrameEntries)), kExtent);
  ASSERT_TRUE(most) << most.error().message();
  EXPECT_EQ(most->counts.fdes, kMaxFrameEntries);
  const auto more = BuildSectionTable(
      SectionOf(WithFunctions(kMaxFrameEntries + 1)), kExtent);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), ErrorCode::kLimit);
}

// Symbols of a table are looked at up to the bound, and none behind it.
TEST(UnwindBoundsTest, ScannedSymbols) {
  TestElf elf;
  // The first one of a table is none.
  elf.symbols.assign(kMaxScannedSymbols, {.name = "", .type = STT_NOTYPE});
  const auto at = [&](uint64_t index) -> TestSymbol& {
    return elf.symbols[index - 1];
  };
  at(kMaxScannedSymbols - 1) = {.name = "", .value = elf.text_address + 0x10};
  at(kMaxScannedSymbols) = {.name = "", .value = elf.text_address + 0x20};
  const auto source = ByteSource::OfMemory(ElfBuilder<Elf64Types>::Build(elf));
  const auto image = ElfImage::Parse(source);
  ASSERT_TRUE(image) << image.error().message();
  UnwindTable table;
  static_cast<CodeExtent&>(table) = {.base = {elf.text_address},
                                     .size = elf.text_size};
  const std::vector<CodeRange> gaps = {{0, elf.text_size}};
  const CodeToScan code = FindCodeToScan(source, *image, table, gaps);
  EXPECT_EQ(code.entries, std::vector<uint32_t>{0x10});
}

// So it is with what functions have in common.
TEST(UnwindBoundsTest, CommonEntries) {
  for (const size_t count : {kMaxCommonEntries, kMaxCommonEntries + 1}) {
    CfiBuilder builder(CfiLayout::kEhFrame);
    for (size_t i = 1; i < count; ++i) builder.AddCie(Common());
    const size_t cie = builder.AddCie(Common());
    builder.AddFde(cie, kExtent.base.value, 16, "");
    const auto table = BuildSectionTable(SectionOf(builder.bytes()), kExtent);
    ASSERT_EQ(table.has_value(), count == kMaxCommonEntries);
    if (!table) {
      EXPECT_EQ(table.error().code(), ErrorCode::kLimit);
    }
  }
}

// As many rows as there may be are kept, and not one more: of a function with a
// row for each byte, and one behind it.
TEST(UnwindBoundsTest, Rows) {
  if (kIsSanitized) GTEST_SKIP() << "takes too long with a sanitizer";
  for (const size_t rows : {kMaxUnwindRows, kMaxUnwindRows + 1}) {
    // advance_loc 1, def_cfa_offset 16 or 8: a row each.
    std::string instructions;
    for (size_t i = 2; i < rows; ++i) {
      instructions += '\x41';
      instructions += '\x0e';
      instructions += i % 2 == 0 ? '\x10' : '\x08';
    }
    CfiBuilder builder(CfiLayout::kEhFrame);
    const size_t cie = builder.AddCie(Common());
    builder.AddFde(cie, kExtent.base.value, rows - 1, instructions);
    builder.AddFde(cie, kExtent.base.value + rows - 1, 1, "\x0e\x20");
    const auto table = BuildSectionTable(SectionOf(builder.bytes()),
                                         {.base = kExtent.base, .size = rows});
    ASSERT_EQ(table.has_value(), rows == kMaxUnwindRows);
    if (table) {
      EXPECT_EQ(table->rows.size(), kMaxUnwindRows);
    } else {
      EXPECT_EQ(table.error().code(), ErrorCode::kLimit);
    }
  }
}

// A section as large as may be is read, and a larger one is not.
TEST(UnwindBoundsTest, SectionBytes) {
  for (const size_t size : {kMaxCallFrameBytes, kMaxCallFrameBytes + 1}) {
    const std::string names("\0.eh_frame", 11);
    std::string file(64, '\0');
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_shoff = sizeof(header) + names.size() + size;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 2;
    Elf64_Shdr sections[2] = {};
    sections[0].sh_offset = sizeof(header);
    sections[0].sh_size = names.size();
    sections[1].sh_name = 1;
    sections[1].sh_type = SHT_PROGBITS;
    sections[1].sh_offset = sizeof(header) + names.size();
    sections[1].sh_size = size;
    std::memcpy(file.data(), &header, sizeof(header));
    file += names;
    file.resize(file.size() + size);
    file.append(reinterpret_cast<const char*>(sections), sizeof(sections));
    const auto source = ByteSource::OfMemory(file);
    const auto image = ElfImage::Parse(source);
    ASSERT_TRUE(image);
    ASSERT_NE(image->FindSection(".eh_frame"), nullptr);
    const auto section = ReadEhFrame(source, *image);
    ASSERT_EQ(section.has_value(), size == kMaxCallFrameBytes);
    if (!section) {
      EXPECT_EQ(section.error().code(), ErrorCode::kLimit);
    }
  }
}

}  // namespace
}  // namespace ksym
