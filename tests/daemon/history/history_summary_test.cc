// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/history_directory.h"
#include "daemon/history/history_writer.h"
#include "daemon/history/queries.h"
#include "daemon/history/summary.h"
#include "daemon/history/table_check.h"
#include "daemon/history/timeline.h"
#include "tests/daemon/history/sample_parts.h"
#include "tests/daemon/history/stack_parts.h"

namespace profd::history {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

const QueryBounds kRoomOfLine = {.max_bytes = size_t{64} << 20};
constexpr uint64_t kStep = 30 * kSecond;

// Two minutes with another rate, a hole and another run of the service.
Tables TwoMinutes() {
  PartAdder adder;
  for (unsigned i = 0; i < 120; ++i) {
    if (i >= 57 && i < 64) continue;
    EXPECT_TRUE(adder.Add(PartNumber(i, i < 33 ? 19 : 99),
                          {.boot = "b", .name = i < 95 ? "r" : "s"}));
  }
  return std::move(adder.tables());
}

TimelineRequest RequestOf(TimelineBy by, uint64_t step_ns = kStep) {
  return {.selection = {.from_unix_ns = kFirstPart,
                        .until_unix_ns = kFirstPart + 4 * kStep},
          .step_ns = step_ns,
          .by = by};
}

Timeline LineOf(const Tables& tables, TimelineBy by) {
  auto adder = TimelineAdder::Begin(RequestOf(by)).value();
  const auto added = adder.Add(tables);
  EXPECT_TRUE(added) << added.error().message();
  return std::move(adder).Finish();
}

void ExpectSame(const Timeline& line, const Timeline& wanted) {
  ASSERT_EQ(line.steps.size(), wanted.steps.size());
  for (size_t i = 0; i < line.steps.size(); ++i) {
    const Timeline::Step& step = line.steps[i];
    const Timeline::Step& other = wanted.steps[i];
    EXPECT_EQ(step.known_ns, other.known_ns) << i;
    EXPECT_EQ(step.samples, other.samples) << i;
    EXPECT_EQ(step.lost, other.lost) << i;
    EXPECT_EQ(step.has_restart, other.has_restart) << i;
    EXPECT_EQ(step.has_set_back, other.has_set_back) << i;
    EXPECT_EQ(step.has_new_rate, other.has_new_rate) << i;
  }
  ASSERT_EQ(line.rows.size(), wanted.rows.size());
  for (size_t i = 0; i < line.rows.size(); ++i) {
    EXPECT_EQ(line.rows[i].name, wanted.rows[i].name);
    EXPECT_EQ(line.rows[i].values, wanted.rows[i].values);
  }
  EXPECT_EQ(line.coverage.known_ns, wanted.coverage.known_ns);
  EXPECT_EQ(line.coverage.restarts, wanted.coverage.restarts);
  EXPECT_EQ(line.coverage.holes, wanted.coverage.holes);
  EXPECT_EQ(line.coverage.hole_ns, wanted.coverage.hole_ns);
  EXPECT_EQ(line.coverage.set_back, wanted.coverage.set_back);
}

TEST(HistorySummary, SaysOfCgroupsWhatTheFileSays) {
  const Tables tables = TwoMinutes();
  const auto summary = SummaryOf(tables);
  ASSERT_TRUE(summary);
  ASSERT_TRUE(CheckTables(*summary));
  EXPECT_THAT(summary->functions, IsEmpty());
  EXPECT_LE(summary->parts.size(), 17u);
  EXPECT_LE(summary->rows.size(), 34u);
  EXPECT_THAT(summary->series, SizeIs(6));  // of two cgroups and three settings
  for (const TimelineBy by :
       {TimelineBy::kAll, TimelineBy::kUnit, TimelineBy::kContainer}) {
    const Timeline line = LineOf(tables, by);
    EXPECT_TRUE(line.steps[1].has_new_rate);
    EXPECT_EQ(line.coverage.holes, 1u);
    EXPECT_EQ(line.coverage.restarts, 1u);
    ExpectSame(LineOf(*summary, by), line);
  }
}

TEST(HistorySummary, KeepsPartsApartThatDoNotFollow) {
  std::vector<Profile> parts;
  for (const unsigned number : {0u, 1u, 3u, 2u, 4u, 5u}) {
    parts.push_back(PartNumber(number));
  }
  parts.back().metadata.duration_ns = 20 * kSecond;
  parts.push_back(PartNumber(25));
  const Tables tables = TablesOf(parts);
  const auto summary = SummaryOf(tables);
  ASSERT_TRUE(summary || tables.rows.size() < 4 * 7);
  // One of two seconds; 3; 2; 4; the long one; 25.
  std::vector<Profile> more = parts;
  for (unsigned i = 30; i < 90; ++i) more.push_back(PartNumber(i));
  const auto larger = SummaryOf(TablesOf(more));
  ASSERT_TRUE(larger);
  EXPECT_THAT(larger->parts, SizeIs(6 + 6));
  EXPECT_EQ(larger->parts[0].duration_ns, 2 * kSecond);
}

TEST(HistorySummary, IsLeftOutWhereItSavesNothing) {
  // Each row is of another ten seconds.
  std::vector<Profile> parts;
  for (unsigned i = 0; i < 50; ++i) {
    parts.push_back(PartOf(10 * i, {{.user = "main"}}));
  }
  Tables tables = TablesOf(parts);
  EXPECT_FALSE(SummaryOf(tables));
  const std::string bytes = EncodeSummarized(tables, {1, 1}).value();
  EXPECT_FALSE(ReadSegmentOutline(bytes)->summary);
  EXPECT_TRUE(DecodeSegment(bytes));
}

TEST(HistorySummary, LiesBehindTheColumns) {
  Tables tables = TwoMinutes();
  const std::string bytes = EncodeSummarized(tables, {1, 1}).value();
  const auto whole = DecodeSegment(bytes);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->tables.rows, tables.rows);
  const auto outline = ReadSegmentOutline(bytes.substr(0, kSegmentHeaderBytes));
  ASSERT_TRUE(outline);
  ASSERT_TRUE(outline->summary);
  const SegmentOutline::Summary summary = *outline->summary;
  EXPECT_LE(summary.offset + summary.packed_size, bytes.size());
  EXPECT_LT(summary.packed_size, bytes.size() / 2);
  const std::string packed = bytes.substr(summary.offset, summary.packed_size);
  const std::string behind = bytes.substr(summary.offset + packed.size());
  const auto read = DecodeSummary(summary, packed);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->rows, SummaryOf(tables)->rows);
  for (size_t bit = 0; bit < packed.size() * 8; ++bit) {
    std::string flipped = packed;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(DecodeSummary(summary, flipped)) << bit;
    // All of a file is looked at, also what is not needed.
    flipped = bytes.substr(0, summary.offset) + flipped + behind;
    EXPECT_FALSE(DecodeSegment(flipped)) << bit;
  }
  for (size_t size = 0; size < packed.size(); ++size) {
    EXPECT_FALSE(DecodeSummary(summary, packed.substr(0, size))) << size;
  }
}

// A directory with one segment of two minutes; its path.
std::string FillWithSummary(const std::string& directory) {
  Tables tables = TwoMinutes();
  const Sequences sequences = {.first = 1, .last = 1};
  const std::string path =
      directory + "/" + TextOf(SegmentNameOf(tables, sequences));
  std::ofstream(path, std::ios::binary)
      << EncodeSummarized(tables, sequences).value();
  return path;
}

TEST(HistorySummary, AnswersForATimeLineOfCoarseSteps) {
  const TemporaryDirectory directory;
  const std::string path = FillWithSummary(directory.path());
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  // Nothing but the summary can be read any more.
  bytes[kSegmentHeaderBytes] = static_cast<char>(~bytes[kSegmentHeaderBytes]);
  std::ofstream(path, std::ios::binary) << bytes;
  const auto files_of = [&](TimelineRequest request) {
    request.selection.from_unix_ns -= kSecond;
    request.selection.until_unix_ns += 2 * kSecond;
    const auto line = ReadTimeline(directory.path(), request, kRoomOfLine);
    EXPECT_TRUE(line) << line.error().message();
    return line && line->read.bad_files == 0 && line->line.rows[0].sum > 0;
  };
  EXPECT_TRUE(files_of(RequestOf(TimelineBy::kUnit)));
  EXPECT_TRUE(files_of(RequestOf(TimelineBy::kAll)));
  // Others need what is in the columns.
  EXPECT_FALSE(files_of(RequestOf(TimelineBy::kUnit, 10 * kSecond)));
  EXPECT_FALSE(files_of(RequestOf(TimelineBy::kCommand)));
  EXPECT_FALSE(files_of(RequestOf(TimelineBy::kProcess)));
  TimelineRequest filtered = RequestOf(TimelineBy::kUnit);
  filtered.selection.command = "nginx";
  EXPECT_FALSE(files_of(filtered));
  filtered.selection = {.from_unix_ns = kFirstPart,
                        .until_unix_ns = kFirstPart + 4 * kStep,
                        .pid = 100};
  EXPECT_FALSE(files_of(filtered));
  filtered.selection.pid.reset();
  filtered.selection.function = "main";
  EXPECT_FALSE(files_of(filtered));
  // So does a time that the file is not within.
  filtered = RequestOf(TimelineBy::kUnit);
  filtered.selection.from_unix_ns += 40 * kSecond;
  EXPECT_FALSE(files_of(filtered));
}

TEST(HistorySummary, FiltersUnitsAndContainers) {
  const TemporaryDirectory directory;
  FillWithSummary(directory.path());
  for (const uint64_t step : {10 * kSecond, kStep}) {
    TimelineRequest request = RequestOf(TimelineBy::kAll, step);
    request.selection.from_unix_ns -= kStep;
    request.selection.until_unix_ns += kStep;
    request.selection.unit = "nginx";
    const auto line = ReadTimeline(directory.path(), request, kRoomOfLine);
    ASSERT_TRUE(line);
    ASSERT_EQ(line->line.rows.size(), 1u);
    // 12 samples a second, of which 33 seconds had the first rate.
    EXPECT_NEAR(static_cast<double>(line->line.rows[0].sum),
                12.0 * kSecond * (33.0 / 19 + 80.0 / 99), 1e6);
  }
}

TEST(HistorySummary, ComesWithWhatAWriterMakes) {
  const TemporaryDirectory directory;
  {
    auto writer = HistoryWriter::Open(directory.path(),
                                      {.journal = std::chrono::seconds(60)},
                                      {.boot = "b", .name = "r"}, kFirstPart);
    ASSERT_TRUE(writer) << writer.error().message();
    for (unsigned i = 0; i < 130; ++i) {
      writer->Add(PartNumber(i));
      ASSERT_TRUE(writer->Commit(kFirstPart + (i + 1) * kSecond));
    }
    const auto compacted =
        writer->Compact(kFirstPart + 3 * 3600 * kSecond, [] { return false; });
    ASSERT_TRUE(compacted);
  }
  size_t segments = 0;
  const std::vector<FileName> names = ListFiles(directory.path()).value();
  for (const FileName& name : names) {
    if (!name.is_segment) continue;
    ++segments;
    EXPECT_TRUE(ReadSummary(directory.path(), name)) << TextOf(name);
  }
  EXPECT_GT(segments, 0u);
}

}  // namespace
}  // namespace profd::history
