// SPDX-License-Identifier: Apache-2.0
// Which file a mapping is of and how UnwindTables comes by it: mount
// namespaces, file systems that may not answer, memory of the kernel. Over
// files and a clock that are ours: no root, no waiting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/unwind/table_policy_fixture.h"

namespace profd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kUser = 1000;

// Where a file's numbers may be another's, and a user could have made it, each
// mount namespace has its own.
class MountsTest : public TablePolicyFixture {
 protected:
  MountsTest() {
    owner_of_ambiguous_ = {{7, kUser}};
    mounts_ = {{1, 10}, {2, 20}, {3, 10}, {4, 30}};
  }

  uint32_t FirstSlotOf(const ProcessId& id) const {
    return maps_->lists.at(id).at(0).index;
  }
};

TEST_F(MountsTest, KeepsNamespacesApart) {
  const ProcessId a = Start(1, {7});
  const ProcessId b = Start(2, {7});
  tables_->WantAll(a);
  Pass(2);
  EXPECT_EQ(TablesOf(a), 1u);
  EXPECT_EQ(TablesOf(b), 1u);
  EXPECT_EQ(queue_->added, 2);
  EXPECT_NE(FirstSlotOf(a), FirstSlotOf(b));
  // A later process takes the file of its namespace, or makes one.
  const ProcessId c = Start(3, {7});
  const ProcessId d = Start(4, {7});
  tables_->WantAll(d);
  Pass(2);
  EXPECT_EQ(queue_->added, 3);
  EXPECT_EQ(FirstSlotOf(c), FirstSlotOf(a));
  EXPECT_EQ(TablesOf(d), 1u);
  EXPECT_NE(FirstSlotOf(d), FirstSlotOf(a));
  EXPECT_EQ(tables_->statistics().files_failed, 0u);
}

// A file that only root can have made is for all who map its numbers, and so
// is one whose numbers no other file has.
TEST_F(MountsTest, SharesWhatNoUserMade) {
  owner_of_ambiguous_[7] = 0;
  const ProcessId a = Start(1, {7, 8});
  const ProcessId b = Start(2, {7, 8});
  tables_->WantAll(a);
  Pass();
  EXPECT_EQ(TablesOf(a), 2u);
  EXPECT_EQ(TablesOf(b), 2u);
  EXPECT_EQ(queue_->added, 2);
}

// It stays for all when others are apart.
TEST_F(MountsTest, SharesBesideWhatIsApart) {
  const ProcessId a = Start(1, {7, 8});
  const ProcessId b = Start(2, {7, 8});
  tables_->WantAll(a);
  Pass(2);
  EXPECT_EQ(TablesOf(b), 2u);
  const ProcessId c = Start(4, {8});
  Pass();
  EXPECT_EQ(TablesOf(c), 1u);
  EXPECT_EQ(queue_->added, 3);  // 7 twice, 8 once
  EXPECT_EQ(TablesOf(a), 2u);
}

// A process whose namespace is not to be seen has no file that it could be
// sure of.
TEST_F(MountsTest, GivesNothingWithoutANamespace) {
  mounts_[1] = 0;
  const ProcessId a = Start(1, {7});
  tables_->WantAll(a);
  Pass(20);
  EXPECT_EQ(TablesOf(a), 0u);
  EXPECT_EQ(queue_->added, 0);
  EXPECT_EQ(tables_->statistics().files_failed, 1u);
}

// What was opened is not used again when nobody of the namespace has it any
// more: the namespace's number may be another's by then.
TEST_F(MountsTest, OpensAnewForANewNamespaceOfTheNumber) {
  const ProcessId a = Start(1, {7});
  tables_->WantAll(a);
  Pass(2);
  EXPECT_EQ(queue_->added, 1);
  tables_->Forget(a);
  const ProcessId c = Start(3, {7});
  tables_->WantAll(c);
  Pass(2);
  EXPECT_EQ(TablesOf(c), 1u);
  EXPECT_EQ(queue_->added, 2);
}

// One whose table is being built meanwhile is left alone, and the process goes
// without until it is done.
TEST_F(MountsTest, LeavesAFileThatIsBeingBuilt) {
  queue_->is_busy = true;
  const ProcessId a = Start(1, {7});
  tables_->WantAll(a);
  Pass(2);
  EXPECT_EQ(queue_->added, 1);
  tables_->Forget(a);
  const ProcessId c = Start(3, {7});
  tables_->WantAll(c);
  queue_->is_busy = false;
  Pass(3);
  EXPECT_EQ(TablesOf(c), 1u);
}

// Files of a file system that may not answer.
class RemoteTest : public TablePolicyFixture {
 protected:
  RemoteTest() { remote_ = {7}; }

  void Arrive(uint64_t id) { opener_->done.emplace(id, FileOf(7)); }
  void FailToArrive(uint64_t id) {
    opener_->done.emplace(id, ksym::FailErrno(ETIMEDOUT, "no answer"));
  }
};

// A stack waits a tenth of a second for it and then goes without; the table
// serves when it comes after all.
TEST_F(RemoteTest, WaitsForAWhile) {
  const ProcessId a = Start(1, {7});
  EXPECT_EQ(HasRows(1, MappingOf(7)), std::nullopt);
  EXPECT_THAT(opener_->pids, ElementsAre(1u));
  EXPECT_TRUE(tables_->IsBuilding());
  now_ += milliseconds(100);
  EXPECT_EQ(HasRows(1, MappingOf(7)), std::nullopt);
  now_ += milliseconds(1);
  EXPECT_EQ(HasRows(1, MappingOf(7)), false);
  EXPECT_FALSE(tables_->IsBuilding());  // nothing that a caller could hurry for
  Pass();
  EXPECT_THAT(opener_->pids, SizeIs(1));  // it is asked for once
  EXPECT_GT(opener_->sweeps, 0);

  Arrive(1);
  EXPECT_EQ(HasRows(1, MappingOf(7)), std::nullopt);  // now it is being built
  EXPECT_EQ(queue_->added, 1);
  Pass();
  EXPECT_EQ(TablesOf(a), 1u);
  EXPECT_EQ(HasRows(1, MappingOf(7)), true);
}

// The time that a caller waits is spent where something can come from.
TEST_F(RemoteTest, WaitsWhereSomethingComesFrom) {
  Start(1, {7, 8});
  HasRows(1, MappingOf(7));
  tables_->WaitForTable(milliseconds(1));
  EXPECT_EQ(opener_->waits, 1);
  EXPECT_EQ(queue_->waits, 0);
  HasRows(1, MappingOf(8));
  tables_->WaitForTable(milliseconds(1));
  EXPECT_EQ(opener_->waits, 1);
  EXPECT_EQ(queue_->waits, 1);
}

// One that fails is tried again in the next rounds, and counts as failed when
// it did so often.
TEST_F(RemoteTest, TriesAgain) {
  const ProcessId a = Start(1, {7});
  tables_->WantAll(a);
  for (uint64_t id = 1; id <= TableFileState::kMaxFailures; ++id) {
    EXPECT_EQ(tables_->statistics().files_failed, 0u) << id;
    while (opener_->pids.size() < id) Pass();
    FailToArrive(id);
    Pass();
  }
  EXPECT_EQ(tables_->statistics().files_failed, 1u);
  EXPECT_EQ(TablesOf(a), 0u);
}

// One that was given up and comes after all, because a stack asked for it, is
// used at once: that is what it was refused for.
TEST_F(RemoteTest, TakesBackAFailureThatWasNone) {
  const ProcessId a = Start(1, {7});
  tables_->WantAll(a);
  for (uint64_t id = 1; tables_->statistics().files_failed == 0; ++id) {
    while (opener_->pids.size() < id) Pass();
    FailToArrive(id);
    Pass();
  }
  const size_t tried = opener_->pids.size();
  HasRows(1, MappingOf(7));
  ASSERT_EQ(opener_->pids.size(), tried + 1);
  Arrive(tried + 1);
  Pass();
  EXPECT_EQ(TablesOf(a), 1u);
}

// A file that turns out to be one namespace's serves nobody else, though it
// came from elsewhere.
TEST_F(RemoteTest, KeepsNamespacesApart) {
  owner_of_ambiguous_ = {{7, kUser}};
  mounts_ = {{1, 10}};
  const ProcessId a = Start(1, {7});
  HasRows(1, MappingOf(7));
  Arrive(1);
  Pass();
  ASSERT_THAT(opener_->pids, SizeIs(2));  // now as the namespace's own
  EXPECT_EQ(queue_->added, 0);
  Arrive(2);
  Pass();
  EXPECT_EQ(TablesOf(a), 1u);
}

// Without an opener such a file cannot be opened.
TEST_F(RemoteTest, NeedsAnOpener) {
  opener_ = nullptr;
  Make({});
  const ProcessId a = Start(1, {7});
  EXPECT_EQ(HasRows(1, MappingOf(7)), false);
  tables_->WantAll(a);
  Pass(20);
  EXPECT_EQ(tables_->statistics().files_failed, 1u);
  EXPECT_EQ(TablesOf(a), 0u);
}

using MappingsTest = TablePolicyFixture;

// The kernel's own code in each process is read from memory; other memory that
// is no file's has no table.
TEST_F(MappingsTest, ReadsTheVdsoFromMemory) {
  ksym::Mapping vdso = MappingOf(7);
  vdso.inode = 0;
  vdso.path = "[vdso]";
  ksym::Mapping heap = MappingOf(9);
  heap.inode = 0;
  heap.path = "[heap]";
  const ProcessId a = StartWith(1, {vdso, heap});
  const ProcessId b = StartWith(2, {vdso});
  EXPECT_EQ(HasRows(1, vdso), std::nullopt);
  EXPECT_EQ(HasRows(1, heap), false);
  Pass();
  EXPECT_EQ(TablesOf(a), 1u);
  EXPECT_EQ(TablesOf(b), 1u);
  EXPECT_EQ(holds_, 0);
  EXPECT_EQ(queue_->added, 1);
}

// An overlay numbers the files of each of its layers: there a path makes the
// difference. On a device it makes none.
TEST_F(MappingsTest, TellsLayersApartByPath) {
  ksym::Mapping lower = MappingOf(7);
  lower.device_major = 0;
  ksym::Mapping upper = lower;
  upper.path = "/lib/other";
  upper.start = lower.end;
  upper.end = upper.start + kCodeBytes;
  ksym::Mapping disk = MappingOf(20);
  ksym::Mapping renamed = disk;
  renamed.path = "/lib/renamed";
  const ProcessId a = StartWith(1, {lower, upper, disk});
  const ProcessId b = StartWith(2, {renamed});
  tables_->WantAll(a);
  Pass();
  EXPECT_EQ(TablesOf(a), 3u);
  EXPECT_EQ(TablesOf(b), 1u);
  EXPECT_EQ(queue_->added, 3);
}

}  // namespace
}  // namespace profd
