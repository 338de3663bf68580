// SPDX-License-Identifier: Apache-2.0
// The bounds of what is read of a file's headers, notes and debug link.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/unique_fd.h"
#include "ksym/elf/debug_file.h"
#include "ksym/elf/elf_image.h"
#include "ksym/elf/elf_symbols.h"
#include "ksym/elf/symbol_reader.h"
#include "ksym/elf/symbol_table.h"
#include "tests/ksym/elf/elf_builder.h"

namespace ksym {
namespace {

using Builder = ElfBuilder<Elf64Types>;
using Clock = std::chrono::steady_clock;

template <typename Record>
void Put(std::string& bytes, size_t offset, const Record& record) {
  if (bytes.size() < offset + sizeof(record)) {
    bytes.resize(offset + sizeof(record));
  }
  std::memcpy(bytes.data() + offset, &record, sizeof(record));
}

TestElf WithoutBuildId() {
  TestElf elf;
  elf.build_id = "";
  return elf;
}

Elf64_Ehdr HeaderOf(const std::string& bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

// A program with so many sections, which all have the table of names as their
// name: `name_bytes` without an end.
std::string WithSections(uint64_t count, size_t name_bytes) {
  std::string bytes = Builder::Build({});
  Elf64_Ehdr header = HeaderOf(bytes);
  const size_t names = bytes.size();
  bytes.append(name_bytes, '.');
  header.e_shoff = bytes.size();
  header.e_shnum = 0;
  header.e_shstrndx = 1;
  Put(bytes, 0, header);
  std::vector<Elf64_Shdr> sections(count);
  sections[0].sh_size = count;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = names;
  sections[1].sh_size = name_bytes;
  bytes.append(reinterpret_cast<const char*>(sections.data()),
               sections.size() * sizeof(Elf64_Shdr));
  return bytes;
}

Result<ElfImage> ParseBytes(std::string bytes) {
  return ElfImage::Parse(ByteSource::OfMemory(std::move(bytes)));
}

// As many sections as there may be are found, and one more is none.
TEST(ElfBoundsTest, Sections) {
  const auto most = ParseBytes(WithSections(kMaxSections, 16));
  ASSERT_TRUE(most);
  EXPECT_TRUE(most->section_error());
  EXPECT_EQ(most->sections().size(), kMaxSections);
  const auto more = ParseBytes(WithSections(kMaxSections + 1, 16));
  ASSERT_TRUE(more);
  EXPECT_TRUE(more->sections().empty());
  ASSERT_FALSE(more->section_error());
  EXPECT_EQ(more->section_error().error().code(), ErrorCode::kLimit);
  const auto symbols = ElfSymbols::Load(
      ByteSource::OfMemory(WithSections(kMaxSections + 1, 16)));
  ASSERT_FALSE(symbols);
  EXPECT_EQ(symbols.error().code(), ErrorCode::kLimit);
}

// Names as long as they may be, which each section has anew, take no time to
// speak of, and one byte more is no table of names.
TEST(ElfBoundsTest, SectionNames) {
  const auto begin = Clock::now();
  const auto most = ParseBytes(WithSections(kMaxSections, kMaxSectionNames));
  ASSERT_TRUE(most);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(most->FindSection(".debug_info"), nullptr);
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
  EXPECT_TRUE(most->section_error());
  const auto more = ParseBytes(WithSections(2, kMaxSectionNames + 1));
  ASSERT_TRUE(more);
  ASSERT_FALSE(more->section_error());
  EXPECT_EQ(more->section_error().error().code(), ErrorCode::kLimit);
}

// A section is found by a name of the longest length, and not by a longer one.
TEST(ElfBoundsTest, OneSectionName) {
  for (const size_t size : {kMaxSectionNameBytes, kMaxSectionNameBytes + 1}) {
    TestElf elf;
    elf.extra_name = std::string(size, 'n');
    const auto image = ParseBytes(Builder::Build(elf));
    ASSERT_TRUE(image);
    EXPECT_EQ(image->FindSection(elf.extra_name) != nullptr,
              size == kMaxSectionNameBytes);
    EXPECT_EQ(image->FindSection(elf.extra_name.substr(1)), nullptr);
  }
}

// The first of sections with one name is found, whatever comes behind.
TEST(ElfBoundsTest, FirstOfEqualNames) {
  TestElf elf;
  elf.extra_name = ".text";
  const auto image = ParseBytes(Builder::Build(elf));
  ASSERT_TRUE(image);
  EXPECT_EQ(image->FindSection(".text"), &image->sections()[1]);
}

// As many program headers as Linux takes, and no more.
TEST(ElfBoundsTest, ProgramHeaders) {
  constexpr size_t kMax = kMaxProgramHeaderBytes / sizeof(Elf64_Phdr);
  for (const size_t count : {kMax, kMax + 1}) {
    std::string bytes = Builder::Build({});
    Elf64_Ehdr header = HeaderOf(bytes);
    header.e_phoff = bytes.size();
    header.e_phnum = static_cast<uint16_t>(count);
    Put(bytes, 0, header);
    Elf64_Phdr segment = {};
    segment.p_type = PT_LOAD;
    segment.p_filesz = 1;
    for (size_t i = 0; i < count; ++i) Put(bytes, bytes.size(), segment);
    const auto image = ParseBytes(bytes);
    ASSERT_EQ(image.has_value(), count == kMax);
    if (image) {
      EXPECT_EQ(image->segments().size(), kMax);
    } else {
      EXPECT_EQ(image.error().code(), ErrorCode::kLimit);
    }
  }
}

// The build-id as the last of `count` notes, which has `size` bytes.
std::string BuildIdBehind(size_t count, size_t size) {
  std::string bytes = Builder::Build(WithoutBuildId());
  Elf64_Ehdr header = HeaderOf(bytes);
  const uint32_t note[] = {4, 2, NT_GNU_BUILD_ID, 0x554e47, 0x6b6f};
  const size_t good = bytes.size();
  bytes.append(reinterpret_cast<const char*>(note), sizeof(note));
  bytes.resize(good + size);
  header.e_phoff = bytes.size();
  header.e_phnum = static_cast<uint16_t>(count);
  header.e_shoff = 0;
  Put(bytes, 0, header);
  Elf64_Phdr segment = {};
  segment.p_type = PT_NOTE;
  for (size_t i = 1; i < count; ++i) Put(bytes, bytes.size(), segment);
  segment.p_offset = good;
  segment.p_filesz = size;
  Put(bytes, bytes.size(), segment);
  return bytes;
}

// A build-id is found in the last note that is looked at, and in the largest.
TEST(ElfBoundsTest, Notes) {
  EXPECT_EQ(ParseBytes(BuildIdBehind(kMaxNotes, 20))->build_id(), "ok");
  EXPECT_EQ(ParseBytes(BuildIdBehind(kMaxNotes + 1, 20))->build_id(), "");
  EXPECT_EQ(ParseBytes(BuildIdBehind(1, kMaxNoteBytes))->build_id(), "ok");
  EXPECT_EQ(ParseBytes(BuildIdBehind(1, kMaxNoteBytes + 1))->build_id(), "");
}

// A program whose symbol table claims so many symbols, which are all zero.
std::string WithSymbols(uint64_t count) {
  std::string bytes = Builder::Build({});
  Elf64_Ehdr header = HeaderOf(bytes);
  const size_t at = header.e_shoff + 3 * sizeof(Elf64_Shdr);
  Elf64_Shdr symtab;
  std::memcpy(&symtab, bytes.data() + at, sizeof(symtab));
  EXPECT_EQ(symtab.sh_type, uint32_t{SHT_SYMTAB});
  symtab.sh_offset = bytes.size();
  symtab.sh_size = count * sizeof(Elf64_Sym);
  Put(bytes, at, symtab);
  bytes.resize(bytes.size() + symtab.sh_size);
  return bytes;
}

// As many symbols as may be are read, and one more is too many.
TEST(ElfBoundsTest, Symbols) {
  EXPECT_TRUE(ElfSymbols::Load(ByteSource::OfMemory(WithSymbols(kMaxSymbols))));
  const auto more =
      ElfSymbols::Load(ByteSource::OfMemory(WithSymbols(kMaxSymbols + 1)));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), ErrorCode::kLimit);
}

// Room is asked for before the symbols of a file are read, and again with those
// of its debug file; what was had before is given back first.
TEST(ElfBoundsTest, AsksForRoom) {
  TestElf debug;
  for (int i = 0; i < 100; ++i) debug.symbols.push_back({"f", 0x401000, 8});
  const DebugFileFinder finder = {
      .file_path = "/usr/bin/tool",
      .open = [&](const std::string&) -> Result<ByteSource> {
        return ByteSource::OfMemory(Builder::Build(debug));
      }};
  std::vector<uint64_t> asked;
  std::weak_ptr<void> last;
  const TableRoom room = [&](uint64_t bytes) -> std::shared_ptr<void> {
    EXPECT_TRUE(last.expired());
    asked.push_back(bytes);
    const auto held = std::make_shared<int>(0);
    last = held;
    return held;
  };
  const auto symbols =
      ElfSymbols::Load(ByteSource::OfMemory(Builder::Build({})), finder, room);
  ASSERT_TRUE(symbols);
  EXPECT_EQ(symbols->symbol_count(), SymbolTable::kMaxAliases);
  EXPECT_TRUE(last.expired());
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_GE(asked[1] - asked[0], 100 * sizeof(SymbolCandidate));
}

// A file of that many bytes that takes no memory.
ByteSource Sparse(uint64_t size) {
  UniqueFd fd(::memfd_create("sparse", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return ByteSource::OfFile(std::move(fd), size);
}

// The checksum of a file as large as may be is there, and not of a larger one.
TEST(DebugFileChecksumsTest, OneFile) {
  DebugFileChecksums checksums;
  EXPECT_TRUE(checksums.Crc(Sparse(kMaxCrcBytes)));
  const auto more = checksums.Crc(Sparse(kMaxCrcBytes + 1));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), ErrorCode::kLimit);
  EXPECT_EQ(checksums.refused(), 1u);
}

// All files together are read up to the bound; what is known is not read again
// until the file changes.
TEST(DebugFileChecksumsTest, AllFiles) {
  DebugFileChecksums checksums({.bytes = 100'000});
  const ByteSource first = Sparse(60'000);
  const auto crc = checksums.Crc(first);
  ASSERT_TRUE(crc);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(checksums.Crc(first), *crc);
  EXPECT_TRUE(checksums.Crc(Sparse(40'000)));
  EXPECT_EQ(checksums.refused(), 0u);
  const auto more = checksums.Crc(Sparse(1));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), ErrorCode::kLimit);
  EXPECT_EQ(checksums.Crc(first), *crc);
  ASSERT_EQ(::pwrite(first.fd(), "x", 1, 0), 1);
  EXPECT_FALSE(checksums.Crc(first));
}

// A user's files use up that user's part, those of all users together theirs,
// and neither what is for root's files.
TEST(DebugFileChecksumsTest, UsersHaveTheirParts) {
  constexpr uid_t kOne = 54321;
  constexpr uid_t kOther = 54322;
  const auto owned = [](uint64_t size, uid_t owner) {
    ByteSource file = Sparse(size);
    return ::fchown(file.fd(), owner, owner) == 0
               ? std::optional(std::move(file))
               : std::nullopt;
  };
  if (!owned(1, kOne)) GTEST_SKIP() << "needs root";
  DebugFileChecksums checksums({.bytes = 100, .bytes_of_user = 60});
  EXPECT_TRUE(checksums.Crc(*owned(60, kOne)));
  EXPECT_FALSE(checksums.Crc(*owned(1, kOne)));
  EXPECT_FALSE(checksums.Crc(*owned(41, kOther)));
  EXPECT_TRUE(checksums.Crc(*owned(40, kOther)));
  EXPECT_FALSE(checksums.Crc(*owned(1, kOther)));
  EXPECT_EQ(checksums.refused(), 3u);
  EXPECT_TRUE(checksums.Crc(*owned(100, 0)));
  EXPECT_FALSE(checksums.Crc(*owned(1, 0)));
}

// Two hundred files whose links lead to one large file cost one reading of it.
TEST(DebugFileChecksumsTest, ManyLinksToOneFile) {
  std::string debug = Builder::Build(WithoutBuildId());
  UniqueFd file(::memfd_create("debug", MFD_CLOEXEC));
  ASSERT_EQ(::write(file.get(), debug.data(), debug.size()),
            static_cast<ssize_t>(debug.size()));
  constexpr uint64_t kSize = uint64_t{255} << 20;
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(kSize)), 0);
  size_t opened = 0;
  const auto open = [&](const std::string&) -> Result<ByteSource> {
    ++opened;
    return ByteSource::OfFile(UniqueFd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)),
                              kSize);
  };
  TestElf stripped = WithoutBuildId();
  stripped.extra_name = ".gnu_debuglink";
  stripped.extra_bytes = std::string("debug\0\0\0\1\2\3\4", 12);
  const DebugFileFinder finder = {
      .file_path = "/usr/bin/tool",
      .open = open,
      .checksums = std::make_shared<DebugFileChecksums>()};
  const auto begin = Clock::now();
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(ElfSymbols::Load(ByteSource::OfMemory(Builder::Build(stripped)),
                                 finder));
  }
  EXPECT_EQ(opened, 600u);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace ksym
