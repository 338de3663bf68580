// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/x86_64/start_code.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/elf/elf_symbols.h"
#include "tests/ksym/elf/elf_builder.h"

namespace ksym {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kStart =
    "\x31\xed\x49\x89\xd1\x5e\x48\x89\xe2\x48\x83\xe4\xf0\x50\x54"sv;
constexpr std::string_view kNoInit = "\x45\x31\xc0\x31\xc9"sv;
// lea 0x100(%rip), %rdi
constexpr std::string_view kLeaMain = "\x48\x8d\x3d\x00\x01\x00\x00"sv;
constexpr std::string_view kCallSlot = "\xff\x15\x00\x02\x00\x00\xf4"sv;

std::optional<StartCode> Find(const std::string& file) {
  const ByteSource source = ByteSource::OfMemory(file);
  const auto image = ElfImage::Parse(source);
  if (!image) return std::nullopt;
  return FindStartCode(source, *image);
}

// A file whose entry point, 16 bytes into its code, has that code.
std::string FileWith(std::string_view code) {
  constexpr uint64_t kDistance = 16;
  const TestElf elf;
  std::string file = ElfBuilder<Elf64Types>::Build(elf);
  file.replace(elf.text_offset + kDistance, code.size(), code);
  const uint64_t entry = elf.text_address + kDistance;
  std::memcpy(file.data() + offsetof(Elf64_Ehdr, e_entry), &entry,
              sizeof(entry));
  return file;
}

std::string Code(std::string_view init, std::string_view main,
                 std::string_view call = kCallSlot) {
  std::string code(kStart);
  for (const std::string_view part : {init, main, call}) code += part;
  return code;
}

// Programs as this machine's compiler and C library make them: what is found is
// what the symbols say.
TEST(StartCodeTest, AgreesWithSymbols) {
  int files = 0;
  std::string_view paths = KSYM_START_PROGRAMS;
  while (!paths.empty()) {
    const std::string path(TakeField(paths, ','));
    SCOPED_TRACE(path);
    const auto bytes = ReadFile(path, size_t{8} << 20);
    ASSERT_TRUE(bytes) << bytes.error().message();
    const ByteSource source = ByteSource::OfMemory(*bytes);
    const auto image = ElfImage::Parse(source);
    ASSERT_TRUE(image) << image.error().message();
    const auto found = FindStartCode(source, *image);
    ASSERT_TRUE(found);
    const auto symbols = ElfSymbols::Load(ByteSource::OfMemory(*bytes));
    ASSERT_TRUE(symbols) << symbols.error().message();
    const auto name_at = [&](ElfAddress address) {
      for (const ElfSegment& segment : image->segments()) {
        if (!segment.executable || address < segment.address) continue;
        const auto match = symbols->Find(
            {segment.file_offset.value + (address - segment.address)});
        if (match && match->start == address) return *symbols->ReadName(*match);
      }
      return std::string();
    };
    EXPECT_EQ(name_at(found->main), "main");
    EXPECT_EQ(name_at(found->start), "_start");
    ++files;
  }
  EXPECT_EQ(files, 3);
}

TEST(StartCodeTest, KnowsOlderLibraries) {
  const TestElf elf;
  const auto found = Find(FileWith(Code(kNoInit, kLeaMain)));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->start.value, elf.text_address + 16);
  // Behind the lea.
  const uint64_t end =
      found->start.value + kStart.size() + kNoInit.size() + kLeaMain.size();
  EXPECT_EQ(found->main.value, end + 0x100);
  // Up to 2.33, with addresses and relative to the code; and with CET.
  const auto with_addresses = Find(FileWith(Code(
      "\x49\xc7\xc0\x00\x12\x40\x00\x48\xc7\xc1\x80\x11\x40\x00"sv,
      "\x48\xc7\xc7\x40\x11\x40\x00"sv, "\x67\xe8\x00\x01\x00\x00\xf4"sv)));
  ASSERT_TRUE(with_addresses);
  EXPECT_EQ(with_addresses->main.value, 0x401140u);
  EXPECT_TRUE(Find(FileWith(
      "\xf3\x0f\x1e\xfa" +
      Code("\x4c\x8d\x05\x00\x03\x00\x00\x48\x8d\x0d\x00\x03\x00\x00"sv,
           kLeaMain))));
}

// Another begin, no call behind it, or a main() that is in no code of the file.
TEST(StartCodeTest, RefusesOtherCode) {
  EXPECT_FALSE(Find(FileWith("\x48" + Code(kNoInit, kLeaMain))));
  EXPECT_FALSE(Find(FileWith(Code("", kLeaMain))));
  EXPECT_FALSE(Find(FileWith(Code(kNoInit, kLeaMain, "\xc3"))));
  EXPECT_FALSE(Find(FileWith(Code(kNoInit, "\x48\x8d\x3d\x00\x00\x00\x01"sv))));
  EXPECT_FALSE(Find(FileWith(Code(kNoInit, "\x48\xc7\xc7\xff\xff\xff\xff"sv))));
  std::string cut = FileWith(Code(kNoInit, kLeaMain));
  cut.resize(TestElf().text_offset + 32);
  EXPECT_FALSE(Find(cut));
  const TestElf elf;
  EXPECT_FALSE(Find(ElfBuilder<Elf32Types>::Build(elf)));
  EXPECT_FALSE(Find(ElfBuilder<Elf64Types>::Build(elf)));
}

}  // namespace
}  // namespace ksym
