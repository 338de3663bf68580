// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/guardrail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace profd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ServiceConfig TestConfig() {
  ServiceConfig config;
  config.limits.cpu_percent = 10;
  config.limits.memory_bytes = 1000 << 20;
  return config;
}

class GuardrailTest : public testing::Test {
 protected:
  // A window in which so many milliseconds of 5,000 were used.
  std::optional<Guardrail::Change> Window(uint64_t cpu_ms, uint64_t mib) {
    now_ += Guardrail::kWindow;
    EXPECT_TRUE(guardrail_.IsDue(now_));
    cpu_ns_ += cpu_ms * 1'000'000;
    return guardrail_.Check(
        now_, {.cpu_ns = cpu_ns_, .resident_bytes = mib << 20}, config_);
  }

  Guardrail::Clock::time_point now_;
  uint64_t cpu_ns_ = 5'000'000'000;
  ServiceConfig config_ = TestConfig();
  Guardrail guardrail_{now_, {.cpu_ns = cpu_ns_}};
};

// Once over a limit is no matter, twice in a row costs a level, whichever of
// the limits it is.
TEST_F(GuardrailTest, TwiceOverCostsALevel) {
  EXPECT_FALSE(guardrail_.IsDue(now_));
  EXPECT_FALSE(Window(506, 1));
  EXPECT_FALSE(Window(500, 1));
  EXPECT_FALSE(Window(506, 1));
  const auto change = Window(1172, 1);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->state.level, 1u);
  EXPECT_THAT(change->why, HasSubstr("23.4 % of a CPU and 1 MiB, over "
                                     "limits.cpu_percent"));
  EXPECT_FALSE(Window(1, 1001));
  const auto memory = Window(1, 1001);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->state.level, 2u);
  EXPECT_THAT(memory->why, HasSubstr("over limits.memory_bytes"));
}

// Time that is found to be others' is taken back.
TEST_F(GuardrailTest, LessThanBeforeIsNothing) {
  EXPECT_FALSE(Window(600, 1));
  cpu_ns_ -= 2'000'000'000;
  EXPECT_FALSE(Window(0, 1));
  cpu_ns_ -= 1'000'000'000;
  EXPECT_FALSE(Window(0, 1));
  EXPECT_FALSE(Window(600, 1));
  EXPECT_TRUE(Window(600, 1));
}

// There is a last level, and it is given back in steps, not by use that would
// be over again at once.
TEST_F(GuardrailTest, GivesBackSlowly) {
  for (int i = 0; i < 20; ++i) Window(5000, 1);
  EXPECT_EQ(guardrail_.state().level, Guardrail::kMaxLevel);
  for (unsigned i = 0; i < 3 * Guardrail::kRest; ++i) Window(380, 1);
  EXPECT_EQ(guardrail_.state().level, Guardrail::kMaxLevel);
  for (unsigned i = 0; i < Guardrail::kRest - 1; ++i) Window(100, 1);
  EXPECT_EQ(guardrail_.state().level, Guardrail::kMaxLevel);
  const auto change = Window(100, 1);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->state.level, Guardrail::kMaxLevel - 1);
}

// Samples of waits go before the first level and come back after the last one.
TEST_F(GuardrailTest, WaitsGoFirst) {
  config_.waiting.enabled = true;
  Window(5000, 1);
  const auto first = Window(5000, 1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->state, (Guardrail::State{.level = 0, .has_waits = false}));
  Window(5000, 1);
  const auto second = Window(5000, 1);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->state, (Guardrail::State{.level = 1, .has_waits = false}));
  std::vector<Guardrail::State> given_back;
  for (unsigned i = 0; i < 3 * Guardrail::kRest; ++i) {
    const auto change = Window(100, 1);
    if (change) given_back.push_back(change->state);
  }
  EXPECT_THAT(given_back,
              ElementsAre(Guardrail::State{.level = 0, .has_waits = false},
                          Guardrail::State{}));
}

// Waits that are not sampled any more are not given back.
TEST_F(GuardrailTest, WaitsThatAreNotAskedFor) {
  config_.waiting.enabled = true;
  Window(5000, 1);
  EXPECT_TRUE(Window(5000, 1));
  config_.waiting.enabled = false;
  for (unsigned i = 0; i < 2 * Guardrail::kRest; ++i) {
    EXPECT_FALSE(Window(100, 1));
  }
  EXPECT_EQ(guardrail_.state(), Guardrail::State{});
}

// 0 is no limit.
TEST_F(GuardrailTest, NoLimits) {
  config_.limits = {.cpu_percent = 0, .memory_bytes = 0};
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Window(20'000, 100'000));
}

// Waits are not sampled where they were given up.
TEST(ReduceTest, Waits) {
  ServiceConfig config;
  config.waiting.enabled = true;
  EXPECT_EQ(Reduce(config, {.level = 0}), config);
  ServiceConfig expected = config;
  expected.waiting.enabled = false;
  EXPECT_EQ(Reduce(config, {.level = 0, .has_waits = false}), expected);
}

// First the rate, then detail.
TEST(ReduceTest, Levels) {
  ServiceConfig config;
  config.frequency_hz = 99;
  config.labels.emplace_back("tid");
  EXPECT_EQ(Reduce(config, {.level = 0}), config);
  ServiceConfig expected = config;
  expected.frequency_hz = 49;
  EXPECT_EQ(Reduce(config, {.level = 1}), expected);
  expected.frequency_hz = 24;
  EXPECT_EQ(Reduce(config, {.level = 2}), expected);
  const ServiceConfig third = Reduce(config, {.level = 3});
  EXPECT_EQ(third.frequency_hz, 24u);
  EXPECT_EQ(third.stacks.max_depth, 32u);
  EXPECT_LT(third.symbols.cache_bytes, config.symbols.cache_bytes);
  EXPECT_EQ(third.stacks.unwind, "auto");
  const ServiceConfig last = Reduce(config, {.level = Guardrail::kMaxLevel});
  EXPECT_EQ(last.stacks.unwind, "fp");
  EXPECT_EQ(std::ranges::count(last.labels, "tid"), 0);
  config.frequency_hz = 1;
  EXPECT_EQ(Reduce(config, {.level = 2}).frequency_hz, 1u);
}

}  // namespace
}  // namespace profd
