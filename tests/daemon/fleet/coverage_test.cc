// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/coverage.h"

#include <gtest/gtest.h>

#include <vector>

namespace profd::fleet {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
const Question kTime = {.from = 1000, .until = 1055};

// The coverage in steps of 20 s.
std::vector<uint64_t> KnownOf(const std::vector<CoverageRow>& rows) {
  const auto coverage = Coverage::Of(rows, kTime, 20);
  if (!coverage) return {};
  std::vector<uint64_t> known;
  uint64_t sum = 0;
  for (const Coverage::Step& step : coverage->steps) {
    known.push_back(step.known_ns / kSecond);
    sum += step.known_ns;
  }
  EXPECT_EQ(coverage->known_ns, sum);
  return known;
}

TEST(CoverageTest, NothingIsKnownWithoutIntervals) {
  EXPECT_EQ(KnownOf({}), (std::vector<uint64_t>{0, 0, 0}));
}

// An interval that goes on in the next step is known there, up to the end.
TEST(CoverageTest, FromTheFirstToTheLastInterval) {
  EXPECT_EQ(KnownOf({{.step = 0, .first_unix_s = 1005, .end_unix_s = 1025},
                     {.step = 1, .first_unix_s = 1025, .end_unix_s = 1035}}),
            (std::vector<uint64_t>{15, 15, 0}));
  EXPECT_EQ(KnownOf({{.step = 2, .first_unix_s = 1050, .end_unix_s = 1060}}),
            (std::vector<uint64_t>{0, 0, 5}));
  EXPECT_EQ(KnownOf({{.step = 0, .first_unix_s = 1000, .end_unix_s = 1060}}),
            (std::vector<uint64_t>{20, 20, 15}));
}

TEST(CoverageTest, AddsUp) {
  const auto coverage =
      Coverage::Of(std::vector<CoverageRow>{{.step = 0,
                                             .first_unix_s = 1000,
                                             .end_unix_s = 1020,
                                             .taken = 10,
                                             .lost = 3,
                                             .intervals = 2},
                                            {.step = 2,
                                             .first_unix_s = 1040,
                                             .end_unix_s = 1050,
                                             .taken = 5,
                                             .lost = 9,
                                             .intervals = 1,
                                             .has_doubles = true}},
                   kTime, 20);
  ASSERT_TRUE(coverage);
  EXPECT_EQ(coverage->taken, 15u);
  EXPECT_EQ(coverage->lost, 8u);  // never more than were taken
  EXPECT_EQ(coverage->intervals, 3u);
  EXPECT_TRUE(coverage->has_doubles);
}

TEST(CoverageTest, RefusesRowsOfNoStep) {
  EXPECT_TRUE(KnownOf({{.step = 3}}).empty());
  EXPECT_TRUE(KnownOf({{.step = 1}, {.step = 0}}).empty());
  EXPECT_TRUE(KnownOf({{.step = 1}, {.step = 1}}).empty());
}

}  // namespace
}  // namespace profd::fleet
