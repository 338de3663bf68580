// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/history/limits.h"
#include "daemon/history/segment_merger.h"
#include "daemon/history/table_check.h"
#include "tests/daemon/history/history_answers.h"
#include "tests/ksym/sanitized.h"

namespace profd::history {
namespace {

using ::testing::ElementsAre;

TEST(HistoryCompaction, GivesTheUnionOfAnHour) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer) << writer.error().message();
  WriteParts(*writer, 0, 4);
  WriteParts(*writer, 4, 6, 99);
  const uint64_t before = writer->bytes();
  ExpectSameAfter(directory.path(), *writer);
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-6"));
  EXPECT_EQ(CountNames(directory.path()), 2u);  // and the lock
  EXPECT_EQ(writer->counts().compactions, 1u);
  EXPECT_EQ(writer->files(), 1u);
  EXPECT_LT(writer->bytes(), before);
  EXPECT_EQ(writer->bytes(),
            fs::file_size(directory.path() + "/" +
                          TextOf(ListFiles(directory.path()).value().front())));
  // It never goes into another one.
  WriteParts(*writer, 6, 8);
  ExpectSameAfter(directory.path(), *writer);
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-6", "7-8"));
  ExpectSameAfter(directory.path(), *writer);
  EXPECT_EQ(writer->counts().compactions, 2u);
}

TEST(HistoryCompaction, HasEachThingOnce) {
  const Tables one = TablesOf({PartNumber(0), PartNumber(1)});
  const Tables other = TablesOf({PartNumber(1), PartNumber(2)});
  SegmentMerger merger;
  ASSERT_TRUE(merger.Add(one));
  ASSERT_TRUE(merger.Add(other));
  const Tables tables = std::move(merger).Finish();
  const Sizes sizes = tables.sizes();
  const Sizes wanted =
      TablesOf({PartNumber(0), PartNumber(1), PartNumber(2)}).sizes();
  EXPECT_EQ(sizes.strings, wanted.strings);
  EXPECT_EQ(sizes.functions, wanted.functions);
  EXPECT_EQ(sizes.nodes, wanted.nodes);
  EXPECT_EQ(sizes.series, wanted.series);
  EXPECT_EQ(sizes.kinds, 1u);
  EXPECT_EQ(sizes.settings, 1u);
  EXPECT_EQ(sizes.parts, 4u);
  EXPECT_TRUE(CheckTables(tables));
}

TEST(HistoryCompaction, WaitsForTheEndOfTheHour) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  WriteParts(*writer, 0, 3);
  ASSERT_TRUE(writer->Compact(kDue - kSecond, kNever));
  EXPECT_EQ(FilesIn(directory.path()).size(), 3u);
  // Others wait for the thread.
  EXPECT_FALSE(writer->Compact(kDue, [] { return true; }));
  EXPECT_EQ(FilesIn(directory.path()).size(), 3u);
  ASSERT_TRUE(writer->Compact(kDue + 600 * kSecond, kNever));
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-3"));
}

TEST(HistoryCompaction, WaitsForTheHoursLastJournal) {
  const TemporaryDirectory directory;
  {
    auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, 3);
  }
  auto writer = HistoryWriter::Open(directory.path(), {},
                                    {.boot = "b", .name = "r"}, kDue);
  ASSERT_TRUE(writer);
  WriteParts(*writer, 3, 4);
  ExpectSameAfter(directory.path(), *writer);
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-1", "2-2", "3-3", "4"));
  // It is sealed, and the next one is of another hour.
  writer->Add(PartNumber(4));
  ASSERT_TRUE(writer->Commit(kDue + kSecond));
  EXPECT_THAT(FilesIn(directory.path()),
              ElementsAre("1-1", "2-2", "3-3", "4-4"));
  ExpectSameAfter(directory.path(), *writer, kDue + kSecond);
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-4"));
}

TEST(HistoryCompaction, KeepsHoursApart) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  WriteParts(*writer, 0, 2);
  WriteParts(*writer, 3600, 3602);
  ExpectSameAfter(directory.path(), *writer, kDue + kHour);
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-2", "3-3", "4-4"));
  ExpectSameAfter(directory.path(), *writer, kDue + kHour);
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-2", "3-4"));
}

// Holes, restarts and a clock that goes back are where they were.
TEST(HistoryCompaction, KeepsTheOrderOfParts) {
  const TemporaryDirectory directory;
  {
    auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    WriteParts(*writer, 20, 24);
  }
  auto writer = OpenForParts(directory.path(), "second");
  ASSERT_TRUE(writer);
  WriteParts(*writer, 600, 602);
  WriteParts(*writer, 1, 4);
  const auto coverage =
      ReadRange(directory.path(), {}, {.max_bytes = 1 << 26}).value().coverage;
  EXPECT_EQ(coverage.restarts, 1u);
  EXPECT_EQ(coverage.holes, 1u);
  EXPECT_EQ(coverage.set_back, 1u);
  ExpectSameAfter(directory.path(), *writer);
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-9"));
}

TEST(HistoryCompaction, LeavesAGapInTheNumbers) {
  const TemporaryDirectory directory;
  {
    auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, 5);
  }
  const auto files = ListFiles(directory.path()).value();
  fs::remove(directory.path() + "/" + TextOf(files[2]));
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  ExpectSameAfter(directory.path(), *writer);
  ExpectSameAfter(directory.path(), *writer);
  ExpectSameAfter(directory.path(), *writer);
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-2", "4-5"));
}

TEST(HistoryCompaction, IsDeletedForRoomAndForItsAge) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  WriteParts(*writer, 0, 4);
  ASSERT_TRUE(writer->Compact(kDue, kNever));
  writer->SetLimits(
      {.max_age = std::chrono::hours(1), .journal_memory_bytes = 1});
  writer->Add(PartNumber(3602));
  ASSERT_TRUE(writer->Commit(kFirstPart + 3603 * kSecond));
  EXPECT_EQ(FilesIn(directory.path()).front(), "1-4");
  writer->Add(PartNumber(3610));
  ASSERT_TRUE(writer->Commit(kFirstPart + 3611 * kSecond));
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("5-5", "6-6"));
  ASSERT_TRUE(writer->Compact(kDue + kHour, kNever));
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("5-6"));
  writer->SetLimits({.max_bytes = 1});
  ASSERT_TRUE(writer->Commit(kFirstPart + 3612 * kSecond));
  EXPECT_EQ(writer->files(), 0u);
  EXPECT_EQ(writer->bytes(), 0u);
}

TEST(HistoryCompaction, HoldsToWhatAFileMayHave) {
  const auto outline = [](Sizes most, size_t text_bytes = 0) {
    return SegmentOutline{
        .sequences = {}, .most = most, .text_bytes = text_bytes};
  };
  const auto rows = [&](size_t count) {
    return outline({.strings = 0, .nodes = 0, .rows = count});
  };
  EXPECT_TRUE(FitTogether(rows(kMaxRows - 10), rows(10)));
  EXPECT_FALSE(FitTogether(rows(kMaxRows - 10), rows(11)));
  EXPECT_TRUE(FitTogether(outline({}, kMaxTextBytes), outline({})));
  EXPECT_FALSE(FitTogether(outline({}, kMaxTextBytes), outline({}, 1)));
  // The bounds of a file alone would let this be.
  const auto large =
      outline({.strings = 0, .nodes = kMaxNodes, .rows = kMaxRows});
  const auto series = outline({.strings = 0, .nodes = 0, .series = kMaxSeries});
  EXPECT_TRUE(FitTogether(large, outline({.strings = 0, .nodes = 0})));
  EXPECT_TRUE(FitTogether(series, outline({})));
  EXPECT_FALSE(FitTogether(large, series));
}

// What does not fit is the beginning of the next file.
TEST(HistoryCompaction, MakesSeveralFilesOfALargeHour) {
  if (ksym::kIsSanitized) GTEST_SKIP() << "takes too long with a sanitizer";
  const TemporaryDirectory directory;
  {
    // Names of 13 MiB each; one file takes two of them.
    constexpr size_t kNames = 13 << 10;
    auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    for (unsigned part = 0; part < 5; ++part) {
      ProfileBuilder builder;
      for (size_t i = 0; i < kNames; ++i) {
        const std::string name = fmt::format("{:>1020}", part * kNames + i);
        const FrameId frame = builder.AddFrame({.name = builder.Intern(name)});
        builder.AddSample({.user_state = StackState::kWhole,
                           .user = builder.AddStack(std::vector{frame}),
                           .count = 1});
      }
      builder.Add({.taken = kNames, .emitted = kNames});
      CaptureMetadata metadata;
      metadata.kinds = {EventKind("cpu-clock", 19, 0)};
      metadata.start_unix_ns = kFirstPart + part * kSecond;
      metadata.duration_ns = kSecond;
      writer->Add(std::move(builder).Finish(std::move(metadata)));
      ASSERT_TRUE(writer->Commit(kFirstPart + (part + 1) * kSecond));
    }
    ASSERT_EQ(writer->counts().parts_dropped, 0u);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(writer->Compact(kDue, kNever));
    EXPECT_EQ(writer->counts().compactions, 2u);
  }
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-2", "3-4", "5-5"));
  const auto listing =
      ReadListing(directory.path(), {}, {.max_bytes = 1 << 26});
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->read.bad_files, 0u);
  uint64_t samples = 0;
  for (const FileSummary& file : listing->files) samples += file.samples;
  EXPECT_EQ(samples, 5u * (13 << 10));
}

TEST(HistoryCompaction, AnOutlineIsAtLeastWhatIsThere) {
  Tables tables = TablesOf({PartNumber(0), PartNumber(1, 99), PartNumber(2)});
  const std::string bytes = EncodeSegment(tables, {3, 5}).value();
  const auto outline = ReadSegmentOutline(bytes.substr(0, kSegmentHeaderBytes));
  ASSERT_TRUE(outline) << outline.error().message();
  EXPECT_EQ(outline->sequences, (Sequences{3, 5}));
  const Sizes sizes = tables.sizes();
  EXPECT_EQ(outline->most.strings, sizes.strings);
  EXPECT_EQ(outline->most.functions, sizes.functions);
  EXPECT_EQ(outline->most.nodes, sizes.nodes);
  EXPECT_EQ(outline->most.kinds, sizes.kinds);
  EXPECT_EQ(outline->most.settings, sizes.settings);
  EXPECT_EQ(outline->most.parts, sizes.parts);
  EXPECT_EQ(outline->most.counters, sizes.counters);
  EXPECT_EQ(outline->most.series, sizes.series);
  EXPECT_EQ(outline->most.rows, sizes.rows);
  EXPECT_EQ(outline->text_bytes, tables.text_bytes);
  for (size_t size = 0; size < kSegmentHeaderBytes; ++size) {
    EXPECT_FALSE(ReadSegmentOutline(bytes.substr(0, size)));
  }
}

}  // namespace
}  // namespace profd::history
