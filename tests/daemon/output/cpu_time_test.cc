// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/cpu_time.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

Profile Busy(std::string cpus) {
  TestProfile p;
  p.Add({.user = {p.User("main")}, .count = 50});
  p.Add({.comm = "swapper/0",
         .pid = 0,
         .kernel = {p.Kernel("idle")},
         .count = 900});
  Profile profile = std::move(p).Finish();
  profile.metadata.kinds = {EventKind("cpu-clock", 100, 0)};
  profile.metadata.duration_ns = 2'000'000'000;
  profile.metadata.cpus = std::move(cpus);
  return profile;
}

// Samples stand for CPU time; what idle CPUs did is none.
TEST(CpuTimeTest, SaysHowLongItRan) {
  EXPECT_EQ(CpuTimeLine(Busy("0-3")),
            "ran 0.50 s of CPU time in 2.0 s: 0.25 of 4 CPUs");
  EXPECT_EQ(CpuTimeLine(Busy("2")),
            "ran 0.50 s of CPU time in 2.0 s: 0.25 of 1 CPU");
  EXPECT_EQ(CpuTimeLine(Busy("")),
            "ran 0.50 s of CPU time in 2.0 s: 0.25 CPUs");
}

// Samples of other kinds are none of it.
TEST(CpuTimeTest, IsOfTheFirstKind) {
  Profile profile = Busy("2");
  const std::string line = CpuTimeLine(profile);
  profile.metadata.kinds.push_back(WaitKinds("sched_switch", 100).front());
  ProfileSample waiting = profile.samples.front();
  waiting.kind = 1;
  profile.samples.push_back(waiting);
  EXPECT_EQ(CpuTimeLine(profile), line);
}

// Events that are no time, and captures of no known length, say nothing.
TEST(CpuTimeTest, NeedsTime) {
  Profile profile = Busy("0");
  profile.metadata.kinds = {EventKind("context-switches", 0, 1000)};
  EXPECT_EQ(CpuTimeLine(profile), "");
  EXPECT_FALSE(SecondsPerSample(profile.metadata));
  Profile endless = Busy("0");
  endless.metadata.duration_ns = 0;
  EXPECT_EQ(CpuTimeLine(endless), "");
  EXPECT_FALSE(CpusUsed(endless));
}

// CPUs are counted; a list that is none counts nothing.
TEST(CpuTimeTest, CountsCpus) {
  const auto count = [](const char* list) {
    return CountCpus(Busy(list).metadata);
  };
  EXPECT_EQ(count("0"), 1u);
  EXPECT_EQ(count("0-3,8,10-11"), 7u);
  for (const char* bad : {"", "x", "3-1", "0-", "-2", "0-99999999", "1,,2"}) {
    EXPECT_EQ(count(bad), 0u) << bad;
  }
}

}  // namespace
}  // namespace profd
