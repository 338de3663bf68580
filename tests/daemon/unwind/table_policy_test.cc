// SPDX-License-Identifier: Apache-2.0
// The policy of UnwindTables over maps, a queue, files and a clock that are
// ours: no root, no waiting.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/steady_clock.h"
#include "daemon/unwind/unwind_tables.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

using ksym::ProcessId;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kCodeBytes = 1 << 16;
constexpr uint64_t kSlotsOfAFile = 1000;  // with its index, about

// Maps with room for so many slots and lists.
class FakeMaps final : public UnwindMaps {
 public:
  uint64_t max_slots() const override { return most_slots; }
  uint32_t max_entries() const override { return 1000; }
  ksym::Result<std::optional<Place>> Add(const UnwindPiece& piece) override {
    if (fails) return ksym::Fail(ksym::ErrorCode::kIo, "no memory");
    if (used + piece.slots() > most_slots) return std::nullopt;
    used += piece.slots();
    return Place{.count = static_cast<uint32_t>(piece.slots())};
  }
  void FreeSlots(const Place& place) override { freed += place.count; }
  void AddShards(size_t /*count*/) override {}
  ksym::Result<bool> Publish(
      const ProcessId& process,
      std::span<const unwind_mapping> mappings) override {
    if (!lists.contains(process) && lists.size() >= most_lists) return false;
    lists[process].assign(mappings.begin(), mappings.end());
    ++published;
    return true;
  }
  void Withdraw(const ProcessId& process) override { lists.erase(process); }
  void Recycle() override { used -= std::exchange(freed, 0); }

  uint64_t most_slots = 10 * kSlotsOfAFile;
  size_t most_lists = 100;
  bool fails = false;
  uint64_t used = 0;
  uint64_t freed = 0;  // to be used after Recycle()
  std::map<ProcessId, std::vector<unwind_mapping>> lists;
  int published = 0;
};

// Makes tables of the same size when it is told to.
class FakeQueue final : public TableQueue {
 public:
  void Add(Job job) override {
    asked[job.id] = job.wanted;
    ++added;
  }
  void Want(uint64_t id, uint64_t wanted) override {
    asked[id] = std::max(asked[id], wanted);
  }
  std::vector<Result> Take() override {
    std::vector<Result> results;
    if (is_busy) return results;
    for (const auto& [id, wanted] : std::exchange(asked, {})) {
      results.push_back({.id = id, .table = Table()});
    }
    return results;
  }
  void Wait(SteadyClock::duration /*time*/) override { is_busy = false; }
  SteadyClock::duration busy() const override { return {}; }

  BuiltTable Table() const {
    if (is_refusing) return {.rows = nullptr, .code = {}, .pieces = {}};
    auto rows = std::make_shared<ksym::UnwindTable>();
    rows->size = kCodeBytes;
    for (uint32_t i = 0; i < kSlotsOfAFile - 100; ++i) {
      rows->rows.push_back({.pc = 16 * i, .cfa_offset = 1});
    }
    ksym::ElfSegment code;
    code.file_size = kCodeBytes;
    code.executable = true;
    return {.rows = std::move(rows), .code = {code}, .pieces = {}};
  }

  std::map<uint64_t, uint64_t> asked;
  int added = 0;
  bool is_busy = false;
  bool is_refusing = false;
};

class TablePolicyTest : public ::testing::Test {
 protected:
  TablePolicyTest() {
    auto maps = std::make_unique<FakeMaps>();
    auto queue = std::make_unique<FakeQueue>();
    maps_ = maps.get();
    queue_ = queue.get();
    tables_.emplace(UnwindTables::Parts{
        .maps = std::move(maps),
        .queue = std::move(queue),
        .opener = nullptr,
        .hold =
            [this](uint32_t pid, const ksym::Mapping& mapping) {
              return Hold(pid, mapping);
            },
        .now = [this] { return now_; }});
  }

  ksym::Result<ksym::OpenedFile> Hold(uint32_t pid,
                                      const ksym::Mapping& mapping) {
    ++holds_;
    if (missing_.contains(mapping.inode) || gone_.contains(pid)) {
      return ksym::Fail(ksym::ErrorCode::kNotFound, "gone");
    }
    ksym::OpenedFile file;
    file.fd = ksym::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    file.size = 1;
    file.mtime_ns = modified_[mapping.inode];
    file.is_only_one = true;
    return file;
  }

  static ksym::Mapping MappingOf(uint64_t inode) {
    ksym::Mapping mapping;
    mapping.start = ksym::Address{0x10000 * inode};
    mapping.end = mapping.start + kCodeBytes;
    mapping.device_major = 8;
    mapping.inode = inode;
    mapping.path = "/lib/" + std::to_string(inode);
    return mapping;
  }

  // A process that is sampled and maps those files.
  ProcessId Start(uint32_t pid, const std::vector<uint64_t>& inodes) {
    const ProcessId id = {.pid = pid, .exec_count = 0, .start_ns = pid};
    ksym::ProcessImage image;
    image.id = id;
    for (const uint64_t inode : inodes) {
      image.mappings.push_back(MappingOf(inode));
    }
    tables_->Update(image);
    tables_->NoteSample(id, now_);
    return id;
  }

  // What the capture does between two drains; what stacks wait for is asked
  // for.
  void Pass(int times = 1) {
    for (int i = 0; i < times; ++i) {
      now_ += milliseconds(100);
      tables_->Build(seconds(1), now_ + seconds(10));
      tables_->Build(seconds(1), now_ + seconds(10));
      tables_->Recycle();
    }
  }

  // The mappings of its list that have a table; nothing: it has no list.
  std::optional<size_t> TablesOf(const ProcessId& id) const {
    const auto list = maps_->lists.find(id);
    if (list == maps_->lists.end()) return std::nullopt;
    return static_cast<size_t>(
        std::ranges::count_if(list->second, [](const unwind_mapping& mapping) {
          return mapping.shard != UNWIND_NO_TABLE &&
                 mapping.shard != UNWIND_PENDING;
        }));
  }

  SteadyClock::time_point now_{seconds(1000)};
  std::set<uint64_t> missing_;  // inodes
  std::set<uint32_t> gone_;     // pids
  std::map<uint64_t, int64_t> modified_;
  int holds_ = 0;
  FakeMaps* maps_ = nullptr;
  FakeQueue* queue_ = nullptr;
  std::optional<UnwindTables> tables_;
};

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

// When slots end, who was not sampled for two seconds goes, and who is sampled
// does without: counted, and without a wrong list.
TEST_F(TablePolicyTest, EvictsTheIdle) {
  maps_->most_slots = 2 * kSlotsOfAFile;
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
  EXPECT_LE(maps_->used, maps_->most_slots);

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
  maps_->most_slots = kSlotsOfAFile / 4;
  const ProcessId b = Start(2, {8});
  tables_->WantAll(b);
  Pass(2);
  EXPECT_EQ(TablesOf(a), 1u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);
  EXPECT_EQ(tables_->statistics().files_refused, 1u);
}

// Who finds no room for a list has none, and gets one when another is idle.
TEST_F(TablePolicyTest, FindsRoomForLists) {
  maps_->most_lists = 1;
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
  tables_->Expect(1, mappings);
  EXPECT_EQ(queue_->asked.size(), ExpectedTables::kMostFiles);
  for (const auto& [id, wanted] : queue_->asked) EXPECT_EQ(wanted, 0u);
  EXPECT_FALSE(tables_->IsBuilding());
  // Now a stack waits for one of them.
  EXPECT_FALSE(tables_->CodeOf(1, MappingOf(1)));
  EXPECT_TRUE(tables_->IsBuilding());
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
  maps_->fails = true;
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
