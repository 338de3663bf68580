// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/elf_image.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "ksym/elf/elf_symbols.h"
#include "tests/ksym/elf/elf_builder.h"

namespace ksym {
namespace {

using Builder64 = ElfBuilder<Elf64Types>;
using Builder32 = ElfBuilder<Elf32Types>;

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TestElf WithSymbols() {
  TestElf elf;
  elf.symbols = {{"one", 0x401000, 0x10},
                 {"two", 0x401010, 0x20},
                 {"unsized", 0x401100, 0}};
  elf.dynamic_symbols = {{"dynamic", 0x401200, 0x10}};
  return elf;
}

Result<ElfImage> Parse(const std::string& bytes) {
  return ElfImage::Parse(ByteSource::OfMemory(bytes));
}

// Loads the file and looks at everything in it, as a profiler would; the
// result is the name at each byte of the text, or the error's code.
struct Outcome {
  bool parsed = false;
  ErrorCode code = ErrorCode::kIo;
  std::string names;
};

Outcome Load(const std::string& bytes) {
  Outcome outcome;
  const auto symbols = ElfSymbols::Load(ByteSource::OfMemory(bytes));
  outcome.parsed = symbols.has_value();
  if (!symbols) {
    outcome.code = symbols.error().code();
    return outcome;
  }
  for (uint64_t offset = 0; offset < 0x2000; offset += 8) {
    const auto match = symbols->Find({offset});
    if (!match) continue;
    outcome.names += symbols->ReadName(*match).value_or("?") + ' ';
  }
  return outcome;
}

template <typename Record, typename Field>
void SetField(std::string& bytes, size_t record_offset, Field Record::* field,
              uint64_t value) {
  Record record;
  std::memcpy(&record, bytes.data() + record_offset, sizeof(record));
  record.*field = static_cast<Field>(value);
  std::memcpy(bytes.data() + record_offset, &record, sizeof(record));
}

// Both classes are read alike.
template <typename Builder>
void ExpectRead(const TestElf& elf, ElfClass elf_class) {
  const auto image = Parse(Builder::Build(elf));
  ASSERT_TRUE(image) << image.error().message();
  EXPECT_EQ(image->elf_class(), elf_class);
  ASSERT_EQ(image->segments().size(), 2u);
  EXPECT_FALSE(image->segments()[0].executable);
  EXPECT_TRUE(image->segments()[1].executable);
  EXPECT_EQ(image->segments()[1].address.value, elf.text_address);
  EXPECT_EQ(image->segments()[1].file_size, elf.text_size);
  EXPECT_EQ(image->sections().size(), Builder::kSections);
  EXPECT_EQ(ToHex(image->build_id()), "0102abcd");
  ASSERT_NE(image->FindSection(".symtab"), nullptr);
  EXPECT_EQ(image->FindSection(".symtab")->type, uint32_t{SHT_SYMTAB});
  EXPECT_EQ(image->FindSection(".none"), nullptr);
  const auto symbols =
      ElfSymbols::Load(ByteSource::OfMemory(Builder::Build(elf)));
  ASSERT_TRUE(symbols) << symbols.error().message();
  EXPECT_EQ(symbols->symbol_count(), 4u);
  EXPECT_EQ(symbols->build_id(), "0102abcd");
}

TEST(ElfImageTest, Reads64Bit) {
  ExpectRead<Builder64>(WithSymbols(), ElfClass::k64);
}

TEST(ElfImageTest, Reads32Bit) {
  ExpectRead<Builder32>(WithSymbols(), ElfClass::k32);
}

// A byte of the file has an address exactly while a segment holds it, from
// the first to the last, whatever the base.
TEST(ElfImageTest, TranslatesWithinSegmentsOnly) {
  TestElf elf;
  elf.text_address = 0x7f0000001000;
  elf.text_offset = 0x1000;
  elf.text_size = 0x800;
  const auto image = Parse(Builder64::Build(elf));
  ASSERT_TRUE(image);
  const auto address = [&image](uint64_t offset) {
    const auto found = ToElfAddress(image->segments(), {offset});
    return found ? found->value : 0;
  };
  EXPECT_EQ(address(0), 0x7f0000000000u);
  EXPECT_EQ(address(0xfff), 0x7f0000000fffu);
  EXPECT_EQ(address(0x1000), 0x7f0000001000u);
  EXPECT_EQ(address(0x17ff), 0x7f00000017ffu);
  EXPECT_EQ(address(0x1800), 0u);
  EXPECT_EQ(address(kMax), 0u);
}

// Where two segments hold a byte the executable one is meant, since only code
// is looked up.
TEST(ElfImageTest, PrefersExecutableSegments) {
  const std::vector<ElfSegment> segments = {
      {.file_offset = {0}, .file_size = 0x2000, .address = {0x10000}},
      {.file_offset = {0x1000},
       .file_size = 0x1000,
       .address = {0x501000},
       .executable = true}};
  EXPECT_EQ(ToElfAddress(segments, {0xfff})->value, 0x10fffu);
  EXPECT_EQ(ToElfAddress(segments, {0x1000})->value, 0x501000u);
}

// What is not ELF, or of another byte order, is told from what is broken.
TEST(ElfImageTest, RefusesOtherFormats) {
  for (const std::string& text :
       {std::string(), std::string("\177EL"), std::string("#!/bin/sh\n"),
        std::string(4096, '\0')}) {
    const auto image = Parse(text);
    ASSERT_FALSE(image);
    EXPECT_EQ(image.error().code(), ErrorCode::kUnsupported);
  }
  std::string big_endian = Builder64::Build({});
  big_endian[EI_DATA] = ELFDATA2MSB;
  EXPECT_EQ(Parse(big_endian).error().code(), ErrorCode::kUnsupported);
  std::string no_class = Builder64::Build({});
  no_class[EI_CLASS] = 3;
  EXPECT_EQ(Parse(no_class).error().code(), ErrorCode::kCorrupt);
}

// A header field that leads out of the file is an error, not a read.
TEST(ElfImageTest, RefusesBadProgramHeaders) {
  const std::string good = Builder64::Build(WithSymbols());
  ASSERT_TRUE(Parse(good));
  const auto code = [&good](auto field, uint64_t value) {
    std::string bytes = good;
    SetField<Elf64_Ehdr>(bytes, 0, field, value);
    const auto image = Parse(bytes);
    return image ? ErrorCode::kIo : image.error().code();
  };
  for (const uint64_t value : {uint64_t{good.size()}, kMax, kMax - 55}) {
    EXPECT_EQ(code(&Elf64_Ehdr::e_phoff, value), ErrorCode::kCorrupt);
  }
  EXPECT_EQ(code(&Elf64_Ehdr::e_phnum, 1000), ErrorCode::kCorrupt);
  EXPECT_EQ(code(&Elf64_Ehdr::e_phnum, 0xffff), ErrorCode::kLimit);
  EXPECT_EQ(code(&Elf64_Ehdr::e_phentsize, 0), ErrorCode::kCorrupt);
  EXPECT_EQ(code(&Elf64_Ehdr::e_phentsize, 57), ErrorCode::kCorrupt);
}

// Bad section headers leave a program without names; they do not make it
// another format.
TEST(ElfImageTest, KeepsSegmentsWithoutSections) {
  const std::string good = Builder64::Build(WithSymbols());
  const auto parse = [&good](auto field, uint64_t value) {
    std::string bytes = good;
    SetField<Elf64_Ehdr>(bytes, 0, field, value);
    return Parse(bytes);
  };
  for (const auto& image :
       {parse(&Elf64_Ehdr::e_shoff, good.size()),
        parse(&Elf64_Ehdr::e_shoff, kMax), parse(&Elf64_Ehdr::e_shnum, 0xffff),
        parse(&Elf64_Ehdr::e_shentsize, 0)}) {
    ASSERT_TRUE(image);
    EXPECT_EQ(image->segments().size(), 2u);
    EXPECT_TRUE(image->sections().empty());
    EXPECT_FALSE(image->section_error());
  }
  const auto none = parse(&Elf64_Ehdr::e_shoff, 0);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->section_error());
  // Without names nothing can be found by one, but the types are there.
  const auto nameless = parse(&Elf64_Ehdr::e_shstrndx, kMax);
  ASSERT_TRUE(nameless);
  EXPECT_EQ(nameless->FindSection(".text"), nullptr);
}

// More than 65,279 sections are counted in the first one.
TEST(ElfImageTest, ReadsExtendedSectionCount) {
  std::string bytes = Builder64::Build(WithSymbols());
  const size_t sections =
      bytes.size() - Builder64::kSections * sizeof(Elf64_Shdr);
  SetField<Elf64_Ehdr>(bytes, 0, &Elf64_Ehdr::e_shnum, 0);
  SetField<Elf64_Ehdr>(bytes, 0, &Elf64_Ehdr::e_shstrndx, SHN_XINDEX);
  SetField(bytes, sections, &Elf64_Shdr::sh_size, Builder64::kSections);
  SetField(bytes, sections, &Elf64_Shdr::sh_link, Builder64::kSections - 1);
  const auto image = Parse(bytes);
  ASSERT_TRUE(image);
  EXPECT_NE(image->FindSection(".symtab"), nullptr);
  SetField(bytes, sections, &Elf64_Shdr::sh_size, kMax);
  const auto too_many = Parse(bytes);
  ASSERT_TRUE(too_many);
  EXPECT_TRUE(too_many->sections().empty());
}

// A file cut off anywhere is refused or has fewer names.
TEST(ElfImageTest, SurvivesEachTruncation) {
  TestElf elf = WithSymbols();
  elf.text_size = 0x300;
  const std::string good = Builder64::Build(elf);
  for (size_t size = 0; size < good.size(); ++size) {
    const Outcome outcome = Load(good.substr(0, size));
    EXPECT_FALSE(outcome.parsed) << size;
  }
  EXPECT_TRUE(Load(good).parsed);
}

// A build-id is found among other notes, and one that is too long or cut off
// is none.
TEST(ElfImageTest, BoundsTheBuildId) {
  TestElf elf;
  elf.build_id = std::string(64, 'x');
  EXPECT_EQ(Parse(Builder64::Build(elf))->build_id(), elf.build_id);
  elf.build_id = std::string(65, 'x');
  EXPECT_EQ(Parse(Builder64::Build(elf))->build_id(), "");
  elf.build_id = "";
  EXPECT_EQ(Parse(Builder64::Build(elf))->build_id(), "");
}

}  // namespace
}  // namespace ksym
