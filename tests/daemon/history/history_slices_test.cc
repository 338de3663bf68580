// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/layout.h"
#include "daemon/history/segment_merger.h"
#include "daemon/history/selection.h"
#include "daemon/history/thinning.h"
#include "daemon/history/timeline.h"
#include "tests/daemon/history/history_answers.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint64_t kMillisecond = 1'000'000;
const QueryBounds kSliceBounds = {.max_bytes = size_t{1} << 20};

// A sample of `command` at each of the times, in milliseconds from the first
// part's begin; the part begins `phase` ms later than the second.
struct Burst {
  std::string command;
  std::vector<uint64_t> at_ms;
};
Profile PartWith(unsigned number, const std::vector<Burst>& bursts,
                 uint64_t phase_ms = 0) {
  ProfileBuilder builder;
  uint64_t samples = 0;
  for (const Burst& burst : bursts) {
    const FrameId frame = builder.AddFrame(
        {.name = builder.Intern("of_" + burst.command), .kind = &kUserFrame});
    for (const uint64_t at : burst.at_ms) {
      builder.AddSample(
          {.comm = builder.Intern(burst.command),
           .pid = 7,
           .user_state = StackState::kWhole,
           .slice = SliceOf((kFirstPart + at * kMillisecond) / kSliceNs),
           .user = builder.AddStack(std::vector{frame}),
           .count = 1});
      ++samples;
    }
  }
  builder.Add({.taken = samples, .emitted = samples});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 50, 0)};
  metadata.start_unix_ns =
      kFirstPart + number * kSecond + phase_ms * kMillisecond;
  metadata.duration_ns = kSecond;
  return std::move(builder).Finish(std::move(metadata));
}

Selection TimeOfMs(uint64_t from_ms, uint64_t until_ms) {
  return {.from_unix_ns = kFirstPart + from_ms * kMillisecond,
          .until_unix_ns = kFirstPart + until_ms * kMillisecond,
          .by_slice = true};
}

std::vector<unsigned> SlicesOf(const Tables& tables) {
  std::vector<unsigned> slices;
  for (const Row& row : tables.rows) slices.push_back(row.slice);
  return slices;
}

TEST(TimeSlice, CountsFromANumberOn) {
  for (const uint64_t number : {uint64_t{0}, uint64_t{65'534}, uint64_t{65'535},
                                kFirstPart / kSliceNs}) {
    for (const uint64_t later : {0, 1, 49, 65'534}) {
      const TimeSlice slice = SliceOf(number + later);
      EXPECT_NE(slice, kNoSlice);
      EXPECT_EQ(SlicesAfter(number, slice), later) << number;
    }
  }
}

TEST(HistorySlices, AreOfTheirParts) {
  // A part that begins within a slice has that one as its first.
  const Tables tables =
      TablesOf({PartWith(0, {{"a", {0, 40, 999}}}),
                PartWith(1, {{"a", {1000, 1019, 2009}}}, 10)});
  EXPECT_THAT(SlicesOf(tables), ElementsAre(1, 3, 50, 1, 51));
  EXPECT_EQ(tables.rows[3].count, 2u);
  EXPECT_EQ(BeginOf(tables.parts[0], tables.rows[1]),
            kFirstPart + 40 * kMillisecond);
  EXPECT_EQ(BeginOf(tables.parts[1], tables.rows[3]),
            kFirstPart + 1000 * kMillisecond);
  EXPECT_EQ(BeginOf(tables.parts[1], tables.rows[4]),
            kFirstPart + 2000 * kMillisecond);
  EXPECT_EQ(BeginOf(tables.parts[1], {.slice = 0}),
            tables.parts[1].start_unix_ns);
}

TEST(HistorySlices, ChooseSamplesOfATime) {
  const Tables tables = TablesOf({PartWith(0, {{"a", {0, 40, 60, 980}}}, 0),
                                  PartWith(1, {{"a", {1000, 1020}}}, 10)});
  const auto count = [&](const Selection& selection) {
    const FileFilter filter(tables, selection);
    uint64_t samples = 0;
    for (const Row& row : tables.rows) {
      if (filter.HasPart(row.part) && filter.HasRow(row)) samples += row.count;
    }
    return samples;
  };
  EXPECT_EQ(count(TimeOfMs(0, 2000)), 6u);
  EXPECT_EQ(count(TimeOfMs(40, 61)), 2u);
  EXPECT_EQ(count(TimeOfMs(41, 60)), 0u);
  EXPECT_EQ(count(TimeOfMs(980, 1001)), 2u);
  // The second part begins behind this time, and its first slice in it.
  EXPECT_EQ(count(TimeOfMs(1000, 1005)), 1u);
  EXPECT_EQ(count(TimeOfMs(1020, 9000)), 1u);
  EXPECT_EQ(count(TimeOfMs(2000, 9000)), 0u);
  EXPECT_EQ(count({.from_unix_ns = kFirstPart + 40 * kMillisecond}), 2u);
}

TEST(HistorySlices, AreStepsOfATimeline) {
  TimelineRequest request = {.selection = TimeOfMs(0, 2000),
                             .step_ns = kSliceNs,
                             .by = TimelineBy::kCommand};
  auto adder = TimelineAdder::Begin(request);
  ASSERT_TRUE(adder) << adder.error().message();
  ASSERT_TRUE(
      adder->Add(TablesOf({PartWith(0, {{"a", {0, 40, 41}}, {"b", {500}}})})));
  const Timeline line = std::move(*adder).Finish();
  ASSERT_EQ(line.steps.size(), 100u);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(line.steps[i].known_ns, i < 50 ? kSliceNs : 0) << i;
  }
  ASSERT_EQ(line.rows.size(), 2u);
  EXPECT_EQ(line.rows[0].name, "a");
  EXPECT_EQ(line.rows[0].values[0], kSliceNs);
  EXPECT_EQ(line.rows[0].values[1], 0u);
  EXPECT_EQ(line.rows[0].values[2], 2 * kSliceNs);
  EXPECT_EQ(line.rows[0].sum, 3 * kSliceNs);
  EXPECT_EQ(line.rows[1].values[25], kSliceNs);
  EXPECT_EQ(line.lanes[0].known_ns[49], kSliceNs);

  request.step_ns = kSliceNs - 1;
  EXPECT_FALSE(TimelineAdder::Begin(request));
  request = {.selection = {.from_unix_ns = kFirstPart,
                           .until_unix_ns = kFirstPart + kSecond},
             .step_ns = kSliceNs};
  EXPECT_FALSE(TimelineAdder::Begin(request));
}

// What a profile of a few slices says of its length is as long as they are.
TEST(HistorySlices, MakeProfilesOfShortTimes) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer) << writer.error().message();
  writer->Add(PartWith(0, {{"calm", {100, 300}}}));
  writer->Add(PartWith(1, {{"calm", {1100}}, {"burst", {1240, 1260, 1280}}}));
  ASSERT_TRUE(writer->Commit(kFirstPart + 2 * kSecond));
  for (const bool is_flame : {false, true}) {
    const Selection selection = TimeOfMs(1240, 1290);
    const auto answer =
        is_flame ? ReadFlame(directory.path(), selection, 1000, kSliceBounds)
                 : ReadRange(directory.path(), selection, kSliceBounds);
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->profile.metadata.duration_ns, 50 * kMillisecond);
    EXPECT_EQ(answer->profile.metadata.start_unix_ns,
              kFirstPart + 1240 * kMillisecond);
    EXPECT_EQ(answer->profile.accounting.emitted, 3u);
    EXPECT_EQ(Render(answer->profile, OutputFormat::kFolded, {}),
              "burst;of_burst 3\n");
  }
  const auto table =
      ReadFunctions(directory.path(), TimeOfMs(0, 400), kSliceBounds);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->table.sum, 2 * kSliceNs);
}

TEST(HistorySlices, AreInJournalsAndSegments) {
  Tables tables = TablesOf({PartWith(0, {{"a", {0, 40}}, {"b", {500}}})});
  const auto segment = EncodeSegment(tables, {1, 1});
  ASSERT_TRUE(segment);
  EXPECT_EQ((*segment)[8], 6);
  EXPECT_EQ(DecodeSegment(*segment).value().tables.rows, tables.rows);
  const auto record = EncodeRecord(tables, {});
  ASSERT_TRUE(record);
  const auto journal = DecodeJournal(JournalHeader(1) + *record);
  ASSERT_TRUE(journal);
  EXPECT_EQ(journal->tables.rows, tables.rows);
  // Rows without a slice come back without one.
  for (Row& row : tables.rows) row.slice = 0;
  EXPECT_THAT(
      SlicesOf(
          DecodeSegment(EncodeSegment(tables, {1, 1}).value()).value().tables),
      Each(0));
}

TEST(HistorySlices, GoWhenFilesArePutTogetherOrThinnedOut) {
  const Tables one = TablesOf({PartWith(0, {{"a", {0, 40, 60}}})});
  const Tables other = TablesOf({PartWith(1, {{"a", {1000, 1040}}})});
  SegmentMerger merger;
  ASSERT_TRUE(merger.Add(one));
  ASSERT_TRUE(merger.Add(other));
  const Tables tables = std::move(merger).Finish();
  EXPECT_THAT(SlicesOf(tables), ElementsAre(0, 0));
  EXPECT_EQ(tables.rows[0].count, 3u);
  EXPECT_EQ(tables.rows[1].count, 2u);

  Tables thinned = one;
  ThinTables(thinned);
  EXPECT_THAT(SlicesOf(thinned), ElementsAre(0));
  EXPECT_EQ(thinned.rows[0].count, 3u);
}

// They have an hour, and nothing is said of older samples by slices.
TEST(HistorySlices, AreKeptForAnHour) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  for (unsigned i = 0; i < 2; ++i) {
    writer->Add(PartWith(i, {{"a", {1000 * i}}}));
    ASSERT_TRUE(writer->Commit(kFirstPart + (i + 1) * kSecond));
  }
  const auto known = [&] {
    const auto answer = ReadTimeline(
        directory.path(), {.selection = TimeOfMs(0, 2000), .step_ns = kSliceNs},
        kSliceBounds);
    EXPECT_TRUE(answer) << answer.error().message();
    return answer->line.coverage.parts;
  };
  ASSERT_TRUE(writer->Compact(kDue - kSecond, kNever));
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-1", "2-2"));
  EXPECT_EQ(known(), 2u);
  ASSERT_TRUE(writer->Compact(kDue, kNever));
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-2"));
  EXPECT_EQ(known(), 0u);
}

TEST(HistorySlices, AreMissingInOlderFiles) {
  const auto read = [](const std::string& name) {
    std::ifstream in(KSYM_TEST_DATA_DIR "/history/" + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string bytes = read("version-5.segment");
  const auto segment = DecodeSegment(bytes);
  ASSERT_TRUE(segment) << segment.error().message();
  const auto journal = DecodeJournal(read("version-5.journal"));
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_EQ(journal->bytes_after, 0u);
  EXPECT_THAT(SlicesOf(segment->tables), Not(IsEmpty()));
  EXPECT_EQ(segment->tables.rows.size(), journal->tables.rows.size());
  for (const Tables* tables : {&segment->tables, &journal->tables}) {
    EXPECT_THAT(SlicesOf(*tables), Each(0));
    const FileFilter filter(*tables, TimeOfMs(0, 100'000));
    for (uint32_t i = 0; i < tables->parts.size(); ++i) {
      EXPECT_FALSE(filter.HasPart(i));
    }
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeSegment(bytes.substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace profd::history
