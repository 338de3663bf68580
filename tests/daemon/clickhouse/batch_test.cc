// SPDX-License-Identifier: Apache-2.0
#include "daemon/clickhouse/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "daemon/clickhouse/stack_number.h"
#include "daemon/profile/label_set.h"
#include "tests/daemon/clickhouse/row_decoder.h"
#include "tests/daemon/output/test_profile.h"

namespace profd::clickhouse {
namespace {

using ::testing::ElementsAre;

// TestProfile's interval.
constexpr uint32_t kTime = 1'700'000'000;
constexpr uint32_t kHour = kTime - kTime % 3600;
constexpr uint16_t kDay = kTime / 86'400;
// Samples at 99 Hz.
constexpr uint64_t kPeriodNs = 10'101'010;

std::map<uint64_t, StackRow> StacksOf(const Batch& batch) {
  std::map<uint64_t, StackRow> stacks;
  for (const Batch::Stack& stack : batch.stacks) {
    const StackRow row = DecodeStack(stack.row);
    EXPECT_EQ(row.stack, stack.number);
    EXPECT_EQ(row.day, batch.day);
    EXPECT_TRUE(stacks.try_emplace(row.stack, row).second) << "twice";
  }
  return stacks;
}

// A pod's process, and a unit's: every column has what its name says.
TEST(BatchTest, HasARowForEachSample) {
  const std::string id(64, 'a');
  TestProfile p;
  p.Add({.comm = "worker",
         .cgroup = "/kubepods.slice/kubepods-pod12345678_1234_1234_1234_"
                   "123456789012.slice/cri-containerd-" +
                   id + ".scope",
         .user = {p.User("spin"), p.User("main", "/bin/a")},
         .kernel = {p.Kernel("vfs_read")},
         .count = 3,
         .labels = {{.key = std::string(kPodContainerLabel), .value = "web"},
                    {.key = std::string(kNamespaceLabel), .value = "prod"},
                    {.key = std::string(kPodLabel), .value = "web-1"},
                    {.key = "service.version", .value = "1.2"}}});
  p.Add({.comm = "nginx",
         .cgroup = "/system.slice/nginx.service",
         .user = {p.User("main", "/bin/a")},
         .count = 2});
  const Profile profile = std::move(p).Finish();
  const Batch batch = MakeBatch(profile, {}, "0123456789abcdef");
  EXPECT_EQ(batch.day, kDay);
  std::vector<SampleRow> rows = DecodeSamples(batch.samples);
  ASSERT_EQ(rows.size(), 2u);
  if (rows[0].count != 3) std::swap(rows[0], rows[1]);
  const SampleRow& pod = rows[0];
  EXPECT_EQ(pod.time, kTime);
  EXPECT_EQ(pod.hour, kHour);
  EXPECT_THAT(pod.texts,
              ElementsAre("web", "host", "0123456789abcdef", "cpu", "worker",
                          "", "prod", "web-1", "web", id, "1.2"));
  EXPECT_EQ(pod.parked, 0);
  EXPECT_EQ(pod.count, 3u);
  EXPECT_EQ(pod.value, 3 * kPeriodNs);
  EXPECT_THAT(rows[1].texts,
              ElementsAre("nginx", "host", "0123456789abcdef", "cpu", "nginx",
                          "nginx.service", "", "", "", "", ""));
  EXPECT_EQ(rows[1].value, 2 * kPeriodNs);

  const auto stacks = StacksOf(batch);
  ASSERT_EQ(stacks.size(), 2u);
  const StackRow& both = stacks.at(pod.stack);
  EXPECT_THAT(both.names, ElementsAre("main", "spin", "vfs_read"));
  EXPECT_THAT(both.modules, ElementsAre("/bin/a", "/bin/app", "[kernel]"));
  EXPECT_THAT(both.kinds, ElementsAre(1, 1, 4));
  // docs/fleet.md has this stack's number.
  EXPECT_EQ(rows[1].stack, 0x215b6d3875d5f5ab);
  EXPECT_THAT(stacks.at(rows[1].stack).names, ElementsAre("main"));
}

TEST(BatchTest, HasARowOfTheInterval) {
  const Batch batch = MakeBatch(ExampleProfile(1), {}, "r");
  const IntervalRow row = DecodeInterval(batch.interval);
  EXPECT_EQ(row.time, kTime);
  EXPECT_EQ(row.host, "host");
  EXPECT_EQ(row.run, "r");
  EXPECT_EQ(row.duration_ns, 10'000'000'000u);
  EXPECT_EQ(row.cpus, 4u);
  EXPECT_EQ(row.kernel, "6.1.0");
  EXPECT_EQ(row.architecture, "x86_64");
  EXPECT_EQ(row.version, "0.1.0");
  EXPECT_THAT(row.kinds, ElementsAre("cpu"));
  EXPECT_THAT(row.units, ElementsAre("nanoseconds"));
  EXPECT_THAT(row.frequencies, ElementsAre(99));
  EXPECT_EQ(row.taken, 120u);
  EXPECT_EQ(row.lost, 8u);
  EXPECT_EQ(row.rows, DecodeSamples(batch.samples).size());
}

// Nothing is lost of what a profile has; marks stand for what is missing of
// stacks.
TEST(BatchTest, KeepsEachSampleOnce) {
  const Profile profile = ExampleProfile(3);
  uint64_t wanted = 0;
  for (const ProfileSample& sample : profile.samples) wanted += sample.count;
  const Batch batch = MakeBatch(profile, {}, "r");
  const auto stacks = StacksOf(batch);
  uint64_t sum = 0;
  std::map<std::string, uint64_t> by_root;
  for (const SampleRow& row : DecodeSamples(batch.samples)) {
    sum += row.count;
    const StackRow& stack = stacks.at(row.stack);
    ASSERT_EQ(stack.names.size(), stack.kinds.size());
    ASSERT_EQ(stack.names.size(), stack.modules.size());
    by_root[stack.names.empty() ? "" : stack.names[0]] += row.count;
    if (!stack.names.empty() && stack.names[0].starts_with("[trunc")) {
      EXPECT_EQ(stack.kinds[0], 0);
    }
  }
  EXPECT_EQ(sum, wanted);
  EXPECT_EQ(by_root["[truncated]"], 4u);
  EXPECT_EQ(by_root["[Missed User Stack]"], 1u);
  EXPECT_EQ(by_root[""], 6u);
}

// Two rows never differ in their numbers alone, or the table would make one of
// them: pids, and names that are equal once they are printable.
TEST(BatchTest, AddsUpWhatLooksTheSame) {
  TestProfile p;
  for (const uint32_t pid : {1u, 2u}) {
    p.Add({.comm = "a\x01", .pid = pid, .user = {p.User("f\x02")}});
    p.Add({.comm = "a\x02", .pid = pid, .user = {p.User("f\x01")}});
  }
  const Batch batch = MakeBatch(std::move(p).Finish(), {}, "r");
  const auto rows = DecodeSamples(batch.samples);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 4u);
  EXPECT_EQ(rows[0].texts[4], "a?");
  EXPECT_EQ(batch.stacks.size(), 1u);
}

// Kinds are apart; one that has values keeps their sum.
TEST(BatchTest, KeepsKindsApart) {
  TestProfile p;
  p.Add({.user = {p.User("f")}, .count = 2});
  p.Add({.user = {p.User("f")}, .kind = 1, .count = 5, .value = 12345});
  Profile profile = std::move(p).Finish();
  profile.metadata.kinds.push_back(WaitKinds("wait", 99)[1]);
  const Batch batch = MakeBatch(profile, {}, "r");
  std::map<std::string, SampleRow> rows;
  for (const SampleRow& row : DecodeSamples(batch.samples)) {
    rows[row.texts[3]] = row;
  }
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows["cpu"].value, 2 * kPeriodNs);
  EXPECT_EQ(rows["blocked"].count, 5u);
  EXPECT_EQ(rows["blocked"].value, 12345u);
  EXPECT_EQ(rows["cpu"].stack, rows["blocked"].stack);
  EXPECT_THAT(DecodeInterval(batch.interval).kinds,
              ElementsAre("cpu", "blocked"));
}

// Labels that nobody wants are in no row.
TEST(BatchTest, ObeysLabels) {
  TestProfile p;
  p.Add({.cgroup = "/system.slice/nginx.service", .user = {p.User("f")}});
  const Batch batch =
      MakeBatch(std::move(p).Finish(),
                {.comm = false, .unit = false, .container_id = false}, "r");
  EXPECT_THAT(DecodeSamples(batch.samples)[0].texts,
              ElementsAre("unknown_service", "host", "r", "cpu", "", "", "", "",
                          "", "", ""));
}

}  // namespace
}  // namespace profd::clickhouse
