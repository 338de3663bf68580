// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/debug_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/base/trust.h"
#include "ksym/base/unique_fd.h"
#include "ksym/elf/elf_symbols.h"
#include "tests/ksym/elf/elf_builder.h"

namespace ksym {
namespace {

using Builder = ElfBuilder<Elf64Types>;

std::string Pack(const std::string& text) {
  std::string packed(text.size() + 65536, '\0');
  size_t used = 0;
  EXPECT_EQ(
      ::lzma_easy_buffer_encode(
          6, LZMA_CHECK_CRC32, nullptr,
          reinterpret_cast<const uint8_t*>(text.data()), text.size(),
          reinterpret_cast<uint8_t*>(packed.data()), &used, packed.size()),
      LZMA_OK);
  packed.resize(used);
  return packed;
}

// The file that holds the symbols: the same text, and "debug" at its start.
TestElf DebugElf() {
  TestElf elf;
  elf.symbols = {{"debug", 0x401000, 0x10}};
  return elf;
}

// A file without .symtab's symbols, with one dynamic symbol.
TestElf StrippedElf() {
  TestElf elf;
  elf.dynamic_symbols = {{"dynamic", 0x401010, 0x10}};
  return elf;
}

std::string LinkTo(const std::string& name, const std::string& target) {
  std::string link = name;
  link.resize((name.size() + 4) / 4 * 4, '\0');
  const auto crc = static_cast<uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(target.data()),
              static_cast<uInt>(target.size())));
  link.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  return link;
}

// The names at the two symbols' places; "-" for none.
std::string Names(const std::string& bytes,
                  const DebugFileFinder& finder = {}) {
  const auto symbols = ElfSymbols::Load(ByteSource::OfMemory(bytes), finder);
  if (!symbols) return symbols.error().message();
  std::string names;
  for (const uint64_t offset : {0x1000, 0x1010}) {
    const auto match = symbols->Find({offset});
    names += match ? symbols->ReadName(*match).value_or("?") : "-";
    names += ' ';
  }
  return names;
}

// A file system of a few files.
class DebugFileTest : public testing::Test {
 protected:
  DebugFileFinder Finder() {
    return {"/usr/bin/tool",
            [this](const std::string& path) -> Result<ByteSource> {
              opened_.push_back(path);
              const auto file = files_.find(path);
              if (file == files_.end()) {
                return Fail(ErrorCode::kNotFound, path);
              }
              return ByteSource::OfMemory(file->second);
            }};
  }

  std::map<std::string, std::string> files_;
  std::vector<std::string> opened_;
};

// A file that everybody may write to is not opened, and the error says whose it
// is; what is not there is told as ever.
TEST(OnlyTrustedTest, OpensWhatMayName) {
  std::string path = testing::TempDir() + "ksym_trust_XXXXXX";
  const UniqueFd fd(::mkstemp(path.data()));
  ASSERT_TRUE(fd.valid());
  const auto owner = OwnerOf(fd.get());
  ASSERT_TRUE(owner);
  const auto open =
      OnlyTrusted(*owner, [](const std::string& name) -> Result<ByteSource> {
        auto opened = OpenForRead(name);
        if (!opened) return Fail(std::move(opened.error()));
        return ByteSource::OfFile(std::move(*opened), 0);
      });
  EXPECT_TRUE(open(path));
  ASSERT_EQ(::fchmod(fd.get(), 0646), 0);
  const auto refused = open(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kPermission);
  EXPECT_EQ(refused.error().sys_errno(), 0);
  EXPECT_NE(refused.error().message().find(path + " (of user " +
                                           std::to_string(::geteuid()) + ")"),
            std::string::npos);
  ::unlink(path.c_str());
  EXPECT_EQ(open(path).error().code(), ErrorCode::kNotFound);
}

// The symbols of .gnu_debugdata join the dynamic ones.
TEST(DebugDataTest, AddsItsSymbols) {
  TestElf elf = StrippedElf();
  EXPECT_EQ(Names(Builder::Build(elf)), "- dynamic ");
  elf.extra_name = ".gnu_debugdata";
  elf.extra_bytes = Pack(Builder::Build(DebugElf()));
  EXPECT_EQ(Names(Builder::Build(elf)), "debug dynamic ");
}

// A file that has all its symbols does not need it.
TEST(DebugDataTest, IsNotNeededBesideASymbolTable) {
  TestElf elf = StrippedElf();
  elf.symbols = {{"own", 0x401000, 0x10}};
  elf.extra_name = ".gnu_debugdata";
  elf.extra_bytes = Pack(Builder::Build(DebugElf()));
  EXPECT_EQ(Names(Builder::Build(elf)), "own dynamic ");
}

// What cannot be unpacked costs its own names only: cut off or changed
// anywhere.
TEST(DebugDataTest, SurvivesDamage) {
  TestElf elf = StrippedElf();
  elf.extra_name = ".gnu_debugdata";
  const std::string good = Pack(Builder::Build(DebugElf()));
  for (size_t at = 0; at < good.size(); ++at) {
    elf.extra_bytes = good.substr(0, at);
    EXPECT_EQ(Names(Builder::Build(elf)), "- dynamic ") << at;
    elf.extra_bytes = good;
    elf.extra_bytes[at] = static_cast<char>(elf.extra_bytes[at] ^ 0x41);
    EXPECT_THAT(Names(Builder::Build(elf)), testing::EndsWith(" dynamic "))
        << at;
  }
}

// A section that unpacks to more than the bound is not unpacked to its end.
TEST(DebugDataTest, BoundsTheUnpackedSize) {
  TestElf elf;
  elf.extra_name = ".gnu_debugdata";
  elf.extra_bytes = Pack(std::string(kMaxDebugDataBytes + 1, '\0'));
  const auto source = ByteSource::OfMemory(Builder::Build(elf));
  const auto image = ElfImage::Parse(source);
  ASSERT_TRUE(image);
  const auto unpacked = UnpackDebugData(source, *image);
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().code(), ErrorCode::kLimit);
}

// The places are looked at in the usual order.
TEST_F(DebugFileTest, LooksInTheUsualPlaces) {
  EXPECT_THAT(
      DebugFilePaths("0102abcd", DebugLink{"tool.debug", 0}, "/usr/bin/tool"),
      testing::ElementsAre("/usr/lib/debug/.build-id/01/02abcd.debug",
                           "/usr/bin/tool.debug", "/usr/bin/.debug/tool.debug",
                           "/usr/lib/debug/usr/bin/tool.debug"));
  EXPECT_TRUE(DebugFilePaths("", std::nullopt, "/usr/bin/tool").empty());
  EXPECT_TRUE(DebugFilePaths("01", DebugLink{"a", 0}, "tool").empty());
}

// A file with the same build-id is the right one.
TEST_F(DebugFileTest, FindsByBuildId) {
  files_["/usr/lib/debug/.build-id/01/02abcd.debug"] =
      Builder::Build(DebugElf());
  EXPECT_EQ(Names(Builder::Build(StrippedElf()), Finder()), "debug dynamic ");
}

// A file with another build-id is never used, wherever it lies.
TEST_F(DebugFileTest, RefusesAnotherBuildId) {
  TestElf other = DebugElf();
  other.build_id = "other";
  files_["/usr/lib/debug/.build-id/01/02abcd.debug"] = Builder::Build(other);
  EXPECT_EQ(Names(Builder::Build(StrippedElf()), Finder()), "- dynamic ");
}

// Without build-ids the link's CRC decides.
TEST_F(DebugFileTest, ChecksTheCrcOfALink) {
  TestElf debug = DebugElf();
  debug.build_id = "";
  const std::string good = Builder::Build(debug);
  TestElf stripped = StrippedElf();
  stripped.build_id = "";
  stripped.extra_name = ".gnu_debuglink";
  stripped.extra_bytes = LinkTo("tool.debug", good);
  files_["/usr/bin/.debug/tool.debug"] = good;
  EXPECT_EQ(Names(Builder::Build(stripped), Finder()), "debug dynamic ");
  files_["/usr/bin/.debug/tool.debug"].back() ^= 1;
  EXPECT_EQ(Names(Builder::Build(stripped), Finder()), "- dynamic ");
}

// A link names a file, not a path, and ends with its CRC.
TEST_F(DebugFileTest, RefusesBadLinks) {
  const auto link = [](std::string bytes) {
    TestElf elf;
    elf.extra_name = ".gnu_debuglink";
    elf.extra_bytes = std::move(bytes);
    const auto source = ByteSource::OfMemory(Builder::Build(elf));
    const auto image = ElfImage::Parse(source);
    return ReadDebugLink(source, *image);
  };
  EXPECT_EQ(link(LinkTo("a.debug", "x"))->name, "a.debug");
  EXPECT_EQ(link(LinkTo("abc", "x"))->crc, link(LinkTo("abcd", "x"))->crc);
  EXPECT_FALSE(link(LinkTo("../../etc/passwd", "x")));
  EXPECT_FALSE(link(""));
  EXPECT_FALSE(link("no end"));
  EXPECT_FALSE(link(std::string("a\0\0\0\1\2\3", 7)));
  EXPECT_FALSE(link(std::string(8, '\0')));
}

// Nothing is opened for a file that has its symbols, or nowhere to look.
TEST_F(DebugFileTest, OpensNothingWithoutNeed) {
  Names(Builder::Build(DebugElf()), Finder());
  EXPECT_TRUE(opened_.empty());
  EXPECT_EQ(Names(Builder::Build(StrippedElf())), "- dynamic ");
}

}  // namespace
}  // namespace ksym
