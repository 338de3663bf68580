// SPDX-License-Identifier: Apache-2.0
// What may become of a file's table, of a process's list, and who goes when
// room ends: every state and transition, without files, maps or time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "daemon/base/steady_clock.h"
#include "daemon/unwind/table_budget.h"
#include "daemon/unwind/table_file.h"
#include "daemon/unwind/table_list.h"

namespace profd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Place = TableFileState::Place;
using Settled = TableListState::Settled;

constexpr SteadyClock::time_point kStart{seconds(1000)};

// Fails to open in so many rounds, from `first` on.
bool FailRounds(TableFileState& file, uint64_t first, uint32_t rounds,
                SteadyClock::time_point now = kStart) {
  bool counts = false;
  for (uint64_t round = first; round < first + rounds; ++round) {
    counts |= file.NoteOpenFailure(round, 1, now);
  }
  return counts;
}

// A file is pending from the start, and awaited from when a stack leads there.
TEST(TableFileStateTest, IsAwaitedWhenItIsWanted) {
  TableFileState file;
  EXPECT_TRUE(file.is_pending());
  EXPECT_FALSE(file.is_awaited());
  EXPECT_TRUE(file.Want());
  EXPECT_TRUE(file.is_awaited());
  EXPECT_FALSE(file.Want());  // not anew
}

// What has its place is awaited no more. Rows that cannot be built again do not
// take the place away.
TEST(TableFileStateTest, EndsWithATable) {
  TableFileState file;
  file.Want();
  file.Placed();
  EXPECT_EQ(file.place(), Place::kReady);
  EXPECT_FALSE(file.is_awaited());
  EXPECT_FALSE(file.has_failed());
  file.Fail();
  EXPECT_EQ(file.place(), Place::kSealed);
  EXPECT_TRUE(file.is_ready());
  EXPECT_TRUE(file.has_failed());
  EXPECT_FALSE(file.is_awaited());
  file.Fail();
  EXPECT_EQ(file.place(), Place::kSealed);
}

// What gives no rows is awaited until the lists say so.
TEST(TableFileStateTest, EndsWithoutATable) {
  TableFileState file;
  file.Want();
  file.Fail();
  EXPECT_EQ(file.place(), Place::kFailed);
  EXPECT_TRUE(file.has_failed());
  EXPECT_TRUE(file.is_awaited());
  file.Fail();
  EXPECT_EQ(file.place(), Place::kFailed);
  file.Close();
  EXPECT_EQ(file.place(), Place::kNone);
  EXPECT_TRUE(file.has_failed());
  EXPECT_FALSE(file.is_awaited());
  EXPECT_FALSE(file.Retry(kStart, kStart + seconds(9)));
  file.Fail();
  EXPECT_EQ(file.place(), Place::kNone);
}

// A refused file whose rows cannot be built again is not tried again; no list
// says that it is to come.
TEST(TableFileStateTest, EndsWithoutATableWhenRefused) {
  TableFileState file;
  file.RefuseRoom(kStart);
  file.Fail();
  EXPECT_EQ(file.place(), Place::kNone);
  EXPECT_FALSE(file.Retry(kStart, kStart + seconds(9)));
}

// What found no room is tried again after a while, for a process that was
// sampled since then.
TEST(TableFileStateTest, TriesForRoomAgain) {
  TableFileState file;
  file.RefuseRoom(kStart);
  EXPECT_EQ(file.place(), Place::kRefused);
  EXPECT_FALSE(file.Retry(kStart - milliseconds(1), kStart + seconds(9)));
  EXPECT_FALSE(file.Retry(kStart, kStart));
  EXPECT_TRUE(file.is_refused());
  EXPECT_TRUE(file.Retry(kStart, kStart + milliseconds(1)));
  EXPECT_TRUE(file.is_pending());
  EXPECT_FALSE(file.Retry(kStart, kStart + seconds(9)));  // it is not refused
}

// A round tries each process once, and another one after a failure.
TEST(TableFileStateTest, IsOpenedOnceARoundAndProcess) {
  TableFileState file;
  EXPECT_TRUE(file.MayOpen(5, 1));
  file.NoteOpenFailure(5, 1, kStart);
  EXPECT_FALSE(file.MayOpen(5, 1));
  EXPECT_TRUE(file.MayOpen(5, 2));
  EXPECT_TRUE(file.MayOpen(6, 1));
  EXPECT_TRUE(file.WasTriedIn(5));
  EXPECT_FALSE(file.WasTriedIn(6));
}

// Several processes that are gone in one round are one failure; sixteen rounds
// of them make a file one that cannot be opened, which counts once.
TEST(TableFileStateTest, GivesUpOpeningAfterManyRounds) {
  TableFileState file;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(file.NoteOpenFailure(1, static_cast<uint32_t>(i), kStart));
  }
  EXPECT_FALSE(FailRounds(file, 2, TableFileState::kMaxFailures - 2));
  EXPECT_TRUE(file.is_pending());
  EXPECT_TRUE(FailRounds(file, 50, 1));
  EXPECT_TRUE(file.is_refused());
  // Refused, one process a round is enough.
  EXPECT_FALSE(file.MayOpen(50, 2));
  EXPECT_TRUE(file.MayOpen(51, 2));
}

// One that cannot be opened waits longer each time, up to two minutes.
TEST(TableFileStateTest, WaitsEverLongerToOpen) {
  TableFileState file;
  FailRounds(file, 1, TableFileState::kMaxFailures);
  uint64_t round = 100;
  const auto late = kStart + std::chrono::hours(1);
  for (const seconds wait :
       {seconds(0), seconds(2), seconds(4), seconds(8), seconds(16),
        seconds(32), seconds(64), seconds(120), seconds(120)}) {
    EXPECT_FALSE(file.Retry(kStart + wait - milliseconds(1), late)) << wait;
    ASSERT_TRUE(file.Retry(kStart + wait, late)) << wait;
    EXPECT_TRUE(file.is_pending());
    // It counted the first time.
    EXPECT_FALSE(FailRounds(file, ++round, 1));
    EXPECT_TRUE(file.is_refused());
  }
}

// A success takes all failures back; what was refused for want of room stays
// refused, as that it can be opened makes none.
TEST(TableFileStateTest, IsPendingAgainOnceOpened) {
  TableFileState file;
  FailRounds(file, 1, TableFileState::kMaxFailures - 1);
  EXPECT_FALSE(file.NoteOpened());
  EXPECT_FALSE(FailRounds(file, 30, TableFileState::kMaxFailures - 1));
  EXPECT_TRUE(FailRounds(file, 60, 1));
  EXPECT_TRUE(file.NoteOpened());
  EXPECT_TRUE(file.is_pending());

  TableFileState no_room;
  no_room.RefuseRoom(kStart);
  EXPECT_FALSE(no_room.NoteOpened());
  EXPECT_TRUE(no_room.is_refused());
}

// A list that lacks tables is put off once; then it is published when it
// changed, and a whole one always.
TEST(TableListStateTest, IsPutOffOnce) {
  TableListState list;
  EXPECT_FALSE(list.IsDue(false));
  EXPECT_TRUE(list.IsDue(false));
  list.Published({}, false, kStart);
  EXPECT_FALSE(list.IsDue(false));
  list.Settle({});  // as it was
  EXPECT_FALSE(list.IsDue(false));
  list.Settle({.with_table = 1, .without = 0});
  EXPECT_TRUE(list.IsDue(false));
  EXPECT_TRUE(list.IsDue(true));
  list.Acquired();
  EXPECT_FALSE(list.IsDue(false));
}

// The time from the first sample to the first whole list is told once, and
// samples are counted from the last whole one.
TEST(TableListStateTest, TellsHowLongItTook) {
  TableListState list;
  list.NoteSample(kStart + seconds(1));
  list.NoteSample(kStart);  // of another CPU, and late
  EXPECT_EQ(list.seen(), kStart + seconds(1));
  EXPECT_EQ(list.samples(), 2u);

  auto published = list.Published({}, false, kStart + seconds(2));
  EXPECT_TRUE(published.is_first);
  EXPECT_FALSE(published.delay);
  EXPECT_EQ(list.samples(), 2u);
  published = list.Published({}, true, kStart + seconds(3));
  EXPECT_FALSE(published.is_first);
  EXPECT_EQ(published.delay, seconds(2));
  EXPECT_EQ(list.samples(), 0u);
  EXPECT_FALSE(list.Published({}, true, kStart + seconds(9)).delay);
}

// A refused list is withdrawn if there was one, and tried again for a process
// that was sampled since, sooner where room was made.
TEST(TableListStateTest, RetriesWhatWasRefused) {
  TableListState list;
  list.NoteSample(kStart);
  EXPECT_FALSE(list.Refuse(kStart));
  EXPECT_TRUE(list.is_refused());
  EXPECT_FALSE(list.Retry(kStart));  // it was not sampled since
  list.NoteSample(kStart + milliseconds(1));
  EXPECT_FALSE(list.Retry(kStart - milliseconds(1)));
  EXPECT_TRUE(list.Retry(kStart));
  EXPECT_FALSE(list.is_refused());

  list.Published({}, true, kStart);
  EXPECT_TRUE(list.is_published());
  EXPECT_TRUE(list.Refuse(kStart + seconds(5)));
  EXPECT_FALSE(list.is_published());
  list.RetrySoon();
  list.NoteSample(kStart + seconds(5));
  EXPECT_TRUE(list.Retry(kStart + seconds(5) - TableListState::kKeepSampled));
}

// Only a published one that was not sampled lately can go; it comes back when
// it has its files again.
TEST(TableListStateTest, IsEvictedWhenIdle) {
  TableListState list;
  list.NoteSample(kStart);
  EXPECT_FALSE(list.CanBeEvicted(kStart));
  list.Published({}, true, kStart);
  EXPECT_FALSE(list.CanBeEvicted(kStart - milliseconds(1)));
  EXPECT_TRUE(list.CanBeEvicted(kStart));
  list.Evict();
  EXPECT_TRUE(list.is_evicted());
  EXPECT_FALSE(list.CanBeEvicted(kStart));
  list.Acquired();
  EXPECT_FALSE(list.is_evicted());
}

// Files that are not pending have a table or none.
TEST(TableListStateTest, CountsSettledFiles) {
  TableFileState ready;
  ready.Placed();
  TableFileState none;
  none.Fail();
  none.Close();
  Settled settled;
  for (const TableFileState& file : {TableFileState(), ready, none, ready}) {
    settled.Count(file);
  }
  EXPECT_EQ(settled, (Settled{.with_table = 2, .without = 1}));
}

// The one that was not used for longest goes, of those that can, unless that
// was too lately.
TEST(TableBudgetTest, ChoosesTheLongestUnused) {
  const std::vector<RoomHolder> holders = {
      {.can_go = true, .used = kStart + seconds(3)},
      {.can_go = false, .used = kStart},
      {.can_go = true, .used = kStart + seconds(1)},
      {.can_go = true, .used = kStart + seconds(1)}};
  EXPECT_EQ(LongestUnused(holders), 2u);
  EXPECT_EQ(LongestUnused(holders, kStart + seconds(1)), 2u);
  EXPECT_EQ(LongestUnused(holders, kStart), std::nullopt);
  EXPECT_EQ(LongestUnused({}), std::nullopt);
}

// A large file is not begun when it would come too late.
TEST(TableBudgetTest, KnowsWhatComesTooLate) {
  constexpr uint64_t kMiB = 1 << 20;
  const auto deadline = kStart + milliseconds(60);
  EXPECT_TRUE(IsReadyBefore(deadline, kStart, 0));
  EXPECT_TRUE(IsReadyBefore(deadline, kStart, 44 * kMiB));
  EXPECT_FALSE(IsReadyBefore(deadline, kStart, 45 * kMiB));
  EXPECT_FALSE(IsReadyBefore(kStart, kStart, 0));
}

// What is built before anybody needs it has an end in number and in bytes.
TEST(TableBudgetTest, BoundsWhatIsExpected) {
  ExpectedTables by_number;
  for (size_t i = 0; i < ExpectedTables::kMaxFiles; ++i) {
    ASSERT_TRUE(by_number.HasRoomFor(1)) << i;
    by_number.Add(1);
  }
  EXPECT_TRUE(by_number.is_full());
  EXPECT_FALSE(by_number.HasRoomFor(0));

  ExpectedTables by_size;
  by_size.Add(ExpectedTables::kMaxBytes - 5);
  EXPECT_TRUE(by_size.HasRoomFor(5));
  EXPECT_FALSE(by_size.HasRoomFor(6));
  EXPECT_FALSE(by_size.HasRoomFor(UINT64_MAX));
}

}  // namespace
}  // namespace profd
