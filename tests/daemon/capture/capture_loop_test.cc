// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/capture_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace profd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr CapturePace kPace = {.poll = milliseconds(50),
                               .poll_building = milliseconds(20),
                               .poll_filling = milliseconds(10),
                               .poll_naming = milliseconds(20),
                               .drain = milliseconds(200),
                               .drain_gap = milliseconds(100),
                               .tables_budget = milliseconds(5),
                               .tables_margin = milliseconds(15),
                               .last_drain = milliseconds(100),
                               .tables_patience = milliseconds(500)};
constexpr SteadyClock::time_point kBegin{seconds(1000)};

// What is about to be lost comes before what is awaited.
TEST(CaptureTimesTest, PollsAsOftenAsNeeded) {
  const CaptureTimes times(kPace, {.begin = kBegin});
  EXPECT_EQ(times.UntilPoll(kBegin, {}), milliseconds(50));
  EXPECT_EQ(times.UntilPoll(kBegin, {.is_building = true, .is_filling = false}),
            milliseconds(20));
  EXPECT_EQ(times.UntilPoll(kBegin, {.is_building = true, .is_filling = true}),
            milliseconds(10));
}

// Names that are read from processes have a pace of their own.
TEST(CaptureTimesTest, PollsForNames) {
  CapturePace pace = kPace;
  const CaptureTimes::State naming = {.is_naming = true};
  EXPECT_EQ(CaptureTimes(pace, {.begin = kBegin}).UntilPoll(kBegin, naming),
            milliseconds(20));
  pace.poll_naming = milliseconds(3);
  const CaptureTimes times(pace, {.begin = kBegin});
  EXPECT_EQ(times.UntilPoll(kBegin, {}), milliseconds(50));
  EXPECT_EQ(times.UntilPoll(kBegin, naming), milliseconds(3));
  EXPECT_EQ(times.UntilPoll(kBegin, {.is_filling = true, .is_naming = true}),
            milliseconds(3));
}

// Where it is quiet a drain polls as well; what else is asked for comes first.
TEST(CaptureTimesTest, PollsSeldomWhereItIsQuiet) {
  CapturePace pace = kPace;
  const CaptureTimes::State quiet = {.is_quiet = true};
  EXPECT_EQ(CaptureTimes(pace, {.begin = kBegin}).UntilPoll(kBegin, quiet),
            milliseconds(50));
  pace.poll_quiet = milliseconds(150);
  CaptureTimes times(pace, {.begin = kBegin});
  EXPECT_EQ(times.UntilPoll(kBegin, {}), milliseconds(50));
  EXPECT_EQ(times.UntilPoll(kBegin, quiet), milliseconds(150));
  EXPECT_EQ(times.UntilPoll(kBegin + milliseconds(150), quiet),
            milliseconds(50));
  EXPECT_EQ(times.UntilPoll(kBegin + milliseconds(201), quiet),
            milliseconds(0));
  EXPECT_EQ(times.UntilPoll(kBegin, {.is_building = true, .is_quiet = true}),
            milliseconds(20));
  EXPECT_EQ(times.UntilPoll(kBegin, {.is_filling = true, .is_quiet = true}),
            milliseconds(10));
}

// Where processes are new when a capture begins it is looked after more often.
TEST(CaptureTimesTest, PollsOftenAtTheBeginning) {
  CapturePace pace = kPace;
  pace.beginning = milliseconds(500);
  const CaptureTimes times(pace, {.begin = kBegin});
  EXPECT_EQ(times.UntilPoll(kBegin + milliseconds(499), {}), milliseconds(20));
  EXPECT_EQ(times.UntilPoll(kBegin + milliseconds(500), {}), milliseconds(50));
}

// A drain is due at its time or when something asks for it, but not so near to
// the end that it would make the capture longer.
TEST(CaptureTimesTest, DrainsInTime) {
  const CaptureTimes endless(kPace, {.begin = kBegin});
  EXPECT_FALSE(endless.IsDrainDue(kBegin + milliseconds(199), false));
  EXPECT_TRUE(endless.IsDrainDue(kBegin + milliseconds(200), false));
  EXPECT_TRUE(endless.IsDrainDue(kBegin, true));
  const CaptureTimes times(
      kPace, {.begin = kBegin, .end = kBegin + milliseconds(310)});
  EXPECT_TRUE(times.IsDrainDue(kBegin + milliseconds(210), false));
  EXPECT_FALSE(times.IsDrainDue(kBegin + milliseconds(211), false));
  EXPECT_FALSE(times.IsDrainDue(kBegin + milliseconds(211), true));
}

// A late drain is made up for, but there is always the gap between two.
TEST(CaptureTimesTest, KeepsTheRateOfDrains) {
  CaptureTimes times(kPace, {.begin = kBegin});
  times.NoteDrain(kBegin + milliseconds(230));
  EXPECT_FALSE(times.IsDrainDue(kBegin + milliseconds(399), false));
  EXPECT_TRUE(times.IsDrainDue(kBegin + milliseconds(400), false));
  times.NoteDrain(kBegin + milliseconds(1000));
  EXPECT_FALSE(times.IsDrainDue(kBegin + milliseconds(1099), false));
  EXPECT_TRUE(times.IsDrainDue(kBegin + milliseconds(1100), false));
  // One out of turn counts.
  times.NoteDrain(kBegin + milliseconds(1050));
  EXPECT_FALSE(times.IsDrainDue(kBegin + milliseconds(1249), false));
  EXPECT_TRUE(times.IsDrainDue(kBegin + milliseconds(1250), false));
}

// Tables that come too late are not begun; without an end none does.
TEST(CaptureTimesTest, KnowsTheLastTable) {
  EXPECT_EQ(CaptureTimes(kPace, {.begin = kBegin, .end = kBegin + seconds(1)})
                .TablesDeadline(),
            kBegin + milliseconds(985));
  EXPECT_EQ(CaptureTimes(kPace, {.begin = kBegin}).TablesDeadline(),
            SteadyClock::time_point::max());
}

// Where the gap is the period, a drain counts from the end of the last one.
TEST(CaptureTimesTest, MakesUpForNothingWithoutRoom) {
  CapturePace pace = kPace;
  pace.drain_gap = pace.drain;
  CaptureTimes times(pace, {.begin = kBegin});
  for (const int ended : {230, 1000, 1050}) {
    times.NoteDrain(kBegin + milliseconds(ended));
    EXPECT_FALSE(times.IsDrainDue(kBegin + milliseconds(ended + 199), false));
    EXPECT_TRUE(times.IsDrainDue(kBegin + milliseconds(ended + 200), false));
  }
}

// A capture of which every step takes a known time, and which says what was
// done to it.
class FakeCapture : public CaptureSteps {
 public:
  Advice Poll() override {
    steps.emplace_back("poll");
    now += milliseconds(1);
    return advice;
  }
  void BuildTables(SteadyClock::duration budget,
                   SteadyClock::time_point deadline) override {
    steps.emplace_back("build");
    tables_budget = budget;
    tables_deadline = deadline;
    now += milliseconds(2);
  }
  bool IsBuildingTables() const override { return is_building; }
  bool IsNaming() const override { return is_naming; }
  bool IsFilling() const override { return is_filling; }
  bool IsQuiet() const override { return is_quiet; }
  int bell() const override { return 7; }
  ksym::Result<RawProfile> Drain(milliseconds patience) override {
    steps.emplace_back("drain");
    drain_patience = patience;
    now += drain_takes;
    if (fails) return ksym::Fail(ksym::ErrorCode::kIo, "no more");
    RawProfile profile;
    profile.accounting.taken = 7;
    return profile;
  }

  SteadyClock::time_point now = kBegin;
  std::vector<std::string> steps;
  Advice advice = Advice::kGoOn;
  bool is_building = false;
  bool is_naming = false;
  bool is_filling = false;
  bool is_quiet = false;
  bool fails = false;
  milliseconds drain_takes{30};
  SteadyClock::duration tables_budget = {};
  SteadyClock::time_point tables_deadline;
  milliseconds drain_patience{0};
};

class CaptureLoopTest : public testing::Test {
 protected:
  // Steps at that time after the beginning.
  CaptureLoop::Due StepAt(int ms) {
    capture_.now = kBegin + milliseconds(ms);
    return loop_.Step();
  }

  FakeCapture capture_;
  CaptureLoop loop_{
      capture_, kPace, {.begin = kBegin, .end = kBegin + seconds(1)}, [this] {
        return capture_.now;
      }};
};

using Due = CaptureLoop::Due;

// What came while the capture was being started is taken in at once; then the
// state of the capture says how long to wait.
TEST_F(CaptureLoopTest, PausesAsTheCaptureNeeds) {
  capture_.is_building = true;
  EXPECT_EQ(loop_.Pause(), SteadyClock::duration(0));
  EXPECT_EQ(loop_.Pause(), SteadyClock::duration(0));  // it did nothing yet
  loop_.Step();
  EXPECT_EQ(loop_.Pause(), milliseconds(20));
  capture_.is_filling = true;
  EXPECT_EQ(loop_.Pause(), milliseconds(10));
  capture_.is_building = capture_.is_filling = false;
  EXPECT_EQ(loop_.Pause(), milliseconds(50));
  capture_.is_naming = true;
  EXPECT_EQ(loop_.Pause(), milliseconds(20));
}

// Where it is not quiet there is a poll soon, bell or no bell.
TEST_F(CaptureLoopTest, HearsTheBellWhereItIsQuiet) {
  EXPECT_EQ(loop_.bell(), -1);
  capture_.is_quiet = true;
  EXPECT_EQ(loop_.bell(), 7);
}

// Processes are taken in before tables are built for them, up to the margin
// before the end.
TEST_F(CaptureLoopTest, PollsBeforeItBuilds) {
  EXPECT_EQ(StepAt(0), Due::kNothing);
  EXPECT_THAT(capture_.steps, testing::ElementsAre("poll", "build"));
  EXPECT_EQ(capture_.tables_budget, milliseconds(5));
  EXPECT_EQ(capture_.tables_deadline, kBegin + milliseconds(985));
}

// The time counts that it is after the work: 196 + 1 + 2 ms are too early.
TEST_F(CaptureLoopTest, DrainsWhenItIsTimeOrAdvised) {
  EXPECT_EQ(StepAt(196), Due::kNothing);
  EXPECT_EQ(StepAt(197), Due::kDrain);
  capture_.advice = CaptureSteps::Advice::kDrainSoon;
  EXPECT_EQ(StepAt(100), Due::kDrain);
  // So near to the end the rest is for Stop().
  EXPECT_EQ(StepAt(897), Due::kDrain);
  EXPECT_EQ(StepAt(898), Due::kNothing);
}

// A drain is noted when it ends, even one that failed.
TEST_F(CaptureLoopTest, CountsFromTheEndOfADrain) {
  capture_.now = kBegin + milliseconds(200);
  capture_.drain_takes = milliseconds(150);
  const auto raw = loop_.Drain();
  ASSERT_TRUE(raw);
  EXPECT_EQ(raw->accounting.taken, 7u);
  EXPECT_EQ(capture_.drain_patience, milliseconds(500));
  // It was to be at 400, which is too soon after 350.
  EXPECT_EQ(StepAt(446), Due::kNothing);
  EXPECT_EQ(StepAt(447), Due::kDrain);

  capture_.fails = true;
  EXPECT_FALSE(loop_.Drain());  // from 450 to 600
  EXPECT_EQ(StepAt(696), Due::kNothing);
  EXPECT_EQ(StepAt(697), Due::kDrain);
}

}  // namespace
}  // namespace profd
