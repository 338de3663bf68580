// SPDX-License-Identifier: Apache-2.0
// Adds a sampler that no other file knows to a real capture. Needs root, or
// CAP_BPF and CAP_PERFMON; skips otherwise.

#include "daemon/capture/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/capture/capture.h"
#include "daemon/naming/resolve.h"
#include "daemon/output/format.h"
#include "daemon/perf/privileges.h"
#include "daemon/profile/kind_select.h"
#include "daemon/raw/raw_file.h"

namespace profd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kCalls = 3;
constexpr uint64_t kWaits = 2;
constexpr uint64_t kWaitedNs = 7'000'000;

// Samples of this process, of two kinds: calls, which are counted, and waits,
// each of which took its time.
class ToySampler : public Sampler {
 public:
  const std::vector<SampleKind>& kinds() const override { return kinds_; }
  ksym::Status Follow(const CpuList& online) override {
    followed_ |= !online.empty();
    return {};
  }
  ksym::Status Enable() override {
    enabled_ = true;
    return {};
  }
  void Disable() override { enabled_ = false; }
  ksym::Result<std::vector<SampledCount>> Take(uint32_t set) override {
    if (!followed_ || std::exchange(given_, true)) {
      return std::vector<SampledCount>();
    }
    taken_[set] = kCalls + kWaits;
    profile_key key = {};
    key.tgid = static_cast<uint32_t>(::getpid());
    std::strcpy(key.comm, "toy");
    return std::vector<SampledCount>{
        {.key = key, .kind = 0, .count = kCalls},
        {.key = key, .kind = 1, .count = kWaits, .value = kWaitedNs}};
  }
  ksym::Result<profile_stats> ReadStats(uint32_t set) override {
    profile_stats stats = {};
    stats.taken = taken_.at(set);
    return stats;
  }

 private:
  std::vector<SampleKind> kinds_ = {EventKind("toy-calls", 0, 1),
                                    {.name = "toy-waits",
                                     .unit = "nanoseconds",
                                     .event = "toy",
                                     .has_values = true}};
  std::array<uint64_t, PROFILE_SETS> taken_ = {};
  bool followed_ = false;
  bool enabled_ = false;
  bool given_ = false;
};

class NoNames : public UserNames {
 public:
  ksym::UserSymbol Find(const ksym::ProcessImage& /*image*/,
                        ksym::Address /*address*/) override {
    ksym::UserSymbol symbol;
    symbol.reason = ksym::Unresolved::kUnmapped;
    return symbol;
  }
};

class SamplerTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto allowed = CheckCapturePrivileges();
    if (!allowed) GTEST_SKIP() << allowed.error().message();
    CaptureOptions options;
    options.event = "cpu-clock";
    options.rate.frequency_hz = 199;
    options.more_samplers = {[](BpfObject&) {
      return ksym::Result<std::unique_ptr<Sampler>>(
          std::make_unique<ToySampler>());
    }};
    auto capture = Capture::Start(std::move(options));
    ASSERT_TRUE(capture) << capture.error().message();
    ASSERT_TRUE(capture->Enable());
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (std::chrono::steady_clock::now() < until) capture->Poll();
    auto raw = capture->Stop();
    ASSERT_TRUE(raw) << raw.error().message();
    raw_.profile = std::move(*raw);
  }

  Profile Named() const {
    Resolver resolver({});
    ProfileBuilder builder;
    NoNames names;
    resolver.Add(raw_.profile, names, builder);
    return std::move(builder).Finish(raw_.profile.metadata);
  }

  RawCapture raw_;
};

// A sampler's kinds come behind the CPU's, its samples beside those of the CPU
// and into one account.
TEST_F(SamplerTest, SamplesOfAllKindsComeOut) {
  std::vector<std::string> names;
  for (const SampleKind& kind : raw_.profile.metadata.kinds) {
    names.push_back(kind.name);
  }
  EXPECT_THAT(names, ElementsAre("cpu", "toy-calls", "toy-waits"));
  const Accounting& accounting = raw_.profile.accounting;
  EXPECT_EQ(accounting.taken, accounting.emitted + accounting.lost());
  std::array<uint64_t, 3> counts = {};
  std::array<uint64_t, 3> values = {};
  for (const RawSample& sample : raw_.profile.samples) {
    counts.at(sample.kind) += sample.count;
    values.at(sample.kind) += sample.value;
  }
  EXPECT_GT(counts[0], 0u);
  EXPECT_EQ(counts[0] + kCalls + kWaits, accounting.emitted);
  EXPECT_EQ(counts[1], kCalls);
  EXPECT_EQ(counts[2], kWaits);
  EXPECT_EQ(values, (std::array<uint64_t, 3>{0, 0, kWaitedNs}));
}

// A raw capture keeps kinds and values.
TEST_F(SamplerTest, RawCapturesCarryThem) {
  std::string file;
  ASSERT_TRUE(WriteRawCapture(raw_, file));
  const auto read = ReadRawCapture(file);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->profile.metadata.kinds, raw_.profile.metadata.kinds);
  uint64_t waited = 0;
  for (const RawSample& sample : read->profile.samples) {
    if (sample.kind == 2) waited += sample.value;
  }
  EXPECT_EQ(waited, kWaitedNs);
}

// JSON has all kinds, folded stacks the first one or the one that is asked for,
// of time in microseconds.
TEST_F(SamplerTest, OutputsShowThem) {
  Profile profile = Named();
  const std::string json = Render(profile, OutputFormat::kJson, {});
  EXPECT_THAT(json, HasSubstr(R"({"name":"toy-waits","unit":"nanoseconds",)"
                              R"("event":"toy","has_values":true})"));
  EXPECT_THAT(json, HasSubstr(R"("count":2,"value":7000000)"));
  EXPECT_THAT(Render(profile, OutputFormat::kFolded, {}),
              Not(HasSubstr("toy")));
  ASSERT_TRUE(ShowKind("toy-waits", profile));
  EXPECT_EQ(Render(profile, OutputFormat::kFolded, {}), "toy 7000\n");
  ASSERT_TRUE(ShowKind("toy-calls", profile));
  EXPECT_EQ(Render(profile, OutputFormat::kFolded, {}), "toy 3\n");
  EXPECT_FALSE(ShowKind("toy", profile));
}

}  // namespace
}  // namespace profd
