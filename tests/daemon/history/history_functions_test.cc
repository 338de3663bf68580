// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/history/function_table.h"
#include "daemon/history/range_profile.h"
#include "daemon/history/table_order.h"
#include "daemon/output/hot_spots.h"
#include "tests/daemon/history/sample_parts.h"
#include "tests/daemon/history/stack_parts.h"

namespace profd::history {
namespace {

constexpr size_t kRoomOfTable = size_t{64} << 20;
// The time that a sample at 10 Hz stands for.
constexpr uint64_t kTenth = kSecond / 10;

FunctionTable TableOf(const std::vector<Tables>& files,
                      Selection selection = {}) {
  FunctionAdder adder(std::move(selection), kRoomOfTable);
  for (const Tables& file : files) {
    const auto added = adder.Add(file);
    EXPECT_TRUE(added) << added.error().message();
  }
  return std::move(adder).Finish();
}

const FunctionTable::Line& LineNamed(const FunctionTable& table,
                                     std::string_view name) {
  static const FunctionTable::Line kNone;
  const auto found = std::ranges::find(
      table.lines, name,
      [&](const auto& line) { return table.strings.Get(line.name); });
  EXPECT_NE(found, table.lines.end()) << name;
  return found == table.lines.end() ? kNone : *found;
}

TEST(FunctionTable, AddsUpWhatFunctionsUsed) {
  const FunctionTable table =
      TableOf({TablesOf({PartNumber(0, 10), PartNumber(1, 10)})});
  EXPECT_EQ(table.sum, 30 * kTenth);
  EXPECT_EQ(table.kind, "cpu");
  EXPECT_EQ(table.unit, "nanoseconds");
  EXPECT_EQ(table.coverage.known_ns, 2 * kSecond);
  // The kernel's side is the inner one.
  EXPECT_EQ(LineNamed(table, "vfs_read").self, 20 * kTenth);
  EXPECT_EQ(LineNamed(table, "serve").self, 0u);
  EXPECT_EQ(LineNamed(table, "serve").total, 20 * kTenth);
  EXPECT_EQ(LineNamed(table, "main").total, 30 * kTenth);
  EXPECT_EQ(LineNamed(table, "view").self, 6 * kTenth);
  EXPECT_EQ(LineNamed(table, "view").kind, &kPythonFrame);
  // The most self first.
  EXPECT_EQ(table.strings.Get(table.lines[0].name), "vfs_read");
  EXPECT_EQ(table.strings.Get(table.lines[1].name), "view");
}

TEST(FunctionTable, AddsFilesAndRatesUpAsTime) {
  const FunctionTable table =
      TableOf({TablesOf({PartNumber(0, 10)}), TablesOf({PartNumber(1, 100)})});
  EXPECT_EQ(table.sum, 15 * kSecond / 10 + 15 * kSecond / 100);
  EXPECT_EQ(LineNamed(table, "main").total, table.sum);
}

// The stacks of a segment lie branch by branch, those of a journal as they
// came.
TEST(FunctionTable, TakesStacksInAnyOrder) {
  Tables tables = TablesOf({PartOf(0, {{.user = "main;a;b;a"},
                                       {.user = "main;c"},
                                       {.user = "main;a;c", .count = 3},
                                       {.user = "start;main;c"},
                                       {.user = "main;c;a"},
                                       {.user = "main;a;b;d"}})});
  const FunctionTable as_they_came = TableOf({tables});
  EXPECT_EQ(LineNamed(as_they_came, "a").total,
            6 * LineNamed(as_they_came, "d").total);
  EXPECT_EQ(LineNamed(as_they_came, "main").total, as_they_came.sum);
  OrderTables(tables);
  const FunctionTable in_order = TableOf({tables});
  ASSERT_EQ(in_order.lines.size(), as_they_came.lines.size());
  for (const FunctionTable::Line& line : in_order.lines) {
    const std::string_view name = in_order.strings.Get(line.name);
    EXPECT_EQ(line.self, LineNamed(as_they_came, name).self) << name;
    EXPECT_EQ(line.total, LineNamed(as_they_came, name).total) << name;
  }
}

TEST(FunctionTable, Filters) {
  const Tables file = TablesOf({PartNumber(0, 10), PartNumber(1, 10)});
  EXPECT_EQ(TableOf({file}, {.unit = "nginx"}).sum, 24 * kTenth);
  EXPECT_EQ(TableOf({file}, {.function = "rare_1"}).sum, 2 * kTenth);
  EXPECT_EQ(TableOf({file}, {.until_unix_ns = kFirstPart + kSecond}).sum,
            15 * kTenth);
  EXPECT_EQ(TableOf({file}, {.kind = "blocked"}).sum, 0u);
}

// A function that calls itself, and one without a stack.
Profile Recursion() {
  ProfileBuilder builder;
  const auto frame = [&](const char* name) {
    return builder.AddFrame(
        {.name = builder.Intern(name), .kind = &kUserFrame});
  };
  const FrameId a = frame("a"), b = frame("b");
  builder.AddSample({.user_state = StackState::kWhole,
                     .user = builder.AddStack(std::vector{a, b, a, b}),
                     .count = 3});
  builder.AddSample({.user_state = StackState::kWhole,
                     .user = builder.AddStack(std::vector{a, a}),
                     .count = 2});
  builder.AddSample({.count = 1});
  builder.Add({.taken = 6, .emitted = 6});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 10, 0)};
  metadata.start_unix_ns = kFirstPart;
  metadata.duration_ns = kSecond;
  return std::move(builder).Finish(std::move(metadata));
}

TEST(FunctionTable, CountsAFunctionOncePerStack) {
  const FunctionTable table = TableOf({TablesOf({Recursion()})});
  EXPECT_EQ(LineNamed(table, "a").self, 5 * kTenth);
  EXPECT_EQ(LineNamed(table, "a").total, 5 * kTenth);
  EXPECT_EQ(LineNamed(table, "b").self, 0u);
  EXPECT_EQ(LineNamed(table, "b").total, 3 * kTenth);
  EXPECT_EQ(LineNamed(table, "[no stack]").total, kTenth);
}

TEST(FunctionTable, SaysWhatTheTableOfAProfileSays) {
  std::vector<Profile> parts;
  for (unsigned i = 0; i < 50; ++i) parts.push_back(PartNumber(i, 10));
  const Tables file = TablesOf(parts);
  RangeProfile range({}, kRoomOfTable);
  ASSERT_TRUE(range.Add(file));
  const auto spots =
      FindHotSpots(std::move(range).Finish(), SpotKind::kFunction);
  const FunctionTable table = TableOf({file});
  ASSERT_EQ(table.lines.size(), spots.size());
  for (size_t i = 0; i < spots.size(); ++i) {
    EXPECT_EQ(table.lines[i].self, spots[i].self * kTenth);
    EXPECT_EQ(table.lines[i].total, spots[i].total * kTenth);
  }
}

TEST(FunctionTable, RefusesWhatContradictsItself) {
  Tables file = TablesOf({PartNumber(0)});
  file.rows[0].count = 17;
  FunctionAdder adder({}, kRoomOfTable);
  EXPECT_FALSE(adder.Add(file));
  EXPECT_EQ(std::move(adder).Finish().sum, 0u);
}

TEST(FunctionTable, IsBoundedInMemory) {
  FunctionAdder adder({}, 100);
  const auto added = adder.Add(TablesOf({PartNumber(0)}));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), ksym::ErrorCode::kLimit);
}

}  // namespace
}  // namespace profd::history
