// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/capture_loop.h"
#include "daemon/base/steady_clock.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr CapturePace kPace = {.poll = milliseconds(50),
                               .poll_building = milliseconds(20),
                               .poll_filling = milliseconds(10),
                               .drain = milliseconds(200),
                               .tables_budget = milliseconds(5),
                               .tables_margin = milliseconds(15),
                               .last_drain = milliseconds(100)};
constexpr SteadyClock::time_point kBegin{seconds(1000)};

// What is about to be lost comes before what is awaited.
TEST(CaptureTimesTest, PollsAsOftenAsNeeded) {
  const CaptureTimes times(kPace, kBegin);
  EXPECT_EQ(times.UntilPoll({}), milliseconds(50));
  EXPECT_EQ(times.UntilPoll({.is_building = true, .is_filling = false}),
            milliseconds(20));
  EXPECT_EQ(times.UntilPoll({.is_building = true, .is_filling = true}),
            milliseconds(10));
}

// A drain is due at its time or when something asks for it, but not so near to
// the end that it would make the capture longer.
TEST(CaptureTimesTest, DrainsInTime) {
  const CaptureTimes endless(kPace, kBegin);
  EXPECT_FALSE(endless.IsDrainDue(kBegin + milliseconds(199), false));
  EXPECT_TRUE(endless.IsDrainDue(kBegin + milliseconds(200), false));
  EXPECT_TRUE(endless.IsDrainDue(kBegin, true));
  const CaptureTimes times(kPace, kBegin, kBegin + milliseconds(310));
  EXPECT_TRUE(times.IsDrainDue(kBegin + milliseconds(210), false));
  EXPECT_FALSE(times.IsDrainDue(kBegin + milliseconds(211), false));
  EXPECT_FALSE(times.IsDrainDue(kBegin + milliseconds(211), true));
}

// Late drains do not add up, but there is half a period between two.
TEST(CaptureTimesTest, KeepsTheRateOfDrains) {
  CaptureTimes times(kPace, kBegin);
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
  EXPECT_EQ(CaptureTimes(kPace, kBegin, kBegin + seconds(1)).TablesDeadline(),
            kBegin + milliseconds(985));
  EXPECT_EQ(CaptureTimes(kPace, kBegin).TablesDeadline(),
            SteadyClock::time_point::max());
}

}  // namespace
}  // namespace profd
