// SPDX-License-Identifier: Apache-2.0
// Several samplers as one, over samplers that give what they are told to: no
// root, no kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/capture/sampler.h"

namespace profd {
namespace {

using testing::ElementsAre;

constexpr size_t kCounters = sizeof(profile_stats) / sizeof(uint64_t);
using Counters = std::array<uint64_t, kCounters>;

// What is done to the samplers, in order.
using Steps = std::vector<std::string>;

class FakeSampler : public Sampler {
 public:
  FakeSampler(std::string name, size_t kinds, Steps& steps)
      : name_(std::move(name)), steps_(steps) {
    for (size_t i = 0; i < kinds; ++i) {
      kinds_.push_back(EventKind(name_ + std::to_string(i), 0, 1));
    }
  }

  const std::vector<SampleKind>& kinds() const override { return kinds_; }
  ksym::Status Follow(const CpuList& /*online*/) override {
    return Do("follow");
  }
  ksym::Status Enable() override { return Do("enable"); }
  void Disable() override { steps_.push_back(name_ + " disable"); }
  ksym::Result<std::vector<SampledCount>> Take(uint32_t set) override {
    auto done = Do("take");
    if (!done) return ksym::Fail(std::move(done.error()));
    return set == 1 ? counts : std::vector<SampledCount>();
  }
  ksym::Result<profile_stats> ReadStats(uint32_t set) override {
    auto done = Do("read");
    if (!done) return ksym::Fail(std::move(done.error()));
    return set == 1 ? std::bit_cast<profile_stats>(stats) : profile_stats{};
  }
  EventTimes ReadTimes() const override { return times; }
  CpuList cpus() const override { return on_cpus; }

  std::string failing;  // the step that fails
  std::vector<SampledCount> counts;
  Counters stats = {};
  EventTimes times;
  CpuList on_cpus;

 private:
  ksym::Status Do(const std::string& step) {
    steps_.push_back(name_ + " " + step);
    if (step != failing) return {};
    return ksym::Fail(ksym::ErrorCode::kIo, name_ + " cannot " + step);
  }

  std::string name_;
  std::vector<SampleKind> kinds_;
  Steps& steps_;
};

class SamplersTest : public testing::Test {
 protected:
  // The sampler is the samplers', and lives as long.
  FakeSampler* Add(const std::string& name, size_t kinds) {
    auto sampler = std::make_unique<FakeSampler>(name, kinds, steps_);
    FakeSampler* const added = sampler.get();
    const bool fits = samplers_.Add(std::move(sampler)).has_value();
    return fits ? added : nullptr;
  }

  Steps steps_;
  Samplers samplers_;
};

// Kinds follow each other, and a sample's kind is its place among all.
TEST_F(SamplersTest, NumbersKindsInOrder) {
  FakeSampler* const a = Add("a", 2);
  FakeSampler* const b = Add("b", 3);
  std::vector<std::string> names;
  for (const SampleKind& kind : samplers_.kinds()) names.push_back(kind.event);
  EXPECT_THAT(names, ElementsAre("a0", "a1", "b0", "b1", "b2"));

  a->counts = {{.kind = 1, .count = 10}};
  b->counts = {{.kind = 0, .count = 20, .value = 5}, {.kind = 2, .count = 30}};
  const auto counts = samplers_.Take(1);
  ASSERT_TRUE(counts);
  ASSERT_EQ(counts->size(), 3u);
  std::vector<std::pair<int, uint64_t>> kinds;
  for (const SampledCount& count : *counts) {
    kinds.emplace_back(count.kind, count.count);
  }
  EXPECT_THAT(
      kinds, ElementsAre(std::pair(1, 10), std::pair(2, 20), std::pair(4, 30)));
  EXPECT_EQ((*counts)[1].value, 5u);
  EXPECT_TRUE(samplers_.Take(0)->empty());
}

// A sample's kind has to fit its number; one that does not fit is not added.
TEST_F(SamplersTest, RefusesTooManyKinds) {
  EXPECT_NE(Add("a", kMaxSampleKinds - 1), nullptr);
  EXPECT_NE(Add("b", 1), nullptr);
  auto sampler = std::make_unique<FakeSampler>("c", 1, steps_);
  const auto added = samplers_.Add(std::move(sampler));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), ksym::ErrorCode::kLimit);
  EXPECT_EQ(samplers_.kinds().size(), kMaxSampleKinds);
  EXPECT_TRUE(samplers_.Take(1));
  EXPECT_THAT(steps_, ElementsAre("a take", "b take"));
}

// Every counter and both times are summed.
TEST_F(SamplersTest, SumsAccounts) {
  FakeSampler* const a = Add("a", 1);
  FakeSampler* const b = Add("b", 1);
  Counters sums = {};
  for (size_t i = 0; i < kCounters; ++i) {
    a->stats.at(i) = i + 1;
    b->stats.at(i) = 100 * (i + 1);
    sums.at(i) = 101 * (i + 1);
  }
  const auto stats = samplers_.ReadStats(1);
  ASSERT_TRUE(stats);
  EXPECT_EQ(std::bit_cast<Counters>(*stats), sums);

  a->times = {.enabled_ns = 10, .running_ns = 5};
  b->times = {.enabled_ns = 100, .running_ns = 50};
  EXPECT_EQ(samplers_.ReadTimes().enabled_ns, 110u);
  EXPECT_EQ(samplers_.ReadTimes().running_ns, 55u);
}

// The first sampler is the CPU's, and says where the capture is.
TEST_F(SamplersTest, IsWhereTheFirstOneIs) {
  Add("a", 1)->on_cpus = {0, 2};
  Add("b", 1)->on_cpus = {1};
  EXPECT_EQ(samplers_.cpus(), (CpuList{0, 2}));
}

// One that fails ends what is done, with its error; all are disabled.
TEST_F(SamplersTest, StopsAtTheFirstFailure) {
  Add("a", 1);
  FakeSampler* const b = Add("b", 1);
  Add("c", 1);
  b->failing = "follow";
  EXPECT_FALSE(samplers_.Follow({}));
  b->failing = "enable";
  const auto enabled = samplers_.Enable();
  ASSERT_FALSE(enabled);
  EXPECT_EQ(enabled.error().message(), "b cannot enable");
  b->failing = "take";
  EXPECT_FALSE(samplers_.Take(1));
  b->failing = "read";
  EXPECT_FALSE(samplers_.ReadStats(1));
  samplers_.Disable();
  EXPECT_THAT(steps_,
              ElementsAre("a follow", "b follow", "a enable", "b enable",
                          "a take", "b take", "a read", "b read", "a disable",
                          "b disable", "c disable"));
}

}  // namespace
}  // namespace profd
