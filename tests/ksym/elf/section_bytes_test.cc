// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/section_bytes.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <string>

#include "ksym/elf/elf_symbols.h"
#include "tests/ksym/elf/elf_builder.h"

namespace ksym {
namespace {

using Builder = ElfBuilder<Elf64Types>;

constexpr uint32_t kFormats[] = {ELFCOMPRESS_ZLIB, kTestZstd};

TestElf WithPackedSymbols(uint32_t format) {
  TestElf elf;
  for (uint64_t i = 0; i < 200; ++i) {
    elf.symbols.push_back(
        {"function_" + std::to_string(i), 0x401000 + i * 16, 16});
  }
  elf.compression = format;
  return elf;
}

std::string NameAt(const Result<ElfSymbols>& symbols, uint64_t offset) {
  if (!symbols) return symbols.error().message();
  const auto match = symbols->Find({offset});
  return match ? symbols->ReadName(*match).value_or("?") : "-";
}

// The section header `index` of a built file, and where it is.
struct Header {
  Header(const std::string& bytes, size_t index)
      : at(bytes.size() - (Builder::kSections - index) * sizeof(section)) {
    std::memcpy(&section, bytes.data() + at, sizeof(section));
  }
  void Write(std::string& bytes) const {
    std::memcpy(bytes.data() + at, &section, sizeof(section));
  }

  size_t at;
  Elf64_Shdr section;
};
constexpr size_t kSymtab = 3;
constexpr size_t kStrtab = 4;

// A file with one field of a section's compression header changed.
template <typename Field>
ErrorCode CodeWith(uint32_t format, size_t index, Field Elf64_Chdr::* field,
                   uint64_t value) {
  std::string bytes = Builder::Build(WithPackedSymbols(format));
  const Header header(bytes, index);
  Elf64_Chdr compression;
  char* place = bytes.data() + header.section.sh_offset;
  std::memcpy(&compression, place, sizeof(compression));
  compression.*field = static_cast<Field>(value);
  std::memcpy(place, &compression, sizeof(compression));
  const auto symbols = ElfSymbols::Load(ByteSource::OfMemory(bytes));
  return symbols ? ErrorCode::kIo : symbols.error().code();
}

class SectionBytesTest : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Formats, SectionBytesTest, testing::ValuesIn(kFormats),
                         [](const auto& param) {
                           return param.param == kTestZstd ? "zstd" : "zlib";
                         });

// Packed symbols and names are read like others, in both classes.
TEST_P(SectionBytesTest, UnpacksSymbolsAndNames) {
  const TestElf elf = WithPackedSymbols(GetParam());
  const auto symbols64 =
      ElfSymbols::Load(ByteSource::OfMemory(Builder::Build(elf)));
  EXPECT_EQ(NameAt(symbols64, 0x1000), "function_0");
  EXPECT_EQ(NameAt(symbols64, 0x1000 + 199 * 16), "function_199");
  EXPECT_EQ(NameAt(symbols64, 0x1000 + 200 * 16), "-");
  const auto symbols32 = ElfSymbols::Load(
      ByteSource::OfMemory(ElfBuilder<Elf32Types>::Build(elf)));
  EXPECT_EQ(NameAt(symbols32, 0x1000 + 7 * 16), "function_7");
}

// So are those of a debug file.
TEST_P(SectionBytesTest, UnpacksDebugFiles) {
  const std::string debug = Builder::Build(WithPackedSymbols(GetParam()));
  const DebugFileFinder finder = {
      "/usr/bin/tool", [&](const std::string&) {
        return Result<ByteSource>(ByteSource::OfMemory(debug));
      }};
  const auto symbols =
      ElfSymbols::Load(ByteSource::OfMemory(Builder::Build(TestElf())), finder);
  EXPECT_EQ(NameAt(symbols, 0x1000 + 16), "function_1");
}

// The size that the header gives is the exact one and within the bound.
TEST_P(SectionBytesTest, ChecksTheCompressionHeader) {
  const uint64_t size = 201 * sizeof(Elf64_Sym);
  const uint32_t format = GetParam();
  for (const size_t section : {kSymtab, kStrtab}) {
    EXPECT_EQ(CodeWith(format, section, &Elf64_Chdr::ch_type, format),
              ErrorCode::kIo);
    EXPECT_EQ(CodeWith(format, section, &Elf64_Chdr::ch_type, 3 - format),
              ErrorCode::kCorrupt);
    EXPECT_EQ(CodeWith(format, section, &Elf64_Chdr::ch_type, 3),
              ErrorCode::kUnsupported);
    for (const uint64_t bad : {uint64_t{0}, size + 1, kMaxUnpackedBytes}) {
      EXPECT_EQ(CodeWith(format, section, &Elf64_Chdr::ch_size, bad),
                ErrorCode::kCorrupt);
    }
    for (const uint64_t bad : {kMaxUnpackedBytes + 1, ~size_t{0}}) {
      EXPECT_EQ(CodeWith(format, section, &Elf64_Chdr::ch_size, bad),
                ErrorCode::kLimit);
    }
  }
  EXPECT_EQ(CodeWith(format, kSymtab, &Elf64_Chdr::ch_size, size),
            ErrorCode::kIo);
  EXPECT_EQ(CodeWith(format, kSymtab, &Elf64_Chdr::ch_size, size - 1),
            ErrorCode::kCorrupt);
}

// Opens a packed section of a file in which it claims that size and has as many
// bytes, of which those behind the first ones are junk.
Result<SectionBytes> OpenWith(uint32_t format, uint64_t claimed,
                              size_t packed_bytes, uint64_t max_bytes) {
  std::string bytes = Builder::Build(WithPackedSymbols(format));
  Header header(bytes, kSymtab);
  std::memcpy(
      bytes.data() + header.section.sh_offset + offsetof(Elf64_Chdr, ch_size),
      &claimed, sizeof(claimed));
  if (packed_bytes > header.section.sh_size) {
    header.section.sh_size = packed_bytes;
    header.Write(bytes);
    bytes.resize(header.section.sh_offset + packed_bytes, 'x');
  }
  const auto file = ByteSource::OfMemory(bytes);
  const auto image = ElfImage::Parse(file);
  if (!image) return Fail(image.error());
  // What is unpacked does not refer to the file.
  return SectionBytes::Open(file, *image, image->sections()[kSymtab],
                            max_bytes);
}

ErrorCode CodeOf(const Result<SectionBytes>& opened) {
  return opened ? ErrorCode::kIo : opened.error().code();
}

// A caller's bound is exact, and one above the usual bound holds only for what
// has a part of its size in the file.
TEST_P(SectionBytesTest, BoundOfTheCaller) {
  const uint32_t format = GetParam();
  const uint64_t size = 201 * sizeof(Elf64_Sym);
  EXPECT_EQ(CodeOf(OpenWith(format, size, 0, size)), ErrorCode::kIo);
  EXPECT_EQ(CodeOf(OpenWith(format, size, 0, size - 1)), ErrorCode::kLimit);
  const uint64_t large = kMaxUnpackedBytes + kMaxTimesPacked;
  const size_t enough = large / kMaxTimesPacked + sizeof(Elf64_Chdr);
  EXPECT_EQ(CodeOf(OpenWith(format, large, enough, large)),
            ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf(OpenWith(format, large, enough, large - 1)),
            ErrorCode::kLimit);
  EXPECT_EQ(CodeOf(OpenWith(format, large, enough - 1, large)),
            ErrorCode::kLimit);
}

// A section that is cut off anywhere gives no names, and a changed one no
// names outside its file; nothing is read outside.
TEST_P(SectionBytesTest, SurvivesDamage) {
  const std::string good = Builder::Build(WithPackedSymbols(GetParam()));
  for (const size_t index : {kSymtab, kStrtab}) {
    const Header header(good, index);
    for (uint64_t size = 0; size < header.section.sh_size; ++size) {
      std::string bytes = good;
      Header cut = header;
      cut.section.sh_size = size;
      cut.Write(bytes);
      EXPECT_FALSE(ElfSymbols::Load(ByteSource::OfMemory(bytes))) << size;
      bytes = good;
      bytes[header.section.sh_offset + size] ^= 0x41;
      const auto symbols = ElfSymbols::Load(ByteSource::OfMemory(bytes));
      // zlib has a checksum; what ZSTD_compress() writes has none.
      if (symbols && GetParam() == ELFCOMPRESS_ZLIB) {
        EXPECT_EQ(NameAt(symbols, 0x1000), "function_0") << size;
      }
    }
  }
}

// A few bytes that unpack to very many cost no more than the header's size,
// which is then found to be wrong.
TEST_P(SectionBytesTest, StopsAtTheSizeOfTheHeader) {
  TestElf elf;
  elf.symbols.push_back({std::string(size_t{8} << 20, 'a'), 0x401000, 16});
  elf.compression = GetParam();
  std::string bytes = Builder::Build(elf);
  const Header header(bytes, kStrtab);
  const uint64_t claimed = 1000;
  std::memcpy(
      bytes.data() + header.section.sh_offset + offsetof(Elf64_Chdr, ch_size),
      &claimed, sizeof(claimed));
  const auto symbols = ElfSymbols::Load(ByteSource::OfMemory(bytes));
  ASSERT_FALSE(symbols);
  EXPECT_EQ(symbols.error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace ksym
