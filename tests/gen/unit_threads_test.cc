// SPDX-License-Identifier: Apache-2.0
#include "gen/unit_threads.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <vector>

namespace gen {
namespace {

constexpr size_t kUnits = 100;

void NoProgress(size_t /*done*/, size_t /*all*/) {}

// Each unit has as many pieces of code as its number.
ksym::UnitWork CountingWork(std::vector<size_t>& added) {
  return {.unit_count = kUnits,
          .read =
              [](size_t index, ksym::UnitFunctions& unit) {
                unit.other_code.assign(index, {});
              },
          .add =
              [&added](const ksym::UnitFunctions& unit) {
                added.push_back(unit.other_code.size());
              }};
}

TEST(UnitThreadsTest, UnitsAreAddedInOrder) {
  for (const size_t threads : {1, 2, 8}) {
    std::vector<size_t> added;
    RunUnitsOnThreads(threads, NoProgress)(CountingWork(added));
    ASSERT_EQ(added.size(), kUnits) << threads;
    for (size_t i = 0; i < kUnits; ++i) EXPECT_EQ(added[i], i) << threads;
  }
}

// Workers wait for slots that nobody frees any more.
TEST(UnitThreadsTest, FailureOfTheCallerEndsTheWorkers) {
  for (const size_t threads : {1, 2, 8}) {
    std::vector<size_t> added;
    ksym::UnitWork work = CountingWork(added);
    work.add = [](const ksym::UnitFunctions& /*unit*/) {
      throw std::bad_alloc();
    };
    EXPECT_THROW(RunUnitsOnThreads(threads, NoProgress)(work), std::bad_alloc)
        << threads;
  }
}

TEST(UnitThreadsTest, FailureOfAWorkerIsTheCallers) {
  for (const size_t threads : {1, 2, 8}) {
    std::vector<size_t> added;
    ksym::UnitWork work = CountingWork(added);
    work.read = [](size_t index, ksym::UnitFunctions& /*unit*/) {
      if (index == kUnits / 2) throw std::bad_alloc();
    };
    EXPECT_THROW(RunUnitsOnThreads(threads, NoProgress)(work), std::bad_alloc)
        << threads;
    EXPECT_LE(added.size(), kUnits / 2) << threads;
  }
}

}  // namespace
}  // namespace gen
