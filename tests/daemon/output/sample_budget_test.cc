// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/sample_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

constexpr uint64_t kHourNs = 3'600'000'000'000;
constexpr std::string_view kUnit = "/system.slice/a.service";
constexpr std::string_view kOtherUnit = "/system.slice/b.service";

// Each row of it has a stack of its own, which is known by its place.
class Budgeted {
 public:
  void Add(std::string_view cgroup, uint64_t count, uint64_t value = 0) {
    profile_.Add({.cgroup = cgroup,
                  .user = {profile_.User("f" + std::to_string(rows_.size()))},
                  .kind = static_cast<SampleKindId>(value > 0 ? 1 : 0),
                  .count = count,
                  .value = value});
    rows_.push_back({count, value});
  }
  Profile Finish() && {
    Profile profile = std::move(profile_).Finish();
    profile.metadata.duration_ns = kHourNs;
    profile.metadata.kinds = {EventKind("cpu-clock", 99, 0),
                              WaitKinds("sched", 99).front()};
    return profile;
  }

 private:
  TestProfile profile_;
  std::vector<std::pair<uint64_t, uint64_t>> rows_;
};

struct Sums {
  uint64_t count = 0;
  uint64_t value = 0;
  uint64_t rows = 0;
};
Sums SumOf(const std::vector<ProfileSample>& samples, const Profile& profile,
           std::string_view cgroup) {
  Sums sums;
  for (const ProfileSample& sample : samples) {
    if (profile.String(sample.cgroup) != cgroup) continue;
    sums.count += sample.count;
    sums.value += sample.value;
    ++sums.rows;
  }
  return sums;
}

// A service within its budget keeps all, whatever others have.
TEST(SampleBudgetTest, EachServiceHasItsOwn) {
  Budgeted budgeted;
  for (int i = 0; i < 1000; ++i) budgeted.Add(kUnit, 3);
  for (int i = 0; i < 50; ++i) budgeted.Add(kOtherUnit, 2);
  const Profile profile = std::move(budgeted).Finish();
  std::mt19937_64 random(1);
  const BudgetedSamples kept = KeepWithinBudget(profile, {}, 100, random);
  const Sums many = SumOf(kept.samples, profile, kUnit);
  EXPECT_EQ(many.count, 3000u);
  EXPECT_LE(many.rows, 100u);
  EXPECT_GT(many.rows, 90u);
  EXPECT_EQ(SumOf(kept.samples, profile, kOtherUnit).rows, 50u);
  EXPECT_EQ(SumOf(kept.samples, profile, kOtherUnit).count, 100u);
  EXPECT_EQ(kept.left_out, 2900u);
}

// An interval has its part of the hour, and at least one sample of each.
TEST(SampleBudgetTest, IsOfAnHour) {
  Budgeted budgeted;
  for (int i = 0; i < 1000; ++i) budgeted.Add(kUnit, 1);
  Profile profile = std::move(budgeted).Finish();
  std::mt19937_64 random(1);
  for (const auto& [duration, rows] :
       {std::pair(kHourNs / 10, 60u), std::pair(kHourNs / 100'000, 1u),
        std::pair(kHourNs * 100, 1000u)}) {
    profile.metadata.duration_ns = duration;
    const BudgetedSamples kept = KeepWithinBudget(profile, {}, 600, random);
    EXPECT_EQ(kept.samples.size(), rows);
    EXPECT_EQ(SumOf(kept.samples, profile, kUnit).count, 1000u);
  }
}

// Rows of many different sizes come out as they are, on average: within five
// standard errors, each of which is at most half a part's.
TEST(SampleBudgetTest, IsRightOnAverage) {
  constexpr uint64_t kBudget = 37;
  constexpr int kRounds = 4000;
  Budgeted budgeted;
  std::vector<uint64_t> sizes;
  for (int i = 0; i < 60; ++i) {
    sizes.push_back(i % 7 == 0 ? 20 : 1 + static_cast<uint64_t>(i) % 3);
    budgeted.Add(kUnit, sizes.back());
  }
  const Profile profile = std::move(budgeted).Finish();
  uint64_t all = 0;
  for (const uint64_t size : sizes) all += size;
  std::map<CallStackId, uint64_t> sums;
  std::mt19937_64 random(1);
  for (int round = 0; round < kRounds; ++round) {
    for (const ProfileSample& sample :
         KeepWithinBudget(profile, {}, kBudget, random).samples) {
      sums[sample.user] += sample.count;
    }
  }
  const double part = std::ceil(static_cast<double>(all) / kBudget);
  const double bound = 5 * part / std::sqrt(kRounds);
  for (const ProfileSample& sample : profile.samples) {
    const double mean = static_cast<double>(sums[sample.user]) / kRounds;
    EXPECT_NEAR(mean, static_cast<double>(sample.count), bound);
  }
}

// The time of waits adds up, and long ones are not missed.
TEST(SampleBudgetTest, ValuesAddUp) {
  Budgeted budgeted;
  for (uint64_t i = 1; i <= 1000; ++i) budgeted.Add(kUnit, 2, i * 1001);
  budgeted.Add(kUnit, 1, 900'000'000);
  for (int i = 0; i < 10; ++i) budgeted.Add(kUnit, 1);
  const Profile profile = std::move(budgeted).Finish();
  const Sums before = SumOf(profile.samples, profile, kUnit);
  std::mt19937_64 random(1);
  uint64_t counts = 0;
  constexpr uint64_t kRounds = 100;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const BudgetedSamples kept = KeepWithinBudget(profile, {}, 50, random);
    const Sums sums = SumOf(kept.samples, profile, kUnit);
    EXPECT_EQ(sums.value, before.value);
    EXPECT_LE(sums.rows, 60u);
    counts += sums.count;
    uint64_t longest = 0;
    for (const ProfileSample& sample : kept.samples) {
      EXPECT_GT(sample.count, 0u);
      longest = std::max(longest, sample.value);
    }
    EXPECT_NEAR(static_cast<double>(longest), 9e8, 6e7);
  }
  EXPECT_NEAR(static_cast<double>(counts) / kRounds,
              static_cast<double>(before.count),
              static_cast<double>(before.count) / 2);
}

// Values that are all 0 have nothing to draw from, and stay.
TEST(SampleBudgetTest, KeepsWhatHasNoSize) {
  Budgeted budgeted;
  for (int i = 0; i < 20; ++i) budgeted.Add(kUnit, 1);
  Profile profile = std::move(budgeted).Finish();
  for (ProfileSample& sample : profile.samples) sample.kind = 1;
  std::mt19937_64 random(1);
  const BudgetedSamples kept = KeepWithinBudget(profile, {}, 5, random);
  EXPECT_EQ(kept.samples.size(), 20u);
  EXPECT_EQ(kept.left_out, 0u);
}

}  // namespace
}  // namespace profd
