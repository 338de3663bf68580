// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/sleepers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace profd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::UnorderedElementsAre;

constexpr StackId kUser = 100;
constexpr StackId kKernel = 200;

class SleepersTest : public testing::Test {
 protected:
  static wait_asleep_record Found(uint32_t tid, uint64_t value_ns) {
    wait_asleep_record record = {};
    record.header.type = PROFILE_RECORD_ASLEEP;
    record.tid = tid;
    record.value_ns = value_ns;
    record.cgroup = 7;
    record.known = {.switches = 5, .start_time = 6};
    return record;
  }
  static SleptCopy Copy(uint32_t tid) {
    SleptCopy copy = {.set = 0, .tid = tid};
    copy.key.tgid = 1;
    copy.key.kind = PROFILE_KIND_BLOCKED;
    copy.key.user_stack = kUser;
    copy.key.kernel_stack = kKernel;
    return copy;
  }
  // The thread's copy is walked in a walk that finds it asleep.
  void Learn(uint32_t tid) {
    wait_asleep_record record = Found(tid, 30);
    record.is_new = 1;
    sleepers_.Add(record, sizeof(record));
    records_.AddKept(0, kUser, {.frames = "user"});
    records_.AddKept(0, kKernel, {.frames = "kernel"});
    sleepers_.Take(0, records_, {Copy(tid)});
    records_.Clear(0, StackRecords::Keep::kNone);
  }
  void Walk(const std::vector<wait_asleep_record>& found) {
    for (const wait_asleep_record& record : found) {
      sleepers_.Add(record, sizeof(record));
    }
    sleepers_.EndWalk();
  }

  std::map<uint32_t, wait_known> told_;
  bool has_room_ = true;
  StackRecords records_{127};
  Sleepers sleepers_{[this](uint32_t tid, const wait_known* known) {
    if (known == nullptr) return told_.erase(tid) != 0;
    if (has_room_) told_[tid] = *known;
    return has_room_;
  }};
};

// A thread whose stack is known is a sample with it in each interval, and one
// hint for its process.
TEST_F(SleepersTest, CountsWithTheStackThatIsKnown) {
  Learn(8);
  Learn(9);
  ASSERT_THAT(told_, UnorderedElementsAre(Key(8), Key(9)));
  EXPECT_EQ(told_[8].switches, 5u);
  for (const uint64_t value : {10u, 20u}) {
    Walk({Found(8, value), Found(9, 1)});
    EXPECT_EQ(sleepers_.TakeHints().size(), 1u);
    const auto counts = sleepers_.Take(0, records_, {});
    ASSERT_EQ(counts.size(), 2u);
    EXPECT_EQ(counts[0].count, 1u);
    EXPECT_EQ(counts[0].value, value);
    EXPECT_EQ(counts[0].key.user_stack, kUser);
    ASSERT_NE(records_.Find({0, kUser}), nullptr);
    EXPECT_EQ(records_.Find({0, kUser})->frames, "user");
    EXPECT_EQ(records_.Find({0, kKernel})->frames, "kernel");
    records_.Clear(0, StackRecords::Keep::kNone);
  }
  EXPECT_EQ(sleepers_.taken(0), 4u);
  EXPECT_EQ(sleepers_.taken(1), 0u);
  EXPECT_THAT(sleepers_.TakeHints(), IsEmpty());
}

// One that a whole walk did not find is forgotten; the programs are told so.
TEST_F(SleepersTest, ForgetsWhoWentOn) {
  Learn(8);
  Walk({Found(8, 0)});  // there was no point in it
  EXPECT_THAT(sleepers_.Take(0, records_, {}), IsEmpty());
  EXPECT_EQ(sleepers_.known(), 1u);
  Walk({});
  EXPECT_EQ(sleepers_.known(), 0u);
  EXPECT_THAT(told_, IsEmpty());
  Walk({Found(8, 10)});
  EXPECT_THAT(sleepers_.Take(0, records_, {}), IsEmpty());
  EXPECT_EQ(sleepers_.taken(0), 0u);
}

// A copy that no walk announced, a stack that is not there, one with frames of
// a runtime, and one that the programs' map has no room for are not known.
TEST_F(SleepersTest, KnowsOnlyWhatItHas) {
  records_.AddKept(0, kUser, {.frames = "user"});
  records_.AddKept(0, kKernel, {.frames = "kernel"});
  sleepers_.Take(0, records_, {Copy(8)});
  EXPECT_EQ(sleepers_.known(), 0u);
  wait_asleep_record record = Found(8, 30);
  record.is_new = 1;
  sleepers_.Add(record, sizeof(record) - 1);
  sleepers_.Take(0, records_, {Copy(8)});
  EXPECT_EQ(sleepers_.known(), 0u);
  records_.Clear(0, StackRecords::Keep::kNone);
  sleepers_.Add(record, sizeof(record));
  sleepers_.Take(0, records_, {Copy(8)});
  EXPECT_EQ(sleepers_.known(), 0u);
  sleepers_.Add(record, sizeof(record));
  records_.Clear(0, StackRecords::Keep::kNone);
  has_room_ = false;
  Learn(8);
  EXPECT_EQ(sleepers_.known(), 0u);
}

// Stacks with frames of a runtime are known for as long as these have names.
TEST_F(SleepersTest, ForgetsFramesOfRuntimes) {
  Learn(7);
  wait_asleep_record record = Found(8, 30);
  record.is_new = 1;
  sleepers_.Add(record, sizeof(record));
  constexpr StackId kMixed = kUser + 1000;
  records_.AddKept(0, kMixed, {.frames = "mixed", .mixed = true});
  records_.AddKept(0, kKernel, {.frames = "kernel"});
  SleptCopy copy = Copy(8);
  copy.key.user_stack = kMixed;
  sleepers_.Take(0, records_, {copy});
  EXPECT_EQ(sleepers_.known(), 2u);
  sleepers_.ForgetMixed();
  EXPECT_EQ(sleepers_.known(), 1u);
}

// Threads are known up to the map's size, and stacks up to a bound of bytes,
// in which equal ones count once.
TEST_F(SleepersTest, IsBounded) {
  for (uint32_t tid = 1; tid <= kMaxKnownSleepers + 1; ++tid) Learn(tid);
  EXPECT_EQ(sleepers_.known(), kMaxKnownSleepers);
  Walk({});
  EXPECT_EQ(sleepers_.known(), 0u);
  const auto learn_large = [&](uint32_t tid, StackId user) {
    wait_asleep_record record = Found(tid, 30);
    record.is_new = 1;
    sleepers_.Add(record, sizeof(record));
    records_.AddKept(0, user,
                     {.frames = std::string(Sleepers::kMaxStackBytes, 'u')});
    records_.AddKept(0, kKernel, {.frames = "kernel"});
    SleptCopy copy = Copy(tid);
    copy.key.user_stack = user;
    sleepers_.Take(0, records_, {copy});
    records_.Clear(0, StackRecords::Keep::kNone);
  };
  learn_large(1, kUser);
  EXPECT_EQ(sleepers_.known(), 1u);
  learn_large(2, kUser + 1);
  EXPECT_EQ(sleepers_.known(), 1u);
  Walk({});
  learn_large(3, kUser + 1);
  EXPECT_EQ(sleepers_.known(), 1u);
}

// Where another stack has the id by now the known one gets the next.
TEST_F(SleepersTest, IdsStayApart) {
  Learn(8);
  records_.AddKept(0, kUser, {.frames = "other"});
  Walk({Found(8, 10)});
  const auto counts = sleepers_.Take(0, records_, {});
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].key.user_stack, kUser + 1);
  EXPECT_EQ(records_.Find({0, kUser + 1})->frames, "user");
  EXPECT_THAT(std::vector({records_.Find({0, kUser})->frames}),
              ElementsAre("other"));
}

}  // namespace
}  // namespace profd
