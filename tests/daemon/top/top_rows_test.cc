// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/top_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace profd {
namespace {

using enum ThreadState;

constexpr uint64_t kMs = 1'000'000;

// CPU time at 100 Hz, and waits.
class TopRowsTest : public testing::Test {
 protected:
  using Frames = std::vector<std::pair<std::string_view, const FrameKind*>>;
  struct Sample {
    std::string_view comm = "app";
    uint32_t tid = 1;
    SampleKindId kind = 0;  // 0 running, 1 runnable, 2 blocked
    Frames user = {};       // leaf first
    Frames kernel = {};
    uint64_t count = 1;
    uint64_t value = 0;
  };

  void Add(const Sample& sample) {
    builder_.AddSample({.comm = builder_.Intern(sample.comm),
                        .pid = 7,
                        .tid = sample.tid,
                        .kind = sample.kind,
                        .user = Stack(sample.user),
                        .kernel = Stack(sample.kernel),
                        .count = sample.count,
                        .value = sample.value});
  }

  Profile Finish() {
    CaptureMetadata metadata;
    metadata.kinds = WaitKinds("sched_switch", 100);
    metadata.kinds.insert(metadata.kinds.begin(),
                          EventKind("cpu-clock", 100, 0));
    metadata.duration_ns = 1000 * kMs;
    metadata.cpus = "0-3";
    return std::move(builder_).Finish(std::move(metadata));
  }

  static const TopRow& Find(const std::vector<TopRow>& rows,
                            std::string_view name) {
    static const TopRow kNone;
    const auto found = std::ranges::find(rows, name, &TopRow::name);
    EXPECT_NE(found, rows.end()) << name;
    return found == rows.end() ? kNone : *found;
  }

 private:
  CallStackId Stack(const Frames& frames) {
    std::vector<FrameId> ids;
    for (const auto& [name, kind] : frames) {
      ids.push_back(
          builder_.AddFrame({.name = builder_.Intern(name), .kind = kind}));
    }
    return builder_.AddStack(ids);
  }

  ProfileBuilder builder_;
};

// A running sample is the innermost function's own, once in the total of all
// others, and its time that of a CPU.
TEST_F(TopRowsTest, AddsUpWhatRuns) {
  Add({.user = {{"fib", &kUserFrame},
                {"fib", &kUserFrame},
                {"main", &kUserFrame}},
       .count = 20});
  Add({.user = {{"fib", &kUserFrame}, {"main", &kUserFrame}},
       .kernel = {{"vfs_read", &kKernelFrame}},
       .count = 3});
  const TopTables tables = MakeTopTables(Finish());
  EXPECT_EQ(Find(tables.functions, "fib").self[kRunning], 200 * kMs);
  EXPECT_EQ(Find(tables.functions, "fib").total[kRunning], 230 * kMs);
  EXPECT_EQ(Find(tables.functions, "main").self[kRunning], 0u);
  EXPECT_EQ(Find(tables.functions, "main").total[kRunning], 230 * kMs);
  EXPECT_EQ(Find(tables.functions, "vfs_read").self[kRunning], 30 * kMs);
  EXPECT_EQ(tables.sum[kRunning], 230 * kMs);
  EXPECT_EQ(tables.cpus, 4u);
}

// A wait is the user's innermost function's own, and the reason's where there
// is no user code: within the kernel all are in the scheduler.
TEST_F(TopRowsTest, WaitsAreTheUsersFunctions) {
  Add({.kind = 2,
       .user = {{"read", &kUserFrame}, {"main", &kUserFrame}},
       .kernel = {{"schedule", &kKernelFrame},
                  {"[blocked: read]", &kWaitFrame}},
       .value = 500 * kMs});
  Add({.comm = "kworker",
       .tid = 2,
       .kind = 2,
       .kernel = {{"schedule", &kKernelFrame},
                  {"[blocked: kernel thread]", &kWaitFrame}},
       .value = 400 * kMs});
  Add({.kind = 1,
       .user = {{"main", &kUserFrame}},
       .kernel = {{"[runnable: preempted]", &kWaitFrame}},
       .value = 30 * kMs});
  const TopTables tables = MakeTopTables(Finish());
  EXPECT_EQ(Find(tables.functions, "read").self[kBlocked], 500 * kMs);
  EXPECT_EQ(Find(tables.functions, "main").total[kBlocked], 500 * kMs);
  EXPECT_EQ(Find(tables.functions, "main").self[kRunnable], 30 * kMs);
  EXPECT_EQ(Find(tables.functions, "schedule").self.sum(), 0u);
  EXPECT_EQ(Find(tables.functions, "schedule").total[kBlocked], 900 * kMs);
  EXPECT_EQ(Find(tables.functions, "[blocked: kernel thread]").self[kBlocked],
            400 * kMs);
}

// Commands and threads have the sums of their samples, a thread the function
// where most of its time is, and a sample without a stack is not lost.
TEST_F(TopRowsTest, AddsUpThreadsAndCommands) {
  Add({.tid = 1, .user = {{"Work", &kUserFrame}}, .count = 10});
  Add({.tid = 2, .user = {{"Rest", &kUserFrame}}, .count = 2});
  Add({.tid = 2, .user = {{"Work", &kUserFrame}}, .count = 3});
  Add({.comm = "other", .tid = 3, .count = 1});
  const TopTables tables = MakeTopTables(Finish());
  EXPECT_EQ(Find(tables.commands, "app").total[kRunning], 150 * kMs);
  EXPECT_EQ(Find(tables.commands, "app").threads, 2u);
  EXPECT_EQ(Find(tables.commands, "other").threads, 1u);
  ASSERT_EQ(tables.threads.size(), 3u);
  const auto second = std::ranges::find(tables.threads, 2u, &TopRow::tid);
  EXPECT_EQ(second->pid, 7u);
  EXPECT_EQ(second->place, "Work");
  EXPECT_EQ(Find(tables.functions, "[no stack]").self[kRunning], 10 * kMs);
  uint64_t self = 0;
  for (const TopRow& row : tables.functions) self += row.self.sum();
  EXPECT_EQ(self, tables.sum.sum());
}

// A thread that waits at one place all the time is parked, one that runs in
// between is not; the parked one's time has a function and a state of its own.
TEST_F(TopRowsTest, KeepsParkedTimeApart) {
  const Frames wait = {{"futex_wait", &kKernelFrame},
                       {"[blocked: futex]", &kWaitFrame}};
  Add({.tid = 1,
       .kind = 2,
       .user = {{"Idle", &kUserFrame}},
       .kernel = wait,
       .value = 990 * kMs});
  Add({.tid = 2,
       .kind = 2,
       .user = {{"Idle", &kUserFrame}},
       .kernel = wait,
       .value = 700 * kMs});
  Add({.tid = 2, .user = {{"Work", &kUserFrame}}, .count = 30});
  Profile profile = Finish();
  EXPECT_EQ(LivesInSamples(profile),
            (std::vector<ThreadLife>{{.pid = 7, .tid = 1, .ns = 990 * kMs},
                                     {.pid = 7, .tid = 2, .ns = 1000 * kMs}}));
  MarkParked(LivesInSamples(profile), profile);
  const TopTables tables = MakeTopTables(profile);
  EXPECT_EQ(tables.sum[kParked], 990 * kMs);
  EXPECT_EQ(tables.sum[kBlocked], 700 * kMs);
  EXPECT_EQ(Find(tables.functions, "[parked]").self[kParked], 990 * kMs);
  EXPECT_EQ(Find(tables.functions, "Idle").total.sum(), 700 * kMs);
  EXPECT_EQ(Find(tables.commands, "app").total[kParked], 990 * kMs);
}

// A name cannot reach the terminal as a command.
TEST_F(TopRowsTest, NamesArePrintable) {
  Add({.comm = "\x1b[2J", .user = {{"\x1b]0;x\a", &kUserFrame}}});
  const TopTables tables = MakeTopTables(Finish());
  EXPECT_EQ(tables.commands.front().name, "?[2J");
  EXPECT_EQ(tables.functions.front().name, "?]0;x?");
  EXPECT_EQ(tables.threads.front().place, "?]0;x?");
}

}  // namespace
}  // namespace profd
