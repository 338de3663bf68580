// SPDX-License-Identifier: Apache-2.0
// What UnwindTables does where time, room or memory end, and while something is
// being built. Over maps, a queue, files and a clock that are ours: no root, no
// waiting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "tests/daemon/unwind/table_policy_fixture.h"

namespace profd {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kRowBytes = kRowsOfAFile * sizeof(ksym::UnwindRow);
constexpr auto kNoDeadline = SteadyClock::time_point::max();

using RowsTest = TablePolicyFixture;

// Rows serve copied stacks. Beyond the bound those that were not used for
// longest go; the table in the maps stays, and they are built again on demand.
TEST_F(RowsTest, DropsTheLongestUnused) {
  Make({.row_bytes = 2 * kRowBytes});
  const ProcessId a = Start(1, {1, 2, 3});
  for (const uint64_t inode : {2, 3, 1}) {
    HasRows(1, MappingOf(inode));
    Pass();
    now_ += seconds(1);
  }
  EXPECT_EQ(TablesOf(a), 3u);
  EXPECT_EQ(queue_->added, 3);
  EXPECT_EQ(HasRows(1, MappingOf(3)), true);
  EXPECT_EQ(HasRows(1, MappingOf(1)), true);
  EXPECT_EQ(HasRows(1, MappingOf(2)), std::nullopt);
  EXPECT_EQ(queue_->added, 4);
  tables_->WaitForTable(milliseconds(1));
  EXPECT_EQ(HasRows(1, MappingOf(2)), true);
  EXPECT_EQ(TablesOf(a), 3u);
  EXPECT_EQ(tables_->statistics().files, 3u);  // none was placed twice
}

// Rows that wait for a place are not dropped, or they would be built for ever.
TEST_F(RowsTest, KeepsWhatHasNoPlaceYet) {
  Make({.row_bytes = 1});
  const ProcessId a = Start(1, {7});
  HasRows(1, MappingOf(7));
  tables_->WaitForTable(milliseconds(1));
  tables_->Recycle();
  Pass();
  EXPECT_EQ(TablesOf(a), 1u);
  EXPECT_EQ(queue_->added, 1);
}

// A file that has its place and whose rows cannot be built again keeps the
// place; copied stacks go without, and nobody asks again and again.
TEST_F(RowsTest, KeepsAPlaceWithoutRows) {
  Make({.row_bytes = 1});
  const ProcessId a = Start(1, {7});
  HasRows(1, MappingOf(7));
  Pass();
  queue_->is_refusing = true;
  EXPECT_EQ(HasRows(1, MappingOf(7)), std::nullopt);
  Pass();
  EXPECT_EQ(HasRows(1, MappingOf(7)), false);
  Pass(3);
  EXPECT_EQ(queue_->added, 2);
  EXPECT_EQ(TablesOf(a), 1u);
}

using FilesTest = TablePolicyFixture;

// Anybody can map any number of files: those beyond the bound have no table,
// and those that are known serve on.
TEST_F(FilesTest, KnowsSoMany) {
  Make({.files = 3});
  const ProcessId a = Start(1, {1, 2, 3, 4});
  tables_->WantAll(a);
  Pass();
  EXPECT_EQ(TablesOf(a), 3u);
  EXPECT_EQ(HasRows(1, MappingOf(4)), false);
  EXPECT_EQ(HasRows(1, MappingOf(3)), true);
  const ProcessId b = Start(2, {2});
  Pass();
  EXPECT_EQ(TablesOf(b), 1u);
  // There is room when those that nobody maps are forgotten.
  tables_->Forget(a);
  now_ += seconds(31);
  Pass();
  const ProcessId c = Start(3, {4});
  tables_->WantAll(c);
  Pass();
  EXPECT_EQ(TablesOf(c), 1u);
}

// A file of one namespace needs room as well.
TEST_F(FilesTest, HasNoRoomForOneOfItsOwn) {
  Make({.files = 1});
  owner_of_ambiguous_ = {{7, 1000}};
  const ProcessId a = Start(1, {7});
  tables_->WantAll(a);
  Pass(3);
  EXPECT_EQ(queue_->added, 0);
  EXPECT_EQ(TablesOf(a), std::nullopt);
}

using ListsTest = TablePolicyFixture;

// A list that the kernel refuses is withdrawn, as an old one would be wrong by
// now, told once and tried again; nobody has to go for it.
TEST_F(ListsTest, WithdrawsWhatCannotBeWritten) {
  const ProcessId idle = Start(9, {9});
  const ProcessId a = Start(1, {7, 8});
  tables_->WantAll(idle);
  HasRows(1, MappingOf(7));
  Pass();
  ASSERT_EQ(TablesOf(a), 1u);
  now_ += seconds(5);
  tables_->NoteSample(a, now_);
  maps_->publishing_fails = true;
  tables_->WantAll(a);
  Pass(3);
  EXPECT_EQ(TablesOf(a), std::nullopt);
  EXPECT_GE(tables_->statistics().processes_refused, 1u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);
  const auto warnings = tables_->TakeWarnings();
  EXPECT_EQ(std::ranges::count_if(
                warnings, [](const auto& w) { return w.ends_with("no list"); }),
            1);
  maps_->publishing_fails = false;
  now_ += seconds(3);
  tables_->NoteSample(a, now_);
  Pass(2);
  EXPECT_EQ(TablesOf(a), 2u);
}

// A list that is longer than all room is refused without anybody going.
TEST_F(ListsTest, EvictsNobodyForAListThatNeverFits) {
  maps_->entry_limit = 4;
  const ProcessId idle = Start(9, {9});
  tables_->WantAll(idle);
  Pass();
  now_ += seconds(5);
  const ProcessId a = Start(1, {1, 2, 3, 4, 5});
  tables_->WantAll(a);
  Pass(2);
  EXPECT_EQ(TablesOf(a), std::nullopt);
  EXPECT_EQ(TablesOf(idle), 1u);
  EXPECT_EQ(tables_->statistics().processes_refused, 1u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);
}

// Between two grace periods so many processes go for others' lists: what they
// had is no room before.
TEST_F(ListsTest, EvictsSoManyAtOnce) {
  maps_->list_limit = 20;
  for (uint32_t pid = 1; pid <= 20; ++pid) tables_->WantAll(Start(pid, {7}));
  Pass();
  ASSERT_THAT(maps_->lists, SizeIs(20));
  now_ += seconds(5);
  for (uint32_t pid = 101; pid <= 120; ++pid) Start(pid, {7});
  tables_->Build(seconds(1), kNoDeadline);
  EXPECT_EQ(tables_->statistics().processes_evicted, 16u);
  EXPECT_EQ(tables_->statistics().processes_refused, 20u);
  EXPECT_THAT(maps_->lists, SizeIs(4));
  // They have the room then, and the rest goes for the others.
  for (int i = 0; i < 3; ++i) {
    now_ += milliseconds(1);
    for (uint32_t pid = 101; pid <= 120; ++pid) {
      tables_->NoteSample(IdOf(pid), now_);
    }
    Pass();
  }
  EXPECT_EQ(tables_->statistics().processes_evicted, 20u);
  for (uint32_t pid = 101; pid <= 120; ++pid) {
    EXPECT_EQ(TablesOf(IdOf(pid)), 1u) << pid;
  }
}

class BudgetTest : public TablePolicyFixture {
 protected:
  // Has all tables built, and none placed.
  void BuildAll(const std::vector<ProcessId>& ids) {
    for (const ProcessId& id : ids) tables_->WantAll(id);
    queue_->is_busy = true;
    tables_->Build(seconds(1), kNoDeadline);
    tables_->WaitForTable(milliseconds(1));
    step_ = milliseconds(2);
  }
};

// When time is up the other tables of a list wait for the next time.
TEST_F(BudgetTest, EndsBetweenTwoFiles) {
  const ProcessId a = Start(1, {1, 2, 3});
  BuildAll({a});
  tables_->Build(milliseconds(5), kNoDeadline);
  EXPECT_EQ(tables_->statistics().files, 1u);
  tables_->Build(milliseconds(100), kNoDeadline);
  EXPECT_EQ(tables_->statistics().files, 3u);
  EXPECT_EQ(TablesOf(a), 3u);
}

// And so do the other lists; that of the process with the most samples is
// first.
TEST_F(BudgetTest, EndsBetweenTwoLists) {
  const ProcessId a = Start(1, {1});
  const ProcessId b = Start(2, {2});
  BuildAll({a, b});
  for (int i = 0; i < 10; ++i) tables_->NoteSample(b, now_);
  tables_->Build(milliseconds(3), kNoDeadline);
  EXPECT_EQ(TablesOf(b), 1u);
  EXPECT_EQ(TablesOf(a), std::nullopt);
  tables_->Build(milliseconds(3), kNoDeadline);
  EXPECT_EQ(TablesOf(a), 1u);
}

// The deadline ends it as well.
TEST_F(BudgetTest, EndsAtTheDeadline) {
  const ProcessId a = Start(1, {1});
  BuildAll({a});
  tables_->Build(seconds(1), now_);
  EXPECT_EQ(tables_->statistics().files, 0u);
  tables_->Build(seconds(1), kNoDeadline);
  EXPECT_EQ(TablesOf(a), 1u);
}

using JobsTest = TablePolicyFixture;

// A job that nobody waited for is hurried when a stack needs it; the others
// keep nobody waiting.
TEST_F(JobsTest, HurriesWhatWasExpected) {
  queue_->is_busy = true;
  tables_->Expect(1, {MappingOf(1), MappingOf(2)},
                  UnwindTables::Expected::kPerhaps);
  EXPECT_FALSE(tables_->IsBuilding());
  EXPECT_EQ(HasRows(1, MappingOf(1)), std::nullopt);
  EXPECT_EQ(queue_->added, 2);
  EXPECT_GT(queue_->asked[1], 0u);
  EXPECT_EQ(queue_->asked[2], 0u);
  EXPECT_TRUE(tables_->IsBuilding());
  EXPECT_EQ(HasRows(1, MappingOf(1)), std::nullopt);  // counts once
  EXPECT_TRUE(tables_->IsBuilding());
  // The second one alone keeps nobody waiting again, and no count is left over.
  queue_->is_busy = false;
  Pass();
  EXPECT_FALSE(tables_->IsBuilding());
  queue_->is_busy = true;
  HasRows(1, MappingOf(3));
  EXPECT_TRUE(tables_->IsBuilding());
}

// A process may end while its file's table is being built: the table is kept
// for the next one, as if it had been there before.
TEST_F(JobsTest, KeepsWhatIsBuiltForNobody) {
  queue_->is_busy = true;
  const ProcessId a = Start(1, {7});
  HasRows(1, MappingOf(7));
  tables_->Forget(a);
  now_ += seconds(31);
  Pass();  // it is not forgotten while it is being built
  queue_->is_busy = false;
  Pass();
  const ProcessId b = Start(2, {7});
  Pass();
  EXPECT_EQ(TablesOf(b), 1u);
  EXPECT_EQ(queue_->added, 1);
}

// The last process may be gone when the file is to be opened, and what is not
// known is forgotten without a trace.
TEST_F(JobsTest, ForgetsWhoWasNeverThere) {
  tables_->Forget(IdOf(1));
  tables_->NoteSample(IdOf(1), now_);
  tables_->WantAll(IdOf(1));
  Pass();
  EXPECT_THAT(maps_->lists, IsEmpty());
}

class RuntimesTest : public TablePolicyFixture {
 protected:
  RuntimesTest() {
    queue_->runtimes.cpython = ksym::CpythonInterpreter{};
    tables_->TellOfRuntimes({.of_file =
                                 [this](const TableFile& file) {
                                   files_.push_back(file.mapping.inode);
                                 },
                             .of_process =
                                 [this](const ProcessId& id, uint64_t load_bias,
                                        const ksym::FileRuntimes&) {
                                   told_.emplace_back(id.pid, load_bias);
                                 }});
  }

  std::vector<std::pair<uint32_t, uint64_t>> told_;
  std::vector<uint64_t> files_;  // by inode
};

// Processes that map an interpreter are told as soon as its file was read,
// before there is a place for its table, and later ones when they come.
TEST_F(RuntimesTest, AreToldAtOnce) {
  Start(1, {6, 7});
  Start(2, {7});
  Start(3, {8});
  HasRows(1, MappingOf(7));
  tables_->WaitForTable(milliseconds(1));
  EXPECT_EQ(tables_->statistics().files, 0u);
  EXPECT_THAT(told_, testing::ElementsAre(std::pair(1, 0x70000),
                                          std::pair(2, 0x70000)));
  EXPECT_THAT(files_, testing::ElementsAre(7));
  Start(4, {7});
  EXPECT_THAT(told_, SizeIs(3));
  EXPECT_THAT(told_, Contains(std::pair(4, 0x70000)));
  Pass();
  EXPECT_THAT(told_, SizeIs(3));
}

// They are found before the first sample, also while tables are being made.
TEST_F(RuntimesTest, AreFoundWhileTheirTablesAreMade) {
  constexpr const char* kPython = "/usr/bin/python3.11";
  if (::access(kPython, R_OK) != 0) GTEST_SKIP() << "no " << kPython;
  paths_ = {{7, kPython}, {8, kPython}};
  queue_->is_busy = true;
  tables_->Expect(1, {MappingOf(7)}, UnwindTables::Expected::kNow);
  ASSERT_EQ(queue_->added, 1);
  tables_->FindRuntimes(1, {MappingOf(7), MappingOf(8)}, now_ + seconds(1));
  EXPECT_THAT(files_, testing::ElementsAre(7, 8));
  // Once is enough.
  tables_->FindRuntimes(2, {MappingOf(7), MappingOf(8)}, now_ + seconds(1));
  EXPECT_THAT(files_, SizeIs(2));
}

// The sampler looks for interpreters only where a list says that there is one.
TEST_F(RuntimesTest, AreSaidOfLists) {
  tables_->WantAll(Start(1, {7}));
  Pass();
  queue_->runtimes.cpython.reset();
  tables_->WantAll(Start(2, {8}));
  Pass();
  tables_->WantAll(Start(3, {7, 8}));
  Pass();
  EXPECT_THAT(maps_->lists, SizeIs(3));
  EXPECT_THAT(maps_->with_runtime, testing::ElementsAre(IdOf(1), IdOf(3)));
}

// So they are where the interpreter's own table has no room.
TEST_F(RuntimesTest, AreSaidOfListsWithoutTheirTables) {
  queue_->runtimes.cpython.reset();
  tables_->WantAll(Start(1, {8}));
  Pass();
  ASSERT_THAT(maps_->lists, SizeIs(1));
  maps_->adds_that_work = 0;
  queue_->runtimes.cpython = ksym::CpythonInterpreter{};
  tables_->WantAll(Start(1, {7, 8}));
  Pass();
  EXPECT_THAT(maps_->with_runtime, testing::ElementsAre(IdOf(1)));
}

// A file that others may have under the same numbers is told of for its
// processes alone.
TEST_F(RuntimesTest, AreNotToldOfFilesOfOneMountNamespace) {
  owner_of_ambiguous_[7] = 1000;
  Start(1, {7});
  HasRows(1, MappingOf(7));
  tables_->WaitForTable(milliseconds(1));
  Pass();
  HasRows(1, MappingOf(7));
  tables_->WaitForTable(milliseconds(1));
  EXPECT_THAT(told_, testing::ElementsAre(std::pair(1, 0x70000)));
  EXPECT_THAT(files_, IsEmpty());
}

// Why an interpreter's frames are not known is told.
TEST_F(RuntimesTest, SayWhyTheyAreNotKnown) {
  queue_->runtimes.cpython.reset();
  queue_->runtimes.refusals = {{"Python", "version 3.2"}};
  tables_->WantAll(Start(1, {7}));
  Pass();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_THAT(tables_->TakeWarnings(),
              Contains(HasSubstr("/lib/7: version 3.2")));
}

}  // namespace
}  // namespace profd
