// SPDX-License-Identifier: Apache-2.0
#include "bpf/waiting_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

constexpr uint64_t kPeriod = 10'101'010;

wait_points PointsOf(uint64_t period, uint64_t seed, uint64_t near = 0) {
  return {.period = period, .seed = seed, .near = near};
}

// How many points there are, one after the other.
uint64_t CountOneByOne(const wait_points& points, uint64_t begin,
                       uint64_t end) {
  uint64_t count = 0;
  for (uint64_t point = wait_next_point(&points, begin); point < end;
       point = wait_next_point(&points, point + 1)) {
    ++count;
  }
  return count;
}

TEST(WaitPointsTest, EachPeriodHasOne) {
  const wait_points points = PointsOf(kPeriod, 77);
  for (uint64_t k = 0; k < 1000; ++k) {
    const uint64_t point = wait_point_of(&points, k);
    EXPECT_GE(point, k * kPeriod);
    EXPECT_LT(point, (k + 1) * kPeriod);
  }
}

TEST(WaitPointsTest, TheNextOneIsNotBeforeNow) {
  const wait_points points = PointsOf(kPeriod, 5);
  for (uint64_t now = 1; now < 100 * kPeriod; now += kPeriod / 3) {
    const uint64_t next = wait_next_point(&points, now);
    EXPECT_GE(next, now);
    EXPECT_EQ(wait_points_in(&points, now, next), 0u);
    EXPECT_EQ(wait_points_in(&points, now, next + 1), 1u);
  }
}

TEST(WaitPointsTest, CountsWhatIsThere) {
  const wait_points points = PointsOf(1000, 9);
  for (uint64_t begin = 0; begin < 5000; begin += 37) {
    for (uint64_t end = begin; end < begin + 5000; end += 411) {
      EXPECT_EQ(wait_points_in(&points, begin, end),
                CountOneByOne(points, begin, end));
    }
  }
  EXPECT_EQ(wait_points_in(&points, 10, 10), 0u);
  EXPECT_EQ(wait_points_in(&points, 11, 10), 0u);
}

// The period that a caller calls near saves divisions and changes no answer.
TEST(WaitPointsTest, AnyPeriodMayBeNear) {
  const wait_points points = PointsOf(1000, 9);
  for (uint64_t near = 0; near < 12; ++near) {
    const wait_points hinted = PointsOf(1000, 9, near);
    for (uint64_t time = 0; time < 10'000; time += 25) {
      EXPECT_EQ(wait_period_at(&hinted, time), time / 1000);
      EXPECT_EQ(wait_next_point(&hinted, time), wait_next_point(&points, time));
      EXPECT_EQ(wait_points_in(&hinted, time, 7777),
                wait_points_in(&points, time, 7777));
    }
  }
}

// Parts of a wait have as many as the whole.
TEST(WaitPointsTest, PartsAddUp) {
  const wait_points points = PointsOf(kPeriod, 1);
  const uint64_t begin = 123'456'789;
  const uint64_t end = begin + 50 * kPeriod;
  uint64_t sum = 0;
  for (uint64_t at = begin; at < end; at += kPeriod / 7) {
    sum += wait_points_in(&points, at, std::min(at + kPeriod / 7, end));
  }
  EXPECT_EQ(sum, wait_points_in(&points, begin, end));
}

// What one of many threads waits for, on average, whose waits of two lengths
// are in step with the period.
double MeanOf(uint64_t offset, uint64_t length) {
  constexpr uint64_t kThreads = 400;
  constexpr uint64_t kPeriods = 100;
  uint64_t count = 0;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    const wait_points points = PointsOf(kPeriod, 0x123456789abcdefu ^ thread);
    for (uint64_t k = 1; k <= kPeriods; ++k) {
      const uint64_t begin = k * kPeriod + offset;
      count += wait_points_in(&points, begin, begin + length);
    }
  }
  return static_cast<double>(count * kPeriod) / (kThreads * kPeriods);
}

TEST(WaitPointsTest, IsRightOnAverageInStepWithThePeriod) {
  for (const uint64_t offset : {uint64_t{0}, kPeriod / 3, kPeriod - 1000}) {
    for (const double share : {0.1, 0.5, 0.9}) {
      const double length = share * kPeriod;
      // For 40,000 periods, each of which has a point in it or not.
      const double sigma = kPeriod * std::sqrt(share * (1 - share) / 40'000);
      EXPECT_NEAR(MeanOf(offset, static_cast<uint64_t>(length)), length,
                  3.5 * sigma)
          << offset << " " << share;
    }
  }
}

// A long wait counts to within one period.
TEST(WaitPointsTest, ALongWaitIsExact) {
  const wait_points points = PointsOf(kPeriod, 3);
  const uint64_t length = 1000 * kPeriod;
  const uint64_t count = wait_points_in(&points, 17, 17 + length);
  EXPECT_GE(count, 999u);
  EXPECT_LE(count, 1001u);
}

TEST(WaitPointsTest, TheBudgetKeepsAboutAsManyAsItMay) {
  EXPECT_EQ(wait_first_shift(0, 100), 0u);
  EXPECT_EQ(wait_first_shift(100, 100), 0u);
  EXPECT_EQ(wait_first_shift(200, 100), 1u);
  EXPECT_EQ(wait_first_shift(100'000, 100), 10u);
  EXPECT_EQ(wait_first_shift(0xffffffff, 1), WAIT_MOST_SHIFT);
}

// Asking twice gives one answer, and of waits of few points as many are kept as
// they have points: those that are kept come to the time of all.
TEST(WaitPointsTest, KeepsAsLikelyAsThereArePoints) {
  constexpr uint64_t kWaits = 100'000;
  for (const uint32_t shift : {0u, 1u, 4u}) {
    const uint64_t least = uint64_t{1} << shift;
    for (const uint64_t points : {uint64_t{1}, uint64_t{3}, uint64_t{16}}) {
      uint64_t kept = 0;
      for (uint64_t i = 0; i < kWaits; ++i) {
        const uint64_t seed = 0x123456789abcdefu ^ i % 100;
        if (wait_is_kept(seed, i / 100, points, shift) == 0) continue;
        ++kept;
        if (shift > 0) {
          EXPECT_NE(wait_is_kept(seed, i / 100, points, shift - 1), 0);
        }
      }
      const double share = static_cast<double>(std::min(points, least)) /
                           static_cast<double>(least);
      const double sigma = std::sqrt(kWaits * share * (1 - share));
      EXPECT_NEAR(static_cast<double>(kept), kWaits * share, 4 * sigma)
          << points << " " << shift;
    }
  }
}

}  // namespace
