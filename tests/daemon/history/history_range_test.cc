// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "daemon/history/part_counts.h"
#include "daemon/history/range_profile.h"
#include "daemon/history/table_check.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {
namespace {

constexpr size_t kRoomOfRange = size_t{64} << 20;

Profile Select(const Tables& tables, Selection selection) {
  RangeProfile range(std::move(selection), kRoomOfRange);
  const auto added = range.Add(tables);
  EXPECT_TRUE(added) << added.error().message();
  return std::move(range).Finish();
}

uint64_t CountOf(const Profile& profile) {
  uint64_t count = 0;
  for (const ProfileSample& sample : profile.samples) count += sample.count;
  return count;
}

TEST(RangeProfile, GivesWhatWasSampled) {
  const Profile profile =
      Select(TablesOf({PartNumber(0), PartNumber(1), PartNumber(2)}), {});
  EXPECT_EQ(CountOf(profile), 45u);
  EXPECT_EQ(profile.accounting.taken, 48u);
  EXPECT_EQ(profile.accounting.emitted, 45u);
  EXPECT_EQ(profile.accounting.lost(), 3u);
  EXPECT_EQ(profile.accounting.damaged_by_cause[2], 6u);
  EXPECT_EQ(profile.metadata.start_unix_ns, kFirstPart);
  EXPECT_EQ(profile.metadata.duration_ns, 3 * kSecond);
  EXPECT_EQ(profile.metadata.hostname, "host");
  ASSERT_EQ(profile.metadata.kinds.size(), 1u);
  EXPECT_EQ(profile.metadata.kinds[0], EventKind("cpu-clock", 19, 0));
  // nginx once, a rare stack and a process of Python for each part.
  EXPECT_EQ(profile.samples.size(), 7u);
}

TEST(RangeProfile, KeepsFramesAndStates) {
  const Profile profile = Select(TablesOf({PartNumber(0)}), {});
  const auto& first = profile.samples[0];
  EXPECT_EQ(profile.String(first.comm), "nginx");
  EXPECT_EQ(profile.String(first.cgroup), "/system.slice/nginx.service");
  const auto user = profile.Stack(first.user);
  ASSERT_EQ(user.size(), 2u);
  EXPECT_EQ(profile.String(profile.frames[user[0]].name), "serve");
  EXPECT_EQ(profile.String(profile.frames[user[1]].name), "main");
  EXPECT_EQ(profile.String(profile.frames[user[1]].build_id), "00ff");
  const auto kernel = profile.Stack(first.kernel);
  ASSERT_EQ(kernel.size(), 1u);
  EXPECT_EQ(profile.frames[kernel[0]].kind, &kKernelFrame);
  EXPECT_EQ(profile.samples[1].user_state, StackState::kTruncated);
  const Frame& python =
      profile.frames[profile.Stack(profile.samples[2].user)[0]];
  EXPECT_EQ(python.kind, &kPythonFrame);
  EXPECT_EQ(profile.String(python.file), "/srv/app.py");
  EXPECT_EQ(profile.String(python.function), "App.view");
  EXPECT_EQ(python.first_line, 33u);
  EXPECT_EQ(python.line, 0u);
}

TEST(RangeProfile, TakesPartsThatBeginWithin) {
  const Tables tables = TablesOf({PartNumber(0), PartNumber(1), PartNumber(2)});
  const Profile profile =
      Select(tables, {.from_unix_ns = kFirstPart + kSecond,
                      .until_unix_ns = kFirstPart + 2 * kSecond});
  EXPECT_EQ(CountOf(profile), 15u);
  EXPECT_EQ(profile.metadata.start_unix_ns, kFirstPart + kSecond);
  EXPECT_EQ(CountOf(Select(tables, {.from_unix_ns = kFirstPart + 3 * kSecond})),
            0u);
}

TEST(RangeProfile, TakesAPartThatAllOfItLiesWithin) {
  Tables tables = TablesOf({PartNumber(0), PartNumber(1)});
  tables.parts[0].duration_ns = 3 * kSecond;
  tables.parts[1].start_unix_ns = kFirstPart + 5 * kSecond;
  const auto count = [&](uint64_t from, uint64_t until) {
    const Profile profile =
        Select(tables, {.from_unix_ns = kFirstPart + from,
                        .until_unix_ns = kFirstPart + until});
    EXPECT_EQ(profile.accounting.emitted, CountOf(profile));
    if (CountOf(profile) != 0) {
      EXPECT_EQ(profile.metadata.start_unix_ns, kFirstPart);
      EXPECT_EQ(profile.metadata.duration_ns, 3 * kSecond);
    }
    return CountOf(profile);
  };
  EXPECT_EQ(count(kSecond, 2 * kSecond), 15u);
  EXPECT_EQ(count(2 * kSecond, 3 * kSecond), 15u);
  // Some of it lies elsewhere, and none begins in what lies here.
  EXPECT_EQ(count(kSecond, 3 * kSecond + 1), 0u);
  // It ends before it begins.
  EXPECT_EQ(count(2 * kSecond, kSecond), 0u);
}

TEST(RangeProfile, Filters) {
  const Tables tables = TablesOf({PartNumber(0), PartNumber(1)});
  const auto count = [&](Selection selection) {
    const Profile profile = Select(tables, std::move(selection));
    // What is left out counts neither as taken nor as emitted.
    EXPECT_EQ(profile.accounting.emitted, CountOf(profile));
    EXPECT_EQ(profile.accounting.taken,
              profile.accounting.emitted + profile.accounting.lost());
    return CountOf(profile);
  };
  EXPECT_EQ(count({.unit = "nginx"}), 24u);
  EXPECT_EQ(count({.unit = "nginx.service"}), 24u);
  EXPECT_EQ(count({.unit = "ngin"}), 0u);
  EXPECT_EQ(count({.command = "python3"}), 6u);
  EXPECT_EQ(count({.pid = 201}), 3u);
  EXPECT_EQ(count({.kind = "cpu"}), 30u);
  EXPECT_EQ(count({.kind = "blocked"}), 0u);
  EXPECT_EQ(count({.function = "vfs_read"}), 20u);
  EXPECT_EQ(count({.function = "main"}), 30u);
  EXPECT_EQ(count({.function = "rare_1"}), 2u);
  EXPECT_EQ(count({.function = "=rare_1"}), 2u);
  EXPECT_EQ(count({.function = "=rare_"}), 0u);
}

// What is said of stacks is said of those that were chosen.
TEST(RangeProfile, CountsIncompleteStacksOfWhatWasChosen) {
  const Tables tables = TablesOf({PartNumber(0), PartNumber(1)});
  const auto truncated = [&](Selection selection) {
    const Accounting accounting =
        Select(tables, std::move(selection)).accounting;
    EXPECT_EQ(accounting.damaged_by_cause[0], 0u);
    EXPECT_EQ(accounting.damaged_by_cause[3], 0u);
    return accounting.damaged_by_cause[2];
  };
  EXPECT_EQ(truncated({}), 4u);
  EXPECT_EQ(truncated({.unit = "nginx"}), 4u);
  EXPECT_EQ(truncated({.command = "python3"}), 0u);
  EXPECT_EQ(truncated({.function = "rare_1"}), 2u);
}

// Each state of a stack is one of the causes, once a sample.
TEST(PartCounts, CountsStatesAsCauses) {
  const auto damage = [](StackState user, StackState kernel) {
    Tables tables = TablesOf({PartNumber(0)});
    tables.series[0].user_state = static_cast<uint8_t>(user);
    tables.series[0].kernel_state = static_cast<uint8_t>(kernel);
    PartCounts counts(tables);
    for (const Row& row : tables.rows) {
      if (row.series == 0) {
        counts.Take(row);
      } else {
        counts.LeaveOut(row);
      }
    }
    const Accounting accounting = counts.Of(0);
    EXPECT_GT(accounting.emitted, 0u);
    std::array<bool, kDamageCauses> causes = {};
    for (size_t i = 0; i < kDamageCauses; ++i) {
      const uint64_t count = accounting.damaged_by_cause[i];
      EXPECT_TRUE(count == 0 || count == accounting.emitted);
      causes[i] = count != 0;
    }
    return causes;
  };
  using Causes = std::array<bool, kDamageCauses>;
  using enum StackState;
  EXPECT_EQ(damage(kWhole, kNone), Causes());
  EXPECT_EQ(damage(kFaulted, kFaulted), (Causes{true, false, false, false}));
  EXPECT_EQ(damage(kWhole, kCollided), (Causes{false, true, false, false}));
  EXPECT_EQ(damage(kTruncated, kTruncated),
            (Causes{false, false, true, false}));
  EXPECT_EQ(damage(kBroken, kWhole), (Causes{false, false, false, true}));
  EXPECT_EQ(damage(kBeyondCopy, kTruncated),
            (Causes{false, false, true, true}));
}

TEST(RangeProfile, FindsNamesAsTheyArePrinted) {
  ProfileBuilder builder;
  builder.AddSample({.comm = builder.Intern("a\x1b"
                                            "b"),
                     .count = 3});
  builder.AddSample({.comm = builder.Intern("ab"), .count = 4});
  builder.Add({.taken = 7, .emitted = 7});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 10, 0)};
  metadata.duration_ns = kSecond;
  const Tables tables =
      TablesOf({std::move(builder).Finish(std::move(metadata))});
  EXPECT_EQ(CountOf(Select(tables, {.command = "a\x1b"
                                               "b"})),
            3u);
  EXPECT_EQ(CountOf(Select(tables, {.command = "a?b"})), 3u);
  EXPECT_EQ(CountOf(Select(tables, {.command = "a??b"})), 0u);
}

TEST(RangeProfile, AddsSamplesOfSeveralRatesUpAsTime) {
  const Profile profile =
      Select(TablesOf({PartNumber(0, 10), PartNumber(1, 100)}), {});
  ASSERT_EQ(profile.metadata.kinds.size(), 1u);
  EXPECT_TRUE(profile.metadata.kinds[0].has_values);
  EXPECT_EQ(profile.metadata.kinds[0].name, "cpu");
  uint64_t value = 0;
  for (const ProfileSample& sample : profile.samples) value += sample.value;
  EXPECT_EQ(value, 15 * kSecond / 10 + 15 * kSecond / 100);
}

TEST(RangeProfile, SaysHolesAndRestarts) {
  RangeProfile range({}, kRoomOfRange);
  ASSERT_TRUE(range.Add(TablesOf({PartNumber(0), PartNumber(1)})));
  ASSERT_TRUE(range.Add(TablesOf({PartNumber(60), PartNumber(61)}, "second")));
  // The clock goes back.
  ASSERT_TRUE(range.Add(TablesOf({PartNumber(30)}, "second")));
  const RangeCoverage& coverage = range.coverage();
  EXPECT_EQ(coverage.parts, 5u);
  EXPECT_EQ(coverage.restarts, 1u);
  EXPECT_EQ(coverage.set_back, 1u);
  EXPECT_EQ(coverage.holes, 1u);
  EXPECT_EQ(coverage.hole_ns, 58 * kSecond);
  ASSERT_EQ(coverage.first_holes.size(), 1u);
  EXPECT_EQ(coverage.first_holes[0].from_unix_ns, kFirstPart + 2 * kSecond);
  EXPECT_TRUE(coverage.first_holes[0].is_restart);
}

TEST(RangeProfile, RefusesWhatContradictsItself) {
  Tables too_many = TablesOf({PartNumber(0)});
  too_many.rows[0].count = 17;
  Tables unknown = TablesOf({PartNumber(0)});
  unknown.functions[0].kind = unknown.functions[0].name;
  for (const Tables* tables : {&too_many, &unknown}) {
    RangeProfile range({}, kRoomOfRange);
    EXPECT_FALSE(range.Add(*tables));
    // And nothing of it is there.
    ASSERT_TRUE(range.Add(TablesOf({PartNumber(1)})));
    EXPECT_EQ(CountOf(std::move(range).Finish()), 15u);
  }
}

// A few hundred kilobytes would be hours of walking.
TEST(RangeProfile, RefusesTooManyDeepStacks) {
  Tables tables = TablesOf({PartNumber(0)});
  const auto trunk = static_cast<uint32_t>(tables.nodes.size());
  for (uint32_t i = 0; i < 4000; ++i) {
    tables.nodes.push_back({.parent = i == 0 ? 0 : trunk + i - 1});
  }
  const Row row = {.series = 0, .user = trunk, .count = 0};
  const auto leaf = [&](uint32_t number) {
    tables.nodes.push_back({.parent = trunk + 3999, .function = number});
    tables.rows.push_back(row);
    tables.rows.back().user = static_cast<uint32_t>(tables.nodes.size() - 1);
  };
  for (uint32_t i = 0; i < 67'000; ++i) leaf(0);
  EXPECT_TRUE(CheckTables(tables));
  for (uint32_t i = 0; i < 200; ++i) leaf(0);
  const auto checked = CheckTables(tables);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message(), "has too many deep stacks");
}

TEST(RangeProfile, IsBoundedInMemory) {
  std::vector<Profile> parts;
  for (unsigned i = 0; i < 1000; ++i) parts.push_back(PartNumber(i));
  RangeProfile range({}, 1000);
  const auto added = range.Add(TablesOf(parts));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), ksym::ErrorCode::kLimit);
}

}  // namespace
}  // namespace profd::history
