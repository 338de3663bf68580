// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/guardrail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd {
namespace {

using testing::HasSubstr;

ServiceConfig::Limits TestLimits() {
  ServiceConfig::Limits limits;
  limits.cpu_percent = 10;
  limits.memory_bytes = 1000 << 20;
  return limits;
}

class GuardrailTest : public testing::Test {
 protected:
  // A window in which so many milliseconds of 5,000 were used.
  std::optional<Guardrail::Change> Window(uint64_t cpu_ms, uint64_t mib) {
    now_ += Guardrail::kWindow;
    EXPECT_TRUE(guardrail_.IsDue(now_));
    cpu_ns_ += cpu_ms * 1'000'000;
    return guardrail_.Check(
        now_, {.cpu_ns = cpu_ns_, .resident_bytes = mib << 20}, limits_);
  }

  Guardrail::Clock::time_point now_;
  uint64_t cpu_ns_ = 5'000'000'000;
  ServiceConfig::Limits limits_ = TestLimits();
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
  EXPECT_EQ(change->level, 1u);
  EXPECT_THAT(change->why, HasSubstr("23.4 % of a CPU and 1 MiB, over "
                                     "limits.cpu_percent"));
  EXPECT_FALSE(Window(1, 1001));
  const auto memory = Window(1, 1001);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->level, 2u);
  EXPECT_THAT(memory->why, HasSubstr("over limits.memory_bytes"));
}

// There is a last level, and it is given back in steps, not by use that would
// be over again at once.
TEST_F(GuardrailTest, GivesBackSlowly) {
  for (int i = 0; i < 20; ++i) Window(5000, 1);
  EXPECT_EQ(guardrail_.level(), Guardrail::kMaxLevel);
  for (unsigned i = 0; i < 3 * Guardrail::kRest; ++i) Window(380, 1);
  EXPECT_EQ(guardrail_.level(), Guardrail::kMaxLevel);
  for (unsigned i = 0; i < Guardrail::kRest - 1; ++i) Window(100, 1);
  EXPECT_EQ(guardrail_.level(), Guardrail::kMaxLevel);
  const auto change = Window(100, 1);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->level, Guardrail::kMaxLevel - 1);
}

// 0 is no limit.
TEST_F(GuardrailTest, NoLimits) {
  limits_ = {.cpu_percent = 0, .memory_bytes = 0};
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Window(20'000, 100'000));
}

// First the rate, then detail.
TEST(ReduceTest, Levels) {
  ServiceConfig config;
  config.frequency_hz = 99;
  config.labels.emplace_back("tid");
  EXPECT_EQ(Reduce(config, 0), config);
  ServiceConfig expected = config;
  expected.frequency_hz = 49;
  EXPECT_EQ(Reduce(config, 1), expected);
  expected.frequency_hz = 24;
  EXPECT_EQ(Reduce(config, 2), expected);
  const ServiceConfig third = Reduce(config, 3);
  EXPECT_EQ(third.frequency_hz, 24u);
  EXPECT_EQ(third.stacks.max_depth, 32u);
  EXPECT_LT(third.symbols.cache_bytes, config.symbols.cache_bytes);
  EXPECT_EQ(third.stacks.unwind, "auto");
  const ServiceConfig last = Reduce(config, Guardrail::kMaxLevel);
  EXPECT_EQ(last.stacks.unwind, "fp");
  EXPECT_EQ(std::ranges::count(last.labels, "tid"), 0);
  config.frequency_hz = 1;
  EXPECT_EQ(Reduce(config, 2).frequency_hz, 1u);
}

}  // namespace
}  // namespace profd
