// SPDX-License-Identifier: Apache-2.0
// Files of a directory that are thinned out: when, how often, and how readers
// see it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "daemon/history/limits.h"
#include "tests/daemon/history/history_answers.h"
#include "tests/daemon/history/rare_files.h"

namespace profd::history {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kTwoMinutes = 120 * kSecond;
const QueryBounds kBounds = {.max_bytes = size_t{64} << 20};

// The stacks that the listing says were folded, of each file that was thinned
// out; -1: it was not.
std::vector<int64_t> FoldedIn(const std::string& directory) {
  std::vector<int64_t> folded;
  const auto listing = ReadListing(directory, {}, kBounds);
  EXPECT_TRUE(listing);
  if (!listing) return folded;
  EXPECT_EQ(listing->read.bad_files, 0u);
  for (const FileSummary& file : listing->files) {
    folded.push_back(file.is_thinned ? static_cast<int64_t>(file.folded_stacks)
                                     : -1);
  }
  return folded;
}

// What does not hang on stacks, by the second.
std::string CurveOf(const std::string& directory) {
  auto answer =
      ReadTimeline(directory,
                   {.selection = {.from_unix_ns = kFirstPart - kHour,
                                  .until_unix_ns = kFirstPart + kHour},
                    .step_ns = kSecond,
                    .by = TimelineBy::kCommand},
                   kBounds);
  EXPECT_TRUE(answer);
  if (!answer) return {};
  EXPECT_EQ(answer->read.bad_files, 0u);
  answer->read = {};
  return RenderTimelineJson(*answer);
}

std::string BytesIn(std::istream& in) {
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(HistoryThinningFiles, ComesADayAfterTheHour) {
  const TemporaryDirectory directory;
  MakeHours(directory.path(), 1);
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  const FileName name = ListFiles(directory.path()).value().front();
  const uint64_t due = name.end_s * kSecond + kDay;
  const std::string path = directory.path() + "/" + TextOf(name);
  std::ifstream before(path, std::ios::binary);
  const std::string bytes_before = BytesIn(before);
  const std::string curve = CurveOf(directory.path());
  ASSERT_TRUE(writer->Thin(due - 1, kNever));
  EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(-1));
  ASSERT_TRUE(writer->Thin(due, kNever));
  EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(9));
  EXPECT_EQ(writer->counts().thinnings, 1u);
  EXPECT_EQ(writer->counts().stacks_folded, 9u);
  // It has the name that it had, and nothing else is there but the lock.
  EXPECT_TRUE(fs::exists(path));
  EXPECT_EQ(CountNames(directory.path()), 2u);
  EXPECT_LT(fs::file_size(path), bytes_before.size());
  EXPECT_EQ(writer->bytes(), fs::file_size(path));
  EXPECT_EQ(CurveOf(directory.path()), curve);
  // An open file has what it was.
  before.seekg(0);
  EXPECT_EQ(BytesIn(before), bytes_before);
}

TEST(HistoryThinningFiles, NeverComesWhereItIsOff) {
  const TemporaryDirectory directory;
  MakeHours(directory.path(), 1);
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  writer->SetLimits({.thin_after = std::chrono::seconds(0)});
  ASSERT_TRUE(writer->Thin(kOld + 1000 * kDay, kNever));
  EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(-1));
  writer->SetLimits({.thin_after = std::chrono::hours(1)});
  ASSERT_TRUE(writer->Thin(kDue + kHour, kNever));
  EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(9));
}

// A directory of weeks is thinned out in the course of a day.
TEST(HistoryThinningFiles, TakesOneFileInTwoMinutes) {
  const TemporaryDirectory directory;
  MakeHours(directory.path(), 4);
  uint64_t now = kOld + 4 * kHour;
  {
    auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->Thin(now, kNever));
    EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(9, -1, -1, -1));
    ASSERT_TRUE(writer->Thin(now + kTwoMinutes - 1, kNever));
    EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(9, -1, -1, -1));
    ASSERT_TRUE(writer->Thin(now + kTwoMinutes, kNever));
    EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(9, 9, -1, -1));
    // The clock was set back.
    ASSERT_TRUE(writer->Thin(now, kNever));
    EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(9, 9, 9, -1));
  }
  // The next writer goes on, and does none a second time.
  const auto first = TextOf(ListFiles(directory.path()).value().front());
  const auto written = fs::last_write_time(directory.path() + "/" + first);
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  for (int i = 0; i < 3; ++i, now += kTwoMinutes) {
    ASSERT_TRUE(writer->Thin(now, kNever));
  }
  EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(9, 9, 9, 9));
  EXPECT_EQ(writer->counts().thinnings, 1u);
  EXPECT_EQ(fs::last_write_time(directory.path() + "/" + first), written);
}

// A directory of many files, as of an earlier run: their beginnings are read a
// part at a time.
TEST(HistoryThinningFiles, LooksAtSomeFilesAtATime) {
  for (const unsigned before : {255u, 256u}) {
    const TemporaryDirectory directory;
    MakeHours(directory.path(), 1);
    const FileName whole = ListFiles(directory.path()).value().front();
    const std::string path = directory.path() + "/" + TextOf(whole);
    ASSERT_TRUE(OpenForParts(directory.path())->Thin(kOld, kNever));
    for (unsigned i = 0; i < before; ++i) {
      FileName thin = whole;
      thin.sequences = {.first = 10 + 2 * i, .last = 10 + 2 * i};
      fs::copy(path, directory.path() + "/" + TextOf(thin));
    }
    FileName last = whole;
    last.sequences = {.first = 1000, .last = 1000};
    fs::rename(path, directory.path() + "/" + TextOf(last));
    Tables tables = TablesOf({PartWithRare(0)});
    std::ofstream(directory.path() + "/" + TextOf(last))
        << EncodeSegment(tables, last.sequences).value();
    auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->Thin(kOld, kNever));
    EXPECT_EQ(writer->counts().thinnings, before == 255 ? 1u : 0u);
    ASSERT_TRUE(writer->Thin(kOld + kSecond, kNever));
    EXPECT_EQ(writer->counts().thinnings, 1u);
  }
}

// Files that may still become one are not rewritten before.
TEST(HistoryThinningFiles, WaitsUntilFilesBecameOne) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  WriteRareParts(*writer, 0, 2);
  ASSERT_TRUE(writer->Thin(kOld, kNever));
  EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(-1, -1));
  ASSERT_TRUE(writer->Compact(kOld, kNever));
  ASSERT_TRUE(writer->Thin(kOld, kNever));
  EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(6));
}

// An hour of one journal only.
TEST(HistoryThinningFiles, TakesAFileThatIsAloneInItsHour) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  WriteRareParts(*writer, 0, 1);
  ASSERT_TRUE(writer->Compact(kOld, kNever));
  ASSERT_TRUE(writer->Thin(kOld, kNever));
  EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(3));
}

TEST(HistoryThinningFiles, LeavesADamagedFileAndTakesTheNext) {
  const TemporaryDirectory directory;
  MakeHours(directory.path(), 3);
  const auto files = ListFiles(directory.path()).value();
  const std::string damaged = directory.path() + "/" + TextOf(files[0]);
  // One has half of a column, the other one less than a header.
  fs::resize_file(damaged, fs::file_size(damaged) - 5);
  fs::resize_file(directory.path() + "/" + TextOf(files[1]), 100);
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  uint64_t now = kOld + 3 * kHour;
  EXPECT_FALSE(writer->Thin(now, kNever));
  EXPECT_EQ(writer->counts().thinning_failures, 1u);
  EXPECT_TRUE(writer->Thin(now + 599 * kSecond, kNever));
  EXPECT_EQ(writer->counts().thinnings, 0u);
  EXPECT_FALSE(writer->Thin(now += 600 * kSecond, kNever));
  EXPECT_TRUE(writer->Thin(now += 600 * kSecond, kNever));
  EXPECT_EQ(writer->counts().thinnings, 1u);
  EXPECT_EQ(writer->counts().thinning_failures, 2u);
  EXPECT_TRUE(writer->Thin(now += 600 * kSecond, kNever));
  EXPECT_EQ(ListFiles(directory.path()).value(), files);
  EXPECT_EQ(ReadListing(directory.path(), {}, kBounds)->read.bad_files, 2u);
}

// So that memory is bounded: by what the header says, before anything is read.
TEST(HistoryThinningFiles, LeavesAFileThatIsTooLarge) {
  const TemporaryDirectory directory;
  MakeHours(directory.path(), 1);
  const std::string path = directory.path() + "/" +
                           TextOf(ListFiles(directory.path()).value().front());
  std::ifstream in(path, std::ios::binary);
  std::string bytes = BytesIn(in);
  const auto set = [&](size_t at, uint32_t number) {
    std::memcpy(bytes.data() + at, &number, sizeof(number));
  };
  // The unpacked sizes of the columns of nodes, series and rows.
  constexpr size_t kEntries = 36;
  constexpr size_t kEntryBytes = 12;
  const auto set_sizes = [&](size_t begin, size_t end, uint32_t size) {
    for (size_t column = begin; column < end; ++column) {
      set(kEntries + column * kEntryBytes + 4, size);
    }
  };
  set_sizes(11, 13, kMaxNodes - 1);
  set_sizes(37, 45, kMaxSeries);
  set_sizes(45, 51, kMaxRows);
  const auto* header = reinterpret_cast<const Bytef*>(bytes.data());
  set(32, static_cast<uint32_t>(::crc32_z(::crc32_z(0, header, 32),
                                          header + kEntries,
                                          kSegmentHeaderBytes - kEntries)));
  const auto outline = ReadSegmentOutline(bytes);
  ASSERT_TRUE(outline) << outline.error().message();
  EXPECT_EQ(outline->most.rows, kMaxRows);
  std::ofstream(path, std::ios::binary) << bytes;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  EXPECT_TRUE(writer->Thin(kOld, kNever));
  EXPECT_EQ(writer->counts().thinnings, 0u);
  EXPECT_EQ(writer->counts().thinning_failures, 0u);
}

// A file with the name of another one is not what its name says.
TEST(HistoryThinningFiles, TakesNoFileOfAnotherName) {
  const TemporaryDirectory directory;
  MakeHours(directory.path(), 1);
  FileName name = ListFiles(directory.path()).value().front();
  const std::string path = directory.path() + "/" + TextOf(name);
  name.sequences = {.first = 9, .last = 12};
  const std::string moved = directory.path() + "/" + TextOf(name);
  fs::rename(path, moved);
  const auto bytes = fs::file_size(moved);
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  EXPECT_FALSE(writer->Thin(kOld, kNever));
  EXPECT_EQ(fs::file_size(moved), bytes);
}

TEST(HistoryThinningFiles, GivesWayAndTriesAgain) {
  const TemporaryDirectory directory;
  MakeHours(directory.path(), 1);
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  // At any of the times when it asks.
  uint64_t now = kOld;
  for (int asked = 0; asked < 3; ++asked, now += 600 * kSecond) {
    int left = asked;
    EXPECT_FALSE(writer->Thin(now, [&] { return left-- <= 0; })) << asked;
    EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(-1));
  }
  EXPECT_EQ(writer->counts().thinning_failures, 3u);
  EXPECT_TRUE(writer->Thin(now, kNever));
  EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(9));
}

TEST(HistoryThinningFiles, TakesFilesOfOlderVersions) {
  for (const int version : {1, 2, 3}) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() +
                             "/000000000007-000000000007-1795572780-"
                             "1795572783.segment";
    fs::copy_file(fmt::format("{}/history/version-{}.segment",
                              KSYM_TEST_DATA_DIR, version),
                  path);
    const std::string curve = CurveOf(directory.path());
    auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    EXPECT_THAT(FoldedIn(directory.path()), ElementsAre(-1));
    ASSERT_TRUE(writer->Thin(kOld, kNever));
    EXPECT_THAT(FoldedIn(directory.path()), Not(Contains(-1)));
    EXPECT_EQ(CurveOf(directory.path()), curve);
  }
}

TEST(HistoryThinningFiles, IsSaid) {
  const TemporaryDirectory directory;
  MakeHours(directory.path(), 1);
  EXPECT_THAT(
      ReadRange(directory.path(), {}, kBounds)->profile.metadata.warnings,
      IsEmpty());
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->Thin(kOld, kNever));
  const auto said = HasSubstr("9 stacks that were seen once");
  const auto range = ReadRange(directory.path(), {}, kBounds);
  EXPECT_THAT(range->profile.metadata.warnings, ElementsAre(said));
  EXPECT_THAT(
      ReadFlame(directory.path(), {}, 100, kBounds)->profile.metadata.warnings,
      ElementsAre(said));
  EXPECT_EQ(range->profile.accounting.emitted, 15u);
  EXPECT_THAT(Render(range->profile, OutputFormat::kFolded, {}),
              HasSubstr("app;main;serve;[rare callees] 3\n"));
  const auto functions = ReadFunctions(directory.path(), {}, kBounds);
  EXPECT_THAT(RenderFunctionsJson(*functions, 0),
              HasSubstr("\"thinned_files\":1,\"folded_stacks\":9"));
  EXPECT_THAT(RenderListingJson(*ReadListing(directory.path(), {}, kBounds)),
              HasSubstr("\"thinned\":true,\"folded_stacks\":9,"));
}

// Whoever reads meanwhile has one or the other.
TEST(HistoryThinningFiles, IsReadMeanwhile) {
  const TemporaryDirectory directory;
  constexpr unsigned kHours = 8;
  MakeHours(directory.path(), kHours);
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  std::atomic<bool> is_done = false;
  std::atomic<unsigned> answers = 0;
  std::thread reader([&] {
    while (!is_done) {
      const auto answer = ReadRange(directory.path(), {}, kBounds);
      ASSERT_TRUE(answer) << answer.error().message();
      EXPECT_EQ(answer->coverage.parts, 3 * kHours);
      EXPECT_EQ(answer->profile.accounting.emitted, 15 * kHours);
      EXPECT_EQ(answer->read.bad_files, 0u);
      ++answers;
    }
  });
  for (uint64_t hour = 0; hour < kHours; ++hour) {
    EXPECT_TRUE(
        writer->Thin(kOld + kHours * kHour + hour * kTwoMinutes, kNever));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  is_done = true;
  reader.join();
  EXPECT_EQ(writer->counts().thinnings, kHours);
  EXPECT_GT(answers, 0u);
}

}  // namespace
}  // namespace profd::history
