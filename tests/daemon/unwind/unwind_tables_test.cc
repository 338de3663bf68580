// SPDX-License-Identifier: Apache-2.0
// Which tables are built, and for whom there is room.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/unwind/unwind_tables_fixture.h"

namespace profd {
namespace {

using ksym::ProcessId;
using std::chrono::seconds;

// Whoever calls Build() gets a turn before each file and each of its pieces.
TEST_F(UnwindTablesTest, GivesItsCallerTurns) {
  const ProcessId id = Start(1);
  EXPECT_EQ(turns_, 0u);
  Poll({id});
  ASSERT_EQ(ListOf(id), Lists::kRight);
  EXPECT_GE(turns_, 2u);
}

// When memory ends, those who were not sampled for a while lose their tables to
// those who are, and get them again when they are sampled; each step is
// counted, and no process ever has a wrong row.
TEST_F(UnwindTablesTest, EvictsAndRecovers) {
  const ProcessId a = Start(1);
  const ProcessId b = Start(2);
  Poll({a, b});
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_EQ(ListOf(b), Lists::kRight);
  EXPECT_EQ(tables_->statistics().files_refused, 0u);

  // All are sampled: the third has to do without.
  const ProcessId c = Start(3);
  Poll({a, b, c}, 2);
  EXPECT_EQ(ListOf(c), Lists::kWithoutTable);
  EXPECT_EQ(tables_->statistics().files_refused, 1u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);

  // The first is idle: the third gets its room.
  std::this_thread::sleep_for(kIdle);
  Poll({b, c}, 3);
  EXPECT_EQ(ListOf(a), Lists::kNone);
  EXPECT_EQ(ListOf(b), Lists::kRight);
  EXPECT_EQ(ListOf(c), Lists::kRight);
  EXPECT_EQ(tables_->statistics().processes_evicted, 1u);
  EXPECT_EQ(tables_->statistics().files_evicted, 1u);

  // It comes back, and the second is idle.
  Poll({a, c}, 2);
  EXPECT_EQ(ListOf(a), Lists::kWithoutTable);
  std::this_thread::sleep_for(kIdle);
  Poll({a, c}, 3);
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_EQ(ListOf(b), Lists::kNone);
  EXPECT_EQ(ListOf(c), Lists::kRight);
  EXPECT_EQ(tables_->statistics().processes_evicted, 2u);
  EXPECT_EQ(tables_->statistics().files_refused, 2u);
}

// What no stack leads into is neither opened nor built. Once one does, all who
// map it get its table.
TEST_F(UnwindTablesTest, BuildsWhatStacksLeadInto) {
  const ProcessId a = Start(1);
  const ProcessId b = {.pid = a.pid, .exec_count = 0, .start_ns = 2};
  tables_->Update({.id = b, .mappings = {mappings_of_[1]}});
  Start(3);
  for (int i = 0; i < 3; ++i) {
    tables_->Build(seconds(20), SteadyClock::now() + seconds(20));
    EXPECT_FALSE(tables_->IsBuilding());
  }
  EXPECT_EQ(tables_->statistics().files, 0u);
  EXPECT_EQ(tables_->statistics().milliseconds, 0);

  EXPECT_FALSE(tables_->CodeOf(a.pid, mappings_of_[1]));  // to come
  Poll({});
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_EQ(ListOf(b), Lists::kRight);
  EXPECT_EQ(tables_->statistics().files, 1u);
  const auto code = tables_->CodeOf(a.pid, mappings_of_[1]);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->kind, ksym::CodeAt::Kind::kTable);
}

// All files of a process whose stacks could not be followed are built, and of
// no other.
TEST_F(UnwindTablesTest, BuildsAllOfAProcess) {
  const ProcessId a = Start(1);
  const ProcessId b = Start(2);
  Start(3);
  tables_->Update({.id = a, .mappings = {mappings_of_[1], mappings_of_[2]}});
  tables_->WantAll({.pid = a.pid, .exec_count = 0, .start_ns = 4});  // unknown
  Poll({});
  EXPECT_EQ(tables_->statistics().files, 0u);
  tables_->WantAll(a);
  Poll({});
  EXPECT_EQ(tables_->statistics().files, 2u);
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_EQ(ListOf(b), Lists::kRight);
}

// What was placed for one process is published for the others that map it, also
// while they wait for something else.
TEST_F(UnwindTablesTest, PublishesWhatWasPlacedForOthers) {
  const ProcessId a = Start(1);
  const ProcessId b = Start(2);
  ksym::Mapping missing = Missing();
  tables_->Update(
      {.id = b, .mappings = {mappings_of_[1], mappings_of_[2], missing}});
  tables_->CodeOf(b.pid, mappings_of_[2]);
  tables_->CodeOf(b.pid, missing);
  Poll({b}, 2);
  EXPECT_EQ(ListOf(b), Lists::kRight);
  EXPECT_LT(CoveredBy(b), 2 * table_.size);
  Poll({a, a, a});
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_GE(CoveredBy(b), 2 * table_.size);
}

// A process whose list has no room gets it when others are not sampled any
// more.
TEST_F(UnwindTablesTest, FindsRoomForLists) {
  const ProcessId first = Start(1);
  std::vector<ProcessId> all = {first};
  for (uint32_t i = 1; i < kSizes.processes + 4; ++i) {
    ProcessId id = first;
    id.exec_count = i;
    tables_->Update({.id = id, .mappings = {mappings_of_[1]}});
    tables_->NoteSample(id, SteadyClock::now());
    all.push_back(id);
  }
  Poll(all, 3);
  std::vector<ProcessId> without;
  for (const ProcessId& id : all) {
    if (ListOf(id) != Lists::kRight) without.push_back(id);
  }
  ASSERT_EQ(without.size(), 4u);
  EXPECT_GE(tables_->statistics().processes_refused, 4u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);

  std::this_thread::sleep_for(kIdle);
  Poll(without, 10);
  for (const ProcessId& id : without) EXPECT_EQ(ListOf(id), Lists::kRight);
  EXPECT_EQ(tables_->statistics().processes_evicted, 4u);
}

// A table that finds no room is told of once, with its file and whom to ask.
TEST_F(UnwindTablesTest, TellsWhichFileFindsNoRoom) {
  const std::vector<ProcessId> all = {Start(1), Start(2), Start(3)};
  Poll(all, 3);
  ASSERT_EQ(tables_->statistics().files_refused > 0, true);
  const std::vector<std::string> warnings = tables_->TakeWarnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find(directory_ + "/"), std::string::npos);
  EXPECT_NE(warnings[0].find("(of user " + std::to_string(::getuid()) + ")"),
            std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[0].find("no room"), std::string::npos) << warnings[0];
  Poll(all, 3);
  EXPECT_TRUE(tables_->TakeWarnings().empty());
}

// A process that ended leaves its room at once.
TEST_F(UnwindTablesTest, UsesTheRoomOfWhoIsGone) {
  const ProcessId a = Start(1);
  const ProcessId b = Start(2);
  const ProcessId c = Start(3);
  Poll({a, b}, 1);
  tables_->Forget(a);
  Poll({b, c}, 3);
  std::this_thread::sleep_for(kIdle);
  Poll({b, c}, 3);
  EXPECT_EQ(ListOf(a), Lists::kNone);
  EXPECT_EQ(ListOf(b), Lists::kRight);
  EXPECT_EQ(ListOf(c), Lists::kRight);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);
}

// Shards are made meanwhile, as many as the pieces need, and then the sampler
// finds them; beyond the most that there may be nothing is waited for.
TEST_F(UnwindTablesTest, MakesRoomElsewhere) {
  constexpr uint32_t kShards = 3;
  const ksym::UniqueFd shards = CreateShards(kShards);
  ASSERT_TRUE(shards.valid());
  KernelUnwindMaps maps({.processes = processes_.get(),
                         .mappings = mappings_.get(),
                         .shards = shards.get()},
                        {.processes = 16, .mappings = 64, .shards = kShards});
  const std::vector<uint32_t> slots = {UNWIND_SHARD_SLOTS, UNWIND_SHARD_SLOTS,
                                       UNWIND_SHARD_SLOTS / 2};
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  while (!maps.PrepareRoom(slots)) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (uint32_t i = 0; i < kShards; ++i) {
    uint32_t id = 0;
    EXPECT_EQ(bpf_map_lookup_elem(shards.get(), &i, &id), 0) << i;
  }
  for (uint32_t i = 0; i < kShards; ++i) {
    UnwindPiece piece;
    piece.index.resize(slots[i]);
    const auto place = maps.Add(piece);
    ASSERT_TRUE(place && *place);
    EXPECT_EQ((*place)->shard, i);
  }
  EXPECT_TRUE(maps.PrepareRoom(slots));
}

}  // namespace
}  // namespace profd
