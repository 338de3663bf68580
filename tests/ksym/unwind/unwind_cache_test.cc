// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/unwind_cache.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/unwind/unwind_table_file.h"
#include "tests/ksym/unwind/table_of.h"

namespace ksym {
namespace {

constexpr std::string_view kKey = "\x12\x34\xab";

UnwindTable SmallTable() {
  UnwindTable table;
  table.base = {0x1000};
  table.size = 0x100;
  table.rows = {
      {0, 0, 0, MakeRule(CfaKind::kNoInfo)},
      {16, 2, -2, MakeRule(CfaKind::kStackPointer, FramePointerKind::kSaved)},
      {32, PackCfaOffset(10, -1), 0, MakeRule(CfaKind::kLeafRegister)}};
  table.counts.fdes = 2;
  table.counts.bad_fdes = 1;
  return table;
}

Result<UnwindTable> Decode(const std::string& bytes,
                           std::string_view key = kKey) {
  return DecodeUnwindTable(std::as_bytes(std::span(bytes)), key);
}

// What is written is read again.
TEST(UnwindTableFileTest, RoundTrips) {
  const UnwindTable table = SmallTable();
  const auto read = Decode(EncodeUnwindTable(table, kKey));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->base, table.base);
  EXPECT_EQ(read->size, table.size);
  EXPECT_EQ(read->rows, table.rows);
  EXPECT_EQ(read->counts, table.counts);
}

// A file that is cut off anywhere, or changed in any byte, is refused, as is
// another file's.
TEST(UnwindTableFileTest, RefusesChangedFiles) {
  const std::string bytes = EncodeUnwindTable(SmallTable(), kKey);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(Decode(bytes.substr(0, i))) << i;
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const auto read = Decode(changed);
    ASSERT_FALSE(read) << i;
    EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt);
  }
  EXPECT_FALSE(Decode(bytes + '\0'));
  EXPECT_FALSE(Decode(bytes, "another"));
  EXPECT_FALSE(Decode(bytes, ""));
}

// Rows that no builder makes are refused even when the checksum is right.
TEST(UnwindTableFileTest, RefusesImpossibleRows) {
  const auto refuses = [](const auto& change) {
    UnwindTable table = SmallTable();
    change(table);
    return !Decode(EncodeUnwindTable(table, kKey));
  };
  EXPECT_FALSE(refuses([](UnwindTable&) {}));
  EXPECT_TRUE(refuses([](UnwindTable& t) { t.rows.clear(); }));
  EXPECT_TRUE(refuses([](UnwindTable& t) { t.rows[0].pc = 1; }));
  EXPECT_TRUE(refuses([](UnwindTable& t) { t.rows[2].pc = 16; }));
  EXPECT_TRUE(refuses([](UnwindTable& t) { t.rows[2].pc = 15; }));
  EXPECT_TRUE(refuses([](UnwindTable& t) { t.rows[2].pc = 0x100; }));
  EXPECT_FALSE(refuses([](UnwindTable& t) { t.rows[2].pc = 0xff; }));
  EXPECT_TRUE(refuses([](UnwindTable& t) { t.rows[1].rule = 11; }));
  EXPECT_TRUE(refuses([](UnwindTable& t) { t.rows[0].cfa_offset = 1; }));
  EXPECT_TRUE(refuses(
      [](UnwindTable& t) { t.rows[2].cfa_offset = PackCfaOffset(16, 0); }));
  for (const int8_t number : {int8_t{15}, int8_t{16}}) {
    EXPECT_EQ(refuses([&](UnwindTable& t) {
                t.rows[2].rule = MakeRule(CfaKind::kReturnRegister);
                t.rows[2].cfa_offset = PackCfaOffset(number, 0);
              }),
              number == 16);
  }
  EXPECT_TRUE(refuses([](UnwindTable& t) { t.size = uint64_t{1} << 32; }));
}

class UnwindCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "unwind_cache_XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    directory_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  UnwindCache Open(uint64_t max_bytes = 1 << 20) const {
    return std::move(*UnwindCache::Open(directory_, max_bytes));
  }
  std::string PathOf(const std::string& hex) const {
    return directory_ + "/" + hex + ".unwind";
  }
  void SetAge(const std::string& hex, int seconds) const {
    timeval times[2] = {};
    ::gettimeofday(&times[0], nullptr);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    ASSERT_EQ(::utimes(PathOf(hex).c_str(), times), 0);
  }

  std::string directory_;
};

// This program's file, as it is or changed.
std::string OwnBytes() {
  const auto fd = OpenForRead("/proc/self/exe");
  return fd ? ReadAll(fd->get(), size_t{1} << 30).value_or("") : "";
}

// A table is built once; the next user reads it, and it says the same.
TEST_F(UnwindCacheTest, BuildsATableOnce) {
  const auto source = ByteSource::OfMemory(OwnBytes());
  const auto image = ElfImage::Parse(source);
  ASSERT_TRUE(image);

  UnwindCache first = Open(uint64_t{64} << 20);
  const auto built = first.LoadOrBuild(source, *image);
  ASSERT_TRUE(built) << built.error().message();
  EXPECT_EQ(first.counts().built, 1u);
  EXPECT_EQ(first.counts().written, 1u);
  UnwindCache second = Open(uint64_t{64} << 20);
  const auto read = second.LoadOrBuild(source, *image);
  ASSERT_TRUE(read);
  EXPECT_EQ(second.counts().built, 0u);
  EXPECT_EQ(second.counts().read, 1u);
  EXPECT_EQ(read->rows, built->rows);
  const auto alone = BuildUnwindTable(source, *image);
  ASSERT_TRUE(alone);
  EXPECT_EQ(read->rows, alone->rows);
  EXPECT_EQ(read->counts, alone->counts);
  EXPECT_EQ(read->base, alone->base);
  EXPECT_EQ(read->size, alone->size);

  // A file that was damaged is built and written again.
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    std::ofstream(entry.path()) << "damage";
  }
  UnwindCache third = Open(uint64_t{64} << 20);
  ASSERT_TRUE(third.LoadOrBuild(source, *image));
  EXPECT_EQ(third.counts().corrupt, 1u);
  EXPECT_EQ(third.counts().written, 1u);
  UnwindCache fourth = Open(uint64_t{64} << 20);
  ASSERT_TRUE(fourth.LoadOrBuild(source, *image));
  EXPECT_EQ(fourth.counts().read, 1u);
}

// Small tables that were read are remembered: the files of a second container
// need no file of the cache.
TEST_F(UnwindCacheTest, RemembersWhatItRead) {
  Dl_info library = {};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&::zlibVersion), &library), 0);
  const auto fd = OpenForRead(library.dli_fname);
  ASSERT_TRUE(fd);
  const auto source =
      ByteSource::OfMemory(ReadAll(fd->get(), size_t{1} << 30).value_or(""));
  const auto image = ElfImage::Parse(source);
  ASSERT_TRUE(image);
  ASSERT_TRUE(Open().LoadOrBuild(source, *image));

  UnwindCache cache = Open();
  const auto read = cache.LoadOrBuild(source, *image);
  ASSERT_TRUE(read);
  EXPECT_EQ(cache.counts().read, 1u);
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    std::filesystem::remove(entry.path());
  }
  const auto again = cache.LoadOrBuild(source, *image);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->rows, read->rows);
  EXPECT_EQ(cache.counts().built, 0u);
}

// A file with another one's build-id and size, sampled first, does not give
// that one its table.
TEST_F(UnwindCacheTest, DoesNotTrustBuildIds) {
  std::string bytes = OwnBytes();
  const auto right = ByteSource::OfMemory(bytes);
  const auto image = ElfImage::Parse(right);
  ASSERT_TRUE(image);
  const ElfSection* section = image->FindSection(".eh_frame");
  ASSERT_NE(section, nullptr);
  // DW_CFA_def_cfa_offset 16 becomes 24.
  const std::string_view says("\x0e\x10", 2);
  size_t changed = 0;
  for (size_t at = section->file_offset;
       (at = bytes.find(says, at)) < section->file_offset + section->size;
       ++at) {
    bytes[at + 1] = '\x18';
    ++changed;
  }
  ASSERT_GT(changed, 0u);
  const auto crafted = ByteSource::OfMemory(bytes);
  const auto crafted_image = ElfImage::Parse(crafted);
  ASSERT_TRUE(crafted_image);
  ASSERT_EQ(crafted_image->build_id(), image->build_id());

  UnwindCache cache = Open(uint64_t{64} << 20);
  const auto of_crafted = cache.LoadOrBuild(crafted, *crafted_image);
  const auto of_right = cache.LoadOrBuild(right, *image);
  const auto alone = BuildUnwindTable(right, *image);
  ASSERT_TRUE(of_crafted && of_right && alone);
  EXPECT_NE(of_crafted->rows, alone->rows);
  EXPECT_EQ(of_right->rows, alone->rows);
  EXPECT_EQ(cache.counts().built, 2u);
}

// All that a table depends on is in its name.
TEST_F(UnwindCacheTest, NamesAllThatMatters) {
  CallFrameSection section;
  section.address = {0x2000};
  section.bytes.resize(100);
  const CodeExtent code = {.base = {0x1000}, .size = 0x500};
  std::set<std::string> keys = {UnwindCache::KeyOf(section, code)};
  EXPECT_EQ(keys.count(UnwindCache::KeyOf(section, code)), 1u);
  const auto is_new = [&](const auto& change) {
    auto changed = section;
    auto changed_code = code;
    change(changed, changed_code);
    return keys.insert(UnwindCache::KeyOf(changed, changed_code)).second;
  };
  EXPECT_TRUE(is_new([](auto& s, auto&) { s.bytes[99] = std::byte{1}; }));
  EXPECT_TRUE(is_new([](auto& s, auto&) { s.bytes.resize(101); }));
  EXPECT_TRUE(is_new([](auto& s, auto&) { s.address = {0x2001}; }));
  EXPECT_TRUE(is_new([](auto& s, auto&) { s.ends_with_zero = true; }));
  EXPECT_TRUE(
      is_new([](auto& s, auto&) { s.format = CallFrameFormat::kDebugFrame; }));
  EXPECT_TRUE(is_new([](auto&, auto& c) { c.base = {0x1001}; }));
  EXPECT_TRUE(is_new([](auto&, auto& c) { c.size = 0x501; }));
}

// What was not used for longest makes room, and no more than needed.
TEST_F(UnwindCacheTest, RemovesWhatWasUsedLeast) {
  const uint64_t size = EncodeUnwindTable(SmallTable(), "a").size();
  UnwindCache cache = Open(3 * size);
  for (const char* id : {"a", "b", "c"}) {
    ASSERT_TRUE(cache.Store(id, SmallTable()));
  }
  SetAge("61", 300);
  SetAge("62", 200);
  SetAge("63", 100);
  ASSERT_TRUE(cache.Load("a"));
  ASSERT_TRUE(cache.Store("d", SmallTable()));
  EXPECT_EQ(cache.counts().removed, 1u);
  EXPECT_TRUE(cache.Load("a"));
  EXPECT_EQ(cache.Load("b").error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(cache.Load("c"));
  EXPECT_TRUE(cache.Load("d"));
}

// A table that is larger than the whole cache removes nothing.
TEST_F(UnwindCacheTest, LeavesOutWhatIsTooLarge) {
  const uint64_t size = EncodeUnwindTable(SmallTable(), "a").size();
  UnwindCache cache = Open(size);
  ASSERT_TRUE(cache.Store("a", SmallTable()));
  UnwindTable large = SmallTable();
  large.rows.push_back({48, 1, 0, MakeRule(CfaKind::kStackPointer)});
  EXPECT_EQ(cache.Store("b", large).error().code(), ErrorCode::kLimit);
  EXPECT_TRUE(cache.Load("a"));
}

// Nobody else may be able to put tables there.
TEST_F(UnwindCacheTest, RefusesDirectoriesOfOthers) {
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  const auto open = UnwindCache::Open(directory_, 1000);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code(), ErrorCode::kPermission);
  EXPECT_EQ(UnwindCache::Open(directory_ + "/no/such", 1000).error().code(),
            ErrorCode::kNotFound);
  ASSERT_EQ(::chmod(directory_.c_str(), 0700), 0);
  EXPECT_TRUE(UnwindCache::Open(directory_ + "/new", 1000));
}

}  // namespace
}  // namespace ksym
