// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "daemon/output/options.h"
#include "daemon/profile/profile.h"

namespace profd {

struct BudgetedSamples {
  std::vector<ProfileSample> samples;
  uint64_t left_out = 0;  // samples that others stand for
};

// The samples of a profile with no more than `per_hour` in an hour of each
// service and kind, at least one. Of a service that has more some are drawn by
// chance, and each that is drawn stands for as many, or for as much of their
// values: counts, of a kind with values the values, add up to what they did for
// each service and kind, and are right on average for each stack (a stratified
// sample). Counts of a kind with values are right on average but for rounding
// up to 1. `labels` say what a service is known by (ServiceName). O(samples).
BudgetedSamples KeepWithinBudget(const Profile& profile,
                                 const SampleLabels& labels, uint64_t per_hour,
                                 std::mt19937_64& random);

}  // namespace profd
