// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/own_priority.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

int Policy() { return ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; }
int Nice() { return ::getpriority(PRIO_PROCESS, 0); }

// Uses the CPU until the condition holds; false after ten seconds.
template <typename Condition>
bool SpinUntil(const Condition& holds) {
  const auto end = Clock::now() + std::chrono::seconds(10);
  while (Clock::now() < end) {
    if (holds()) return true;
  }
  return false;
}

// Each name that is printed is read back, and nothing else is.
TEST(OwnPriorityTest, NamesAreReadBack) {
  for (const auto priority : {OwnPriority::kAuto, OwnPriority::kRealtime,
                              OwnPriority::kNice, OwnPriority::kNormal}) {
    EXPECT_EQ(ParseOwnPriority(OwnPriorityName(priority)), priority);
  }
  EXPECT_FALSE(ParseOwnPriority(""));
  EXPECT_FALSE(ParseOwnPriority("Nice"));
}

// A thread that asks for nothing changes nothing.
TEST(OwnPriorityTest, NormalLeavesTheThreadAlone) {
  ASSERT_EQ(ChooseOwnPriority(OwnPriority::kNormal), OwnPriority::kNormal);
  const int policy = ::sched_getscheduler(0);
  PriorityShare share(
      {.at_once = milliseconds(100), .per_second = milliseconds(10)});
  share.Renew();
  EXPECT_EQ(::sched_getscheduler(0), policy);
}

class OwnPriorityKindTest : public testing::TestWithParam<OwnPriority> {
 protected:
  void SetUp() override {
    first_policy_ = Policy();
    first_nice_ = Nice();
    if (first_policy_ != SCHED_OTHER || first_nice_ < -10) {
      GTEST_SKIP() << "this test was started with a priority of its own";
    }
    if (ChooseOwnPriority(GetParam()) != GetParam()) {
      GTEST_SKIP() << "needs CAP_SYS_NICE";
    }
  }
  void TearDown() override { ChooseOwnPriority(OwnPriority::kNormal); }

  static bool IsRaised() {
    return GetParam() == OwnPriority::kRealtime ? Policy() == SCHED_FIFO
                                                : Nice() == -20;
  }
  bool IsAsBefore() const {
    return Policy() == first_policy_ && Nice() == first_nice_;
  }

 private:
  int first_policy_ = 0;
  int first_nice_ = 0;
};

// The priority is there as long as the share lives, and not in what the thread
// starts: neither threads nor processes.
TEST_P(OwnPriorityKindTest, IsTheThreadsAlone) {
  EXPECT_TRUE(IsAsBefore());
  {
    const PriorityShare share(
        {.at_once = milliseconds(500), .per_second = milliseconds(100)});
    EXPECT_TRUE(IsRaised());
    bool thread_is_raised = true;
    std::thread([&] { thread_is_raised = IsRaised(); }).join();
    EXPECT_FALSE(thread_is_raised);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(IsRaised() ? 1 : 0);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(IsAsBefore());
}

// A thread that never asks loses its priority when its allowance is used up,
// not before, and has it again when some of it is back.
TEST_P(OwnPriorityKindTest, IsTakenBackFromALoop) {
  PriorityShare share(
      {.at_once = milliseconds(100), .per_second = milliseconds(200)});
  const auto begin = Clock::now();
  ASSERT_TRUE(SpinUntil([&] { return IsAsBefore(); }));
  EXPECT_GE(Clock::now() - begin, milliseconds(90));
  share.Renew();
  EXPECT_TRUE(IsRaised() || SpinUntil([&] {
                std::this_thread::sleep_for(milliseconds(110));
                share.Renew();
                return IsRaised();
              }));
}

// The timer is set anew before it takes the priority from a thread that keeps
// within its allowance.
TEST_P(OwnPriorityKindTest, StaysWithinTheAllowance) {
  PriorityShare share(
      {.at_once = milliseconds(60), .per_second = milliseconds(1000)});
  const auto end = Clock::now() + milliseconds(400);
  while (Clock::now() < end) {
    const auto next = Clock::now() + milliseconds(2);
    while (Clock::now() < next) {
    }
    share.Renew();
    ASSERT_TRUE(IsRaised());
  }
}

// Work that can wait is done without it.
TEST_P(OwnPriorityKindTest, RestsUntilItIsRenewed) {
  PriorityShare share(
      {.at_once = milliseconds(500), .per_second = milliseconds(100)});
  share.Rest();
  EXPECT_TRUE(IsAsBefore());
  share.Renew();
  EXPECT_TRUE(IsRaised());
}

INSTANTIATE_TEST_SUITE_P(Kinds, OwnPriorityKindTest,
                         testing::Values(OwnPriority::kRealtime,
                                         OwnPriority::kNice),
                         [](const auto& kind) {
                           return std::string(OwnPriorityName(kind.param));
                         });

}  // namespace
}  // namespace profd
