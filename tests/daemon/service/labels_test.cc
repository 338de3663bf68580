// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/labels.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "daemon/service/cgroup_names.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// The second version's path unless it is the root, then systemd's.
TEST(ChooseCgroupTest, TakesWhatSaysMost) {
  EXPECT_EQ(ChooseCgroup("0::/a.slice/b.service\n"), "/a.slice/b.service");
  EXPECT_EQ(ChooseCgroup("2:cpu:/c\n1:name=systemd:/s\n0::/u\n"), "/u");
  EXPECT_EQ(ChooseCgroup("2:cpu,cpuacct:/c\n1:name=systemd:/s\n0::/\n"), "/s");
  EXPECT_EQ(ChooseCgroup("9:name=systemd:/\n4:memory:/m:1\n0::/\n"), "/m:1");
  EXPECT_EQ(ChooseCgroup("0::/\n"), "/");
  for (const char* text : {"", "\n", "0", "0:", "0::", "::::\n", "0::x"}) {
    EXPECT_EQ(ChooseCgroup(text), "") << text;
  }
}

// This process's start, as the sampler says it.
uint64_t OwnStartNs() {
  const auto stat = ksym::ReadFile("/proc/self/stat", 1 << 16);
  std::string_view rest = *stat;
  rest.remove_prefix(rest.rfind(") ") + 2);
  for (int i = 0; i < 19; ++i) ksym::TakeField(rest, ' ');
  const uint64_t ticks =
      ksym::ParseUnsigned(ksym::TakeField(rest, ' '), 10).value_or(0);
  return ticks * 1'000'000'000 / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
}

// A process that lives has its cgroup; one that had its pid before it, or that
// is gone, has none and its samples are counted; idle is in none.
TEST(CgroupNamesTest, LabelsWhatLives) {
  const auto text = ksym::ReadFile("/proc/self/cgroup", 1 << 16);
  if (!text) GTEST_SKIP() << "no cgroups here";
  ServiceCounters counters;
  CgroupNames names(counters);
  const auto self = static_cast<uint32_t>(::getpid());
  const ksym::ProcessId alive = {.pid = self, .start_ns = OwnStartNs()};
  const ksym::ProcessId before = {.pid = self, .start_ns = 1};
  RawProfile profile;
  profile.samples = {{.process = alive, .comm = {}, .count = 5},
                     {.process = before, .comm = {}, .count = 2},
                     {.process = {}, .comm = {}, .count = 9}};
  names.NoteSample({}, 1);
  names.Label(profile);
  ASSERT_EQ(profile.cgroups.size(), 1u);
  EXPECT_EQ(profile.cgroups.at(alive), ChooseCgroup(*text));
  EXPECT_EQ(counters.samples_without_cgroup, 2u);
}

// An id of which there is no cgroup any more is no path.
TEST(CgroupNamesTest, UnknownIdsAreNotKnown) {
  ServiceCounters counters;
  CgroupNames names(counters);
  const ksym::ProcessId gone = {.pid = 0x7fffffff, .start_ns = 1};
  names.NoteSample(gone, 0x7fffffff00000000);
  RawProfile profile;
  profile.samples = {{.process = gone, .comm = {}, .count = 3}};
  names.Label(profile);
  EXPECT_TRUE(profile.cgroups.empty());
  EXPECT_EQ(counters.samples_without_cgroup, 3u);
}

// Threads are shown where samples have labels only.
TEST(LabelsTest, OptionsOfFormats) {
  const auto words = std::to_array<std::string>({"host", "tid", "unit"});
  const Labels labels = Labels::Of(words);
  EXPECT_TRUE(labels.tid);
  const OutputOptions options = OptionsFor(OutputFormat::kPprof, labels);
  EXPECT_EQ(options.by, OutputOptions::By::kTid);
  EXPECT_TRUE(options.labels.host);
  EXPECT_TRUE(options.labels.unit);
  EXPECT_FALSE(options.labels.pid);
  EXPECT_EQ(OptionsFor(OutputFormat::kFolded, labels).by,
            OutputOptions::By::kComm);
}

}  // namespace
}  // namespace profd
