// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "daemon/history/history_writer.h"
#include "daemon/history/queries.h"
#include "daemon/history/query_json.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {
namespace {

using testing::HasSubstr;

QueryBounds Bounds() {
  return {.max_bytes = size_t{64} << 20, .is_over = [] { return false; }};
}

// Three files of two parts each: two segments and a journal.
void FillDirectory(const std::string& directory) {
  auto writer =
      HistoryWriter::Open(directory, {.journal = std::chrono::seconds(2)},
                          {.boot = "b", .name = "r"}, kFirstPart);
  ASSERT_TRUE(writer) << writer.error().message();
  for (unsigned i = 0; i < 6; ++i) {
    writer->Add(PartNumber(i, 10));
    ASSERT_TRUE(writer->Commit(kFirstPart + (i + 1) * kSecond));
  }
}

TEST(HistoryQueries, AgreeOnTheSum) {
  const TemporaryDirectory directory;
  FillDirectory(directory.path());
  const Selection selection = {.from_unix_ns = kFirstPart,
                               .until_unix_ns = kFirstPart + 6 * kSecond};
  const auto range = ReadRange(directory.path(), selection, Bounds());
  const auto functions = ReadFunctions(directory.path(), selection, Bounds());
  const auto line = ReadTimeline(
      directory.path(), {.selection = selection, .step_ns = kSecond}, Bounds());
  ASSERT_TRUE(range && functions && line);
  EXPECT_EQ(range->profile.accounting.emitted, 90u);
  EXPECT_EQ(functions->table.sum, 90 * kSecond / 10);
  EXPECT_EQ(line->line.rows[0].sum, 90 * kSecond / 10);
  EXPECT_EQ(range->read.files, line->read.files);
  EXPECT_EQ(range->read.files, functions->read.files);
}

TEST(HistoryQueries, ListFiles) {
  const TemporaryDirectory directory;
  FillDirectory(directory.path());
  const auto listing = ReadListing(directory.path(), {}, Bounds());
  ASSERT_TRUE(listing);
  ASSERT_FALSE(listing->files.empty());
  uint64_t samples = 0, lost = 0;
  for (const FileSummary& file : listing->files) {
    samples += file.samples;
    lost += file.lost;
    EXPECT_GT(file.bytes, 0u);
  }
  EXPECT_EQ(samples, 90u);
  EXPECT_EQ(lost, 6u);
  EXPECT_EQ(listing->files.front().from_unix_ns, kFirstPart);
  EXPECT_EQ(listing->files.back().until_unix_ns, kFirstPart + 6 * kSecond);
  const std::string json = RenderListingJson(*listing);
  EXPECT_THAT(json, HasSubstr("\"from\":1795572780.000"));
}

TEST(HistoryQueries, EndWhenNobodyWaits) {
  const TemporaryDirectory directory;
  FillDirectory(directory.path());
  unsigned asked = 0;
  const QueryBounds bounds = {.max_bytes = size_t{64} << 20,
                              .is_over = [&] { return ++asked > 1; }};
  const auto range = ReadRange(directory.path(), {}, bounds);
  ASSERT_FALSE(range);
  EXPECT_EQ(range.error().code(), ksym::ErrorCode::kLimit);
  EXPECT_EQ(asked, 2u);
}

TEST(HistoryQueries, LeaveDamagedFilesOut) {
  const TemporaryDirectory directory;
  FillDirectory(directory.path());
  const auto files = ListFiles(directory.path()).value();
  const std::string first = directory.path() + "/" + TextOf(files.front());
  std::filesystem::resize_file(first, std::filesystem::file_size(first) / 2);
  const auto functions = ReadFunctions(directory.path(), {}, Bounds());
  ASSERT_TRUE(functions);
  EXPECT_EQ(functions->read.bad_files, 1u);
  EXPECT_LT(functions->table.sum, 90 * kSecond / 10);
  EXPECT_THAT(RenderFunctionsJson(*functions, 0),
              HasSubstr(TextOf(files.front())));
}

TEST(HistoryQueries, JsonHasWhatIsThere) {
  const TemporaryDirectory directory;
  FillDirectory(directory.path());
  const Selection selection = {.from_unix_ns = kFirstPart,
                               .until_unix_ns = kFirstPart + 4 * kSecond};
  const auto line = ReadTimeline(directory.path(),
                                 {.selection = selection,
                                  .step_ns = 2 * kSecond,
                                  .by = TimelineBy::kCommand},
                                 Bounds());
  ASSERT_TRUE(line);
  const std::string json = RenderTimelineJson(*line);
  EXPECT_THAT(json, HasSubstr("\"known_ms\":[2000,2000]"));
  EXPECT_THAT(json, HasSubstr("{\"name\":\"nginx\",\"rest\":false,"
                              "\"sum\":4800000000,"
                              "\"values\":[2400000000,2400000000]}"));
  const auto functions = ReadFunctions(directory.path(), selection, Bounds());
  ASSERT_TRUE(functions);
  const std::string top = RenderFunctionsJson(*functions, 1);
  EXPECT_THAT(top, HasSubstr("\"rows\":[\n{\"name\":\"vfs_read\",\"module\":"
                             "\"[kernel]\",\"kind\":\"kernel\",\"self\":"
                             "4000000000,\"total\":4000000000}]"));
}

}  // namespace
}  // namespace profd::history
