// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/history_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "daemon/base/now_ns.h"
#include "daemon/history/queries.h"
#include "tests/daemon/history/sample_parts.h"
#include "tests/daemon/service/second.h"

namespace profd {
namespace {

constexpr std::chrono::seconds kPatience(20);

// A part of the hour before the last one.
std::shared_ptr<const Profile> OldPart(unsigned number) {
  constexpr uint64_t kHour = 3600 * kSecond;
  auto part = std::make_shared<Profile>(history::PartNumber(number));
  part->metadata.start_unix_ns =
      (NowNs(CLOCK_REALTIME) / kHour - 2) * kHour + number * kSecond;
  return part;
}

TEST(HistoryThread, PutsFilesOfAnHourTogether) {
  const history::TemporaryDirectory directory;
  ServiceCounters counters;
  HistoryThread thread(
      {.directory = directory.path(), .limits = {.journal_memory_bytes = 1}},
      counters);
  // A file for each; two that are there become one.
  for (unsigned i = 0; i < 4; ++i) {
    thread.AddPart(OldPart(i));
    thread.EndInterval();
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (counters.history_compactions < 2 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(thread.Finish(deadline));
  EXPECT_EQ(counters.history_compactions, 2u);
  EXPECT_EQ(counters.history_compactions_failed, 0u);
  EXPECT_GT(counters.history_compaction_cpu_ns, 0u);
  EXPECT_EQ(counters.history_samples_dropped, 0u);
  EXPECT_EQ(history::ListFiles(directory.path()).value().size(), 2u);
  const auto answer =
      history::ReadRange(directory.path(), {}, {.max_bytes = size_t{1} << 26});
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->coverage.parts, 4u);
  EXPECT_EQ(answer->profile.accounting.emitted, 60u);
}

TEST(HistoryThread, ThinsOldFilesOut) {
  for (const bool is_on : {true, false}) {
    const history::TemporaryDirectory directory;
    ServiceCounters counters;
    HistoryThread thread(
        {.directory = directory.path(),
         .limits = {.journal_memory_bytes = 1,
                    .thin_after = std::chrono::hours(is_on ? 1 : 0)}},
        counters);
    // Alone in its hour.
    thread.AddPart(OldPart(0));
    thread.EndInterval();
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (is_on && counters.history_thinnings < 1 &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(thread.Finish(deadline));
    EXPECT_EQ(counters.history_thinnings, is_on ? 1u : 0u);
    EXPECT_EQ(counters.history_thinnings_failed, 0u);
    const auto listing = history::ReadListing(directory.path(), {},
                                              {.max_bytes = size_t{1} << 26});
    ASSERT_TRUE(listing && listing->files.size() == 1);
    EXPECT_EQ(listing->files[0].is_thinned, is_on);
    EXPECT_EQ(listing->files[0].samples, 15u);
    EXPECT_EQ(listing->files[0].folded_stacks, counters.history_stacks_folded);
  }
}

}  // namespace
}  // namespace profd
