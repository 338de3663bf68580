// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/history/timeline.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {
namespace {

using testing::ElementsAre;

constexpr uint64_t kTenthOfSecond = kSecond / 10;

TimelineRequest RequestOf(unsigned seconds, TimelineBy by, size_t rows = 20) {
  return {.selection = {.from_unix_ns = kFirstPart,
                        .until_unix_ns = kFirstPart + seconds * kSecond},
          .step_ns = 2 * kSecond,
          .by = by,
          .rows = rows};
}

Timeline LineOf(const std::vector<Tables>& files, TimelineRequest request) {
  auto adder = TimelineAdder::Begin(std::move(request));
  EXPECT_TRUE(adder) << adder.error().message();
  for (const Tables& file : files) {
    const auto added = adder->Add(file);
    EXPECT_TRUE(added) << added.error().message();
  }
  return std::move(*adder).Finish();
}

TEST(Timeline, AddsUpByStep) {
  const Timeline line =
      LineOf({TablesOf({PartNumber(0, 10), PartNumber(1, 10)}),
              TablesOf({PartNumber(5, 10)})},
             RequestOf(7, TimelineBy::kAll));
  ASSERT_EQ(line.steps.size(), 4u);
  EXPECT_EQ(line.steps[0].known_ns, 2 * kSecond);
  EXPECT_EQ(line.steps[0].samples, 30u);
  EXPECT_EQ(line.steps[0].lost, 2u);
  EXPECT_EQ(line.steps[1].known_ns, 0u);
  ASSERT_EQ(line.rows.size(), 1u);
  EXPECT_THAT(line.rows[0].values,
              ElementsAre(30 * kTenthOfSecond, 0u, 15 * kTenthOfSecond, 0u));
  EXPECT_EQ(line.rows[0].sum, 45 * kTenthOfSecond);
  EXPECT_EQ(line.kind, "cpu");
  EXPECT_EQ(line.coverage.holes, 1u);
}

TEST(Timeline, SplitsPartsThatGoOnInTheNextStep) {
  TimelineRequest request = RequestOf(4, TimelineBy::kAll);
  request.selection.from_unix_ns -= kSecond / 4;
  request.selection.until_unix_ns -= kSecond / 4;
  request.step_ns = kSecond;
  // Each part has three quarters in its step and the rest in the next one.
  const Timeline line =
      LineOf({TablesOf({PartNumber(0, 10), PartNumber(1, 10)})}, request);
  const uint64_t quarter = kSecond / 4;
  EXPECT_EQ(line.steps[0].known_ns, 3 * quarter);
  EXPECT_EQ(line.steps[1].known_ns, 4 * quarter);
  EXPECT_EQ(line.steps[2].known_ns, quarter);
  EXPECT_EQ(line.steps[3].known_ns, 0u);
  ASSERT_EQ(line.rows.size(), 1u);
  EXPECT_EQ(line.rows[0].sum, 30 * kTenthOfSecond);
  EXPECT_THAT(line.rows[0].values,
              ElementsAre(15 * 3 * kTenthOfSecond / 4, 15 * kTenthOfSecond,
                          15 * kTenthOfSecond / 4, 0u));
}

// Such a time is of a table and a flame graph, which have no steps.
TEST(Timeline, HasNothingOfAPartThatBeganBefore) {
  TimelineRequest request = RequestOf(1, TimelineBy::kAll);
  request.selection.from_unix_ns = kFirstPart + kSecond;
  request.selection.until_unix_ns = kFirstPart + 2 * kSecond;
  request.step_ns = kSecond;
  Tables tables = TablesOf({PartNumber(0, 10)});
  tables.parts[0].duration_ns = 3 * kSecond;
  const Timeline line = LineOf({tables}, request);
  ASSERT_EQ(line.steps.size(), 1u);
  EXPECT_EQ(line.steps[0].known_ns, 0u);
  EXPECT_TRUE(line.rows.empty());
}

TEST(Timeline, HasARowForEachNameAndTheRest) {
  const std::vector<Tables> files = {
      TablesOf({PartNumber(0, 10), PartNumber(2, 10)})};
  const Timeline units = LineOf(files, RequestOf(4, TimelineBy::kUnit));
  ASSERT_EQ(units.rows.size(), 2u);
  EXPECT_EQ(units.rows[0].name, "nginx.service");
  EXPECT_EQ(units.rows[0].sum, 24 * kTenthOfSecond);
  EXPECT_EQ(units.rows[1].name, "");
  EXPECT_FALSE(units.rows[1].is_rest);
  const Timeline commands =
      LineOf(files, RequestOf(4, TimelineBy::kCommand, 1));
  ASSERT_EQ(commands.rows.size(), 2u);
  EXPECT_EQ(commands.rows[0].name, "nginx");
  EXPECT_TRUE(commands.rows[1].is_rest);
  EXPECT_THAT(commands.rows[1].values,
              ElementsAre(3 * kTenthOfSecond, 3 * kTenthOfSecond));
  EXPECT_EQ(commands.names, 2u);
  EXPECT_FALSE(commands.is_coarse);
}

// A pod is its uid, whichever driver of kubelet wrote the path, and can be
// chosen by how that begins.
TEST(Timeline, HasARowForEachPod) {
  const std::string uid = "01234567-89ab-cdef-0123-456789abcdef";
  const auto in_cgroup = [](unsigned number, std::string_view cgroup) {
    Profile part = PartNumber(number, 10);
    const StringId id = part.strings.Intern(cgroup);
    for (ProfileSample& sample : part.samples) sample.cgroup = id;
    return part;
  };
  const std::vector<Tables> files = {TablesOf(
      {in_cgroup(0,
                 "/kubepods.slice/kubepods-pod"
                 "01234567_89ab_cdef_0123_456789abcdef.slice/x.scope"),
       in_cgroup(1, "/kubepods/besteffort/pod" + uid), PartNumber(2, 10)})};
  const Timeline pods = LineOf(files, RequestOf(4, TimelineBy::kPod));
  ASSERT_EQ(pods.rows.size(), 2u);
  EXPECT_EQ(pods.rows[0].name, uid);
  EXPECT_EQ(pods.rows[0].sum, 30 * kTenthOfSecond);
  EXPECT_EQ(pods.rows[1].name, "");
  TimelineRequest request = RequestOf(4, TimelineBy::kAll);
  request.selection.pod = "01234567-89";
  EXPECT_EQ(LineOf(files, request).rows.at(0).sum, 30 * kTenthOfSecond);
  request.selection.pod = "1234567-89";
  EXPECT_TRUE(LineOf(files, request).rows.empty());
}

TEST(Timeline, HasARowForEachProcess) {
  const Timeline line =
      LineOf({TablesOf({PartNumber(0, 10), PartNumber(2, 10)})},
             RequestOf(4, TimelineBy::kProcess));
  ASSERT_EQ(line.rows.size(), 3u);
  EXPECT_EQ(line.rows[0].name, "100");
  EXPECT_EQ(line.rows[0].comm, "nginx");
  EXPECT_EQ(line.rows[0].sum, 24 * kTenthOfSecond);
  EXPECT_EQ(line.rows[1].name, "200");
  EXPECT_EQ(line.rows[1].comm, "python3");
  EXPECT_EQ(line.rows[2].name, "202");
  EXPECT_THAT(line.rows[2].values, ElementsAre(0u, 3 * kTenthOfSecond));
}

TEST(Timeline, IsOfAFunction) {
  TimelineRequest request = RequestOf(4, TimelineBy::kAll);
  request.selection.function = "=rare_2";
  const Timeline line =
      LineOf({TablesOf({PartNumber(0, 10), PartNumber(2, 10)})}, request);
  ASSERT_EQ(line.rows.size(), 1u);
  EXPECT_THAT(line.rows[0].values, ElementsAre(0u, 2 * kTenthOfSecond));
  // Also where it did not run something is known.
  EXPECT_EQ(line.steps[0].known_ns, kSecond);
}

TEST(Timeline, MarksRestartsRatesAndTheClock) {
  const Timeline line = LineOf({TablesOf({PartNumber(0), PartNumber(2, 99)}),
                                TablesOf({PartNumber(4, 99)}, "second"),
                                TablesOf({PartNumber(0, 99)}, "second")},
                               RequestOf(6, TimelineBy::kAll));
  EXPECT_FALSE(line.steps[0].has_new_rate);
  EXPECT_TRUE(line.steps[1].has_new_rate);
  EXPECT_TRUE(line.steps[2].has_restart);
  EXPECT_FALSE(line.steps[2].has_new_rate);
  EXPECT_TRUE(line.steps[0].has_set_back);
  EXPECT_EQ(line.steps[0].known_ns, 2 * kSecond);
}

// A part of one second: `cpu` seconds of one command and, if they are sampled,
// `blocked` seconds of another one.
Profile PartWithWaits(unsigned number, uint64_t blocked, bool has_waits) {
  ProfileBuilder builder;
  builder.AddSample({.comm = builder.Intern("runs"), .count = 10});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 10, 0)};
  if (has_waits) {
    for (SampleKind& kind : WaitKinds("switch", 10)) {
      metadata.kinds.push_back(std::move(kind));
    }
    builder.AddSample({.comm = builder.Intern("waits"),
                       .kind = 2,
                       .count = 1,
                       .value = blocked * kSecond});
  }
  builder.Add({.taken = 11, .emitted = 11});
  metadata.start_unix_ns = kFirstPart + number * kSecond;
  metadata.duration_ns = kSecond;
  return std::move(builder).Finish(std::move(metadata));
}

TEST(Timeline, HasLanesForOtherKinds) {
  const std::vector<Tables> files = {
      TablesOf({PartWithWaits(0, 0, false)}),
      TablesOf({PartWithWaits(2, 3, true), PartWithWaits(3, 4, true)})};
  TimelineRequest request = RequestOf(4, TimelineBy::kCommand);
  request.has_lanes = true;
  const Timeline line = LineOf(files, request);
  ASSERT_EQ(line.lanes.size(), 3u);
  EXPECT_EQ(line.lanes[0].kind, "cpu");
  EXPECT_EQ(line.lanes[1].kind, "runnable");
  EXPECT_EQ(line.lanes[2].kind, "blocked");
  EXPECT_EQ(line.lanes[2].unit, "nanoseconds");
  // Where a kind was not sampled it is not known.
  EXPECT_THAT(line.lanes[0].known_ns, ElementsAre(kSecond, 2 * kSecond));
  EXPECT_THAT(line.lanes[2].known_ns, ElementsAre(0u, 2 * kSecond));
  // Also who only waits has a row.
  ASSERT_EQ(line.rows.size(), 2u);
  EXPECT_EQ(line.rows[0].name, "runs");
  EXPECT_THAT(line.rows[0].others,
              ElementsAre(ElementsAre(0u, 0u), ElementsAre(0u, 0u)));
  EXPECT_EQ(line.rows[1].name, "waits");
  EXPECT_EQ(line.rows[1].sum, 0u);
  EXPECT_THAT(line.rows[1].values, ElementsAre(0u, 0u));
  EXPECT_THAT(line.rows[1].others[1], ElementsAre(0u, 7 * kSecond));
  // The kind that is asked for is the first lane, and orders the rows.
  request.selection.kind = "blocked";
  const Timeline blocked = LineOf(files, request);
  EXPECT_EQ(blocked.lanes[0].kind, "blocked");
  EXPECT_EQ(blocked.lanes[1].kind, "cpu");
  EXPECT_EQ(blocked.rows[0].name, "waits");
  EXPECT_EQ(blocked.rows[0].sum, 7 * kSecond);
  // Without lanes there are only its samples.
  request.has_lanes = false;
  const Timeline alone = LineOf(files, request);
  EXPECT_EQ(alone.lanes.size(), 1u);
  EXPECT_EQ(alone.rows.size(), 1u);
}

TEST(Timeline, HasTheOtherLanesOfTheRest) {
  TimelineRequest request = RequestOf(2, TimelineBy::kCommand, 1);
  request.has_lanes = true;
  const Timeline line =
      LineOf({TablesOf({PartWithWaits(0, 3, true)})}, request);
  ASSERT_EQ(line.rows.size(), 2u);
  EXPECT_TRUE(line.rows[1].is_rest);
  EXPECT_EQ(line.rows[1].sum, 0u);
  EXPECT_THAT(line.rows[1].others,
              ElementsAre(ElementsAre(0u), ElementsAre(3 * kSecond)));
}

// A part of one second with a sample of each of many commands.
Profile ManyCommands(unsigned number, unsigned commands) {
  ProfileBuilder builder;
  for (unsigned i = 0; i < commands; ++i) {
    builder.AddSample({.comm = builder.Intern(std::to_string(i)),
                       .count = i == 7 ? 100u : 1u});
  }
  builder.Add({.taken = commands + 99, .emitted = commands + 99});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 10, 0)};
  metadata.start_unix_ns = kFirstPart + number * kSecond;
  metadata.duration_ns = kSecond;
  return std::move(builder).Finish(std::move(metadata));
}

// A part of one second in which each of many commands runs and waits.
Profile ManyCommandsThatWait(unsigned number, unsigned commands) {
  ProfileBuilder builder;
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 10, 0)};
  for (SampleKind& kind : WaitKinds("switch", 10)) {
    metadata.kinds.push_back(std::move(kind));
  }
  for (unsigned i = 0; i < commands; ++i) {
    const StringId comm = builder.Intern(std::to_string(i));
    builder.AddSample({.comm = comm, .count = 1});
    for (const SampleKindId kind : {SampleKindId{1}, SampleKindId{2}}) {
      builder.AddSample(
          {.comm = comm, .kind = kind, .count = 1, .value = kSecond});
    }
  }
  builder.Add({.taken = 3 * commands, .emitted = 3 * commands});
  metadata.start_unix_ns = kFirstPart + number * kSecond;
  metadata.duration_ns = kSecond;
  return std::move(builder).Finish(std::move(metadata));
}

// Names that stay apart have their lanes too: 128 of them would be more values
// than there is room for.
TEST(Timeline, IsBoundedWithLanes) {
  constexpr unsigned kCommands = 128, kFiles = 8, kPartsOfFile = 720;
  TimelineRequest request =
      RequestOf(kFiles * kPartsOfFile, TimelineBy::kCommand, 3);
  request.step_ns = kSecond;
  request.has_lanes = true;
  auto adder = TimelineAdder::Begin(request);
  ASSERT_TRUE(adder) << adder.error().message();
  for (unsigned file = 0; file < kFiles; ++file) {
    PartAdder parts;
    for (unsigned i = 0; i < kPartsOfFile; ++i) {
      ASSERT_TRUE(
          parts.Add(ManyCommandsThatWait(file * kPartsOfFile + i, kCommands),
                    {.boot = "b", .name = "r"}));
    }
    ASSERT_TRUE(adder->Add(parts.tables()));
    ASSERT_LE(adder->cells(), TimelineAdder::kMaxCells);
  }
  const Timeline line = std::move(*adder).Finish();
  EXPECT_TRUE(line.is_coarse);
  uint64_t sum = 0;
  for (const Timeline::Row& row : line.rows) sum += row.sum;
  EXPECT_EQ(sum, kFiles * kPartsOfFile * kCommands * kTenthOfSecond);
}

TEST(Timeline, IsBoundedWhateverTheNames) {
  // 22 steps of 100,000 names are more values than are kept.
  constexpr unsigned kCommands = 100'000, kParts = 22;
  TimelineRequest request = RequestOf(kParts, TimelineBy::kCommand, 3);
  request.step_ns = kSecond;
  auto adder = TimelineAdder::Begin(request);
  ASSERT_TRUE(adder);
  for (unsigned i = 0; i < kParts; ++i) {
    ASSERT_TRUE(adder->Add(TablesOf({ManyCommands(i, kCommands)})));
  }
  const Timeline line = std::move(*adder).Finish();
  EXPECT_TRUE(line.is_coarse);
  EXPECT_LE(line.names, TimelineAdder::kMaxNames);
  ASSERT_EQ(line.rows.size(), 4u);
  EXPECT_EQ(line.rows[0].name, "7");
  EXPECT_EQ(line.rows[0].sum, kParts * 100 * kTenthOfSecond);
  // Nothing is lost.
  uint64_t sum = 0;
  for (const Timeline::Row& row : line.rows) sum += row.sum;
  EXPECT_EQ(sum, kParts * (kCommands + 99) * kTenthOfSecond);
}

TEST(Timeline, RefusesTooManyStepsAndRows) {
  TimelineRequest request = RequestOf(10, TimelineBy::kAll);
  request.step_ns = 1;
  EXPECT_FALSE(TimelineAdder::Begin(request));
  request.step_ns = 0;
  EXPECT_FALSE(TimelineAdder::Begin(request));
  EXPECT_FALSE(TimelineAdder::Begin(RequestOf(0, TimelineBy::kAll)));
  EXPECT_FALSE(TimelineAdder::Begin(RequestOf(10, TimelineBy::kAll, 0)));
  EXPECT_FALSE(TimelineAdder::Begin(
      RequestOf(10, TimelineBy::kAll, TimelineAdder::kMaxTimelineRows + 1)));
  request = RequestOf(10, TimelineBy::kAll, TimelineAdder::kMaxLaneRows);
  request.has_lanes = true;
  EXPECT_TRUE(TimelineAdder::Begin(request));
  ++request.rows;
  EXPECT_FALSE(TimelineAdder::Begin(request));
  request = RequestOf(10, TimelineBy::kAll);
  request.step_ns = kSecond;
  request.selection.until_unix_ns =
      kFirstPart + TimelineAdder::kMaxSteps * kSecond;
  EXPECT_TRUE(TimelineAdder::Begin(request));
  ++request.selection.until_unix_ns;
  EXPECT_FALSE(TimelineAdder::Begin(request));
}

}  // namespace
}  // namespace profd::history
