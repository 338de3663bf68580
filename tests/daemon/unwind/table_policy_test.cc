// SPDX-License-Identifier: Apache-2.0
// The policy of UnwindTables over maps, a queue, files and a clock that are
// ours: no root, no waiting. Which tables are built, published and evicted.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/daemon/unwind/table_policy_fixture.h"

namespace profd {
namespace {

using TablePolicyTest = TablePolicyFixture;

// Nothing is opened before a stack leads there; then one table serves all.
TEST_F(TablePolicyTest, BuildsWhatIsWantedOnce) {
  const ProcessId a = Start(1, {7});
  const ProcessId b = Start(2, {7, 8});
  Pass();
  EXPECT_EQ(holds_, 0);
  EXPECT_FALSE(tables_->CodeOf(1, MappingOf(7)));  // to come
  Pass();
  EXPECT_EQ(TablesOf(a), 1u);
  EXPECT_EQ(TablesOf(b), 1u);
  EXPECT_EQ(queue_->added, 1);
  EXPECT_TRUE(tables_->CodeOf(1, MappingOf(7)));
}

// Stacks that wait come before processes that were sampled often.
TEST_F(TablePolicyTest, AsksFirstForWhatStacksWaitFor) {
  const ProcessId a = Start(1, {7});
  queue_->is_busy = true;
  for (int i = 0; i < 1000; ++i) tables_->NoteSample(a, now_);
  tables_->WantAll(a);
  Pass();
  Start(2, {8});
  tables_->CodeOf(2, MappingOf(8));
  ASSERT_EQ(queue_->asked.size(), 2u);
  EXPECT_GE(queue_->asked[1], 1000u);
  EXPECT_GT(queue_->asked[2], queue_->asked[1]);
}

// A list without tables to come is published when something is there, and
// again when all is.
TEST_F(TablePolicyTest, PublishesInTwoSteps) {
  const ProcessId a = Start(1, {7, 8});
  tables_->CodeOf(1, MappingOf(7));
  Pass();
  EXPECT_EQ(TablesOf(a), 1u);
  tables_->WantAll(a);
  queue_->is_busy = true;
  Pass(3);
  EXPECT_EQ(TablesOf(a), 1u);
  const int before = maps_->published;
  queue_->is_busy = false;
  Pass();
  EXPECT_EQ(TablesOf(a), 2u);
  EXPECT_EQ(maps_->published, before + 1);
  EXPECT_EQ(tables_->statistics().processes, 1u);
}

// Whoever places tables does not wait for room: the list says that one is to
// come, and the next pass has it.
TEST_F(TablePolicyTest, WaitsForNoRoom) {
  const ProcessId a = Start(1, {7, 8});
  tables_->CodeOf(1, MappingOf(7));
  Pass();
  EXPECT_EQ(TablesOf(a), 1u);
  EXPECT_FALSE(tables_->IsBuilding());
  maps_->room_is_ready = false;
  tables_->WantAll(a);
  Pass(3);
  EXPECT_EQ(TablesOf(a), 1u);
  ASSERT_EQ(maps_->lists.at(a).size(), 2u);
  EXPECT_EQ(maps_->lists.at(a)[1].shard, UNWIND_PENDING);
  EXPECT_TRUE(tables_->IsBuilding());
  EXPECT_TRUE(tables_->CodeOf(1, MappingOf(8)));  // stacks that are copied
  maps_->room_is_ready = true;
  Pass();
  EXPECT_EQ(TablesOf(a), 2u);
  EXPECT_FALSE(tables_->IsBuilding());
  EXPECT_EQ(tables_->statistics().files_refused, 0u);
}

// When slots end, who was not sampled for two seconds goes, and who is sampled
// does without: counted, and without a wrong list.
TEST_F(TablePolicyTest, EvictsTheIdle) {
  maps_->shard_slots = 2 * kSlotsOfAFile;
  std::vector<ProcessId> all;
  for (uint32_t pid = 1; pid <= 3; ++pid) {
    all.push_back(Start(pid, {pid}));
    tables_->WantAll(all.back());
    Pass();
  }
  EXPECT_EQ(TablesOf(all[0]), 1u);
  EXPECT_EQ(TablesOf(all[1]), 1u);
  EXPECT_EQ(TablesOf(all[2]), 0u);
  EXPECT_EQ(tables_->statistics().files_refused, 1u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);

  now_ += seconds(3);
  tables_->NoteSample(all[1], now_);
  tables_->NoteSample(all[2], now_);
  Pass(3);
  EXPECT_EQ(TablesOf(all[0]), std::nullopt);
  EXPECT_EQ(TablesOf(all[1]), 1u);
  EXPECT_EQ(TablesOf(all[2]), 1u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 1u);
  EXPECT_EQ(tables_->statistics().files_evicted, 1u);
  EXPECT_LE(maps_->used, maps_->max_slots());

  // It comes back when its stacks are copied and another one is idle.
  now_ += seconds(3);
  tables_->NoteSample(all[0], now_);
  tables_->WantAll(all[0]);
  tables_->NoteSample(all[2], now_);
  Pass(3);
  EXPECT_EQ(TablesOf(all[0]), 1u);
  EXPECT_EQ(TablesOf(all[1]), std::nullopt);
}

// A table larger than all room is refused without anybody being evicted.
TEST_F(TablePolicyTest, EvictsNobodyInVain) {
  const ProcessId a = Start(1, {7});
  tables_->WantAll(a);
  Pass();
  now_ += seconds(5);
  queue_->rows = 11'000;
  const ProcessId b = Start(2, {8});
  tables_->WantAll(b);
  Pass(2);
  EXPECT_EQ(TablesOf(a), 1u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);
  EXPECT_EQ(tables_->statistics().files_refused, 1u);
}

// A process that finds no room for a list has none, and gets one when another
// is idle.
TEST_F(TablePolicyTest, FindsRoomForLists) {
  maps_->list_limit = 1;
  const ProcessId a = Start(1, {7});
  const ProcessId b = Start(2, {7});
  tables_->WantAll(a);
  Pass();
  EXPECT_EQ(maps_->lists.size(), 1u);
  EXPECT_GE(tables_->statistics().processes_refused, 1u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);
  const ProcessId without = TablesOf(a) ? b : a;
  now_ += seconds(3);
  for (int i = 0; i < 5; ++i) {
    tables_->NoteSample(without, now_);
    Pass();
  }
  EXPECT_EQ(TablesOf(without), 1u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 1u);
}

// A file that its process can no more be asked for is opened through another.
TEST_F(TablePolicyTest, OpensThroughWhoIsThere) {
  gone_ = {1};
  const ProcessId a = Start(1, {7});
  Start(2, {7});
  tables_->WantAll(a);
  Pass();
  EXPECT_EQ(TablesOf(a), 1u);
  EXPECT_EQ(tables_->statistics().files_failed, 0u);
}

// What nobody has is tried through some of those who map it and not through
// all, counts as failed after many rounds, and is tried again when time went
// by.
TEST_F(TablePolicyTest, TriesAgainToOpen) {
  missing_ = {7};
  std::vector<ProcessId> all;
  for (uint32_t pid = 1; pid <= 100; ++pid) all.push_back(Start(pid, {7}));
  tables_->WantAll(all[0]);
  tables_->Build(seconds(1), now_ + seconds(10));
  EXPECT_LE(holds_, 100 + 17);  // once each, and what they have in common once
  Pass(20);
  EXPECT_EQ(tables_->statistics().files_failed, 1u);
  EXPECT_EQ(TablesOf(all[0]), 0u);
  missing_.clear();
  now_ += seconds(3);
  tables_->NoteSample(all[0], now_);
  Pass(2);
  EXPECT_EQ(TablesOf(all[0]), 1u);
}

// A file without rows is code without a table, for ever, and is not built
// again.
TEST_F(TablePolicyTest, ClosesWhatHasNoRows) {
  queue_->is_refusing = true;
  const ProcessId a = Start(1, {7});
  tables_->WantAll(a);
  Pass();
  EXPECT_EQ(TablesOf(a), 0u);
  EXPECT_EQ(tables_->statistics().files_failed, 1u);
  now_ += seconds(300);
  tables_->NoteSample(a, now_);
  Pass(3);
  EXPECT_EQ(queue_->added, 1);
}

// A file that would come after the deadline is not asked for.
TEST_F(TablePolicyTest, AsksForNothingThatComesTooLate) {
  const ProcessId a = Start(1, {7});
  tables_->WantAll(a);
  tables_->Build(seconds(1), now_ + milliseconds(10));
  EXPECT_EQ(queue_->added, 0);
  tables_->Build(seconds(1), now_ + milliseconds(100));
  EXPECT_EQ(queue_->added, 1);
}

// What busy processes map is built in idle time, keeps nobody waiting, and is
// bounded.
TEST_F(TablePolicyTest, ExpectsTheBusy) {
  queue_->is_busy = true;
  std::vector<ksym::Mapping> mappings;
  for (uint64_t inode = 1; inode <= 100; ++inode) {
    mappings.push_back(MappingOf(inode));
  }
  tables_->Expect(1, mappings, UnwindTables::Expected::kPerhaps);
  EXPECT_EQ(queue_->asked.size(), ExpectedTables::kMaxFiles);
  for (const auto& [id, wanted] : queue_->asked) EXPECT_EQ(wanted, 0u);
  EXPECT_FALSE(tables_->IsBuilding());
  // Now a stack waits for one of them.
  EXPECT_FALSE(tables_->CodeOf(1, MappingOf(1)));
  EXPECT_TRUE(tables_->IsBuilding());
}

// Tables of a process that was chosen are made at once, and are there when it
// is sampled for the first time.
TEST_F(TablePolicyTest, ExpectsTheChosen) {
  queue_->is_busy = true;
  tables_->Expect(1, {MappingOf(1), MappingOf(2)},
                  UnwindTables::Expected::kNow);
  ASSERT_EQ(queue_->asked.size(), 2u);
  for (const auto& [id, wanted] : queue_->asked) EXPECT_GT(wanted, 0u);
  EXPECT_TRUE(tables_->IsBuilding());
  queue_->is_busy = false;
  Pass();
  EXPECT_EQ(queue_->added, 2);
  const ProcessId id = Start(1, {1, 2});
  Pass();
  EXPECT_EQ(TablesOf(id), 2u);
  EXPECT_EQ(queue_->added, 2);
}

// A table that nobody maps is kept for half a minute; one whose file was
// changed meanwhile is not used.
TEST_F(TablePolicyTest, KeepsTablesForTheNext) {
  tables_->WantAll(Start(1, {7}));
  Pass();
  tables_->Forget({.pid = 1, .exec_count = 0, .start_ns = 1});
  Pass(10);
  const ProcessId b = Start(2, {7});
  Pass();
  EXPECT_EQ(TablesOf(b), 1u);
  EXPECT_EQ(queue_->added, 1);

  tables_->Forget(b);
  Pass();
  modified_[7] = 1;
  const ProcessId c = Start(3, {7});
  tables_->WantAll(c);
  Pass();
  EXPECT_EQ(TablesOf(c), 1u);
  EXPECT_EQ(queue_->added, 2);

  tables_->Forget(c);
  now_ += seconds(31);
  Pass(2);
  EXPECT_EQ(maps_->used, 0u);
  EXPECT_EQ(tables_->statistics().rows_bytes, 0u);
}

// What the kernel refuses is told once.
TEST_F(TablePolicyTest, TellsOnceWhatTheKernelRefused) {
  maps_->adds_that_work = 0;
  for (uint32_t pid = 1; pid <= 3; ++pid) tables_->WantAll(Start(pid, {pid}));
  Pass(3);
  const auto warnings = tables_->TakeWarnings();
  EXPECT_EQ(std::ranges::count_if(warnings,
                                  [](const std::string& warning) {
                                    return warning.ends_with("no memory");
                                  }),
            1);
}

}  // namespace
}  // namespace profd
