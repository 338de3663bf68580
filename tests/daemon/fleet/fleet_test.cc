// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "tests/daemon/fleet/fake_server.h"

namespace profd::fleet {
namespace {

using namespace std::string_view_literals;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

const Question kTime = {.from = 0x01000000, .until = 0x01000000 + 60};

// A database that knows of one interval and of one stack, `main` of 5 samples,
// and gives that stack as `stacks` does.
FakeServer::Answer DatabaseWith(std::function<std::string()> stacks) {
  return [stacks = std::move(stacks)](const std::string& request) {
    const auto asks = [&](std::string_view words) {
      return request.find(words) != std::string::npos;
    };
    if (asks("AS ends")) {
      return FakeServer::Ok(
          "\0\0\0\0"
          "\0\0\0\1"
          "\12\0\0\1\0\0\0\0"
          "\7\0\0\0\0\0\0\0"
          "\2\0\0\0\0\0\0\0"
          "\1\0\0\0\0\0\0\0"
          "\0"sv);
    }
    if (asks("ARRAY JOIN")) return FakeServer::Ok("\3cpu\13nanoseconds"sv);
    if (asks("names")) return stacks();
    return FakeServer::Ok(
        "\1\0\0\0\0\0\0\0"
        "\2sh"
        "\0"
        "\5\0\0\0\0\0\0\0"
        "\62\0\0\0\0\0\0\0"sv);
  };
}

std::string Stack() {
  return FakeServer::Ok(
      "\1\0\0\0\0\0\0\0"
      "\1\4main"
      "\1\7/bin/sh"
      "\1\1"sv);
}

FleetBounds Within(milliseconds time) {
  return {.deadline = Clock::now() + time, .max_bytes = size_t{1} << 20};
}

std::string NameOf(const history::FunctionAnswer& answer, size_t line) {
  return std::string(
      answer.table.strings.Get(answer.table.lines.at(line).name));
}

TEST(FleetTest, AsksForStacksOnce) {
  std::atomic<int> asked = 0;
  const FakeServer server(DatabaseWith([&] {
    ++asked;
    return Stack();
  }));
  Fleet fleet(*ClickHouse::Make({.url = server.url()}));
  for (int i = 0; i < 3; ++i) {
    const auto answer = fleet.ReadFunctions(kTime, Within(milliseconds(20000)));
    ASSERT_TRUE(answer) << answer.error().message();
    ASSERT_EQ(answer->table.lines.size(), 1u);
    EXPECT_EQ(NameOf(*answer, 0), "main");
    EXPECT_EQ(answer->table.lines[0].self, 50u);
    EXPECT_EQ(answer->table.coverage.known_ns, 10'000'000'000u);
    EXPECT_THAT(answer->read.warnings, ElementsAre("2 of 7 samples were lost"));
  }
  EXPECT_EQ(asked, 1);
}

// A database that is too slow for the stacks costs names, and not the answer.
TEST(FleetTest, ShowsWhatCameInTime) {
  FakeServer* waiting = nullptr;
  FakeServer server(DatabaseWith([&] {
    waiting->WaitForEnd();
    return Stack();
  }));
  waiting = &server;
  Fleet fleet(*ClickHouse::Make({.url = server.url()}));
  const auto begin = Clock::now();
  const auto answer = fleet.ReadFunctions(kTime, Within(milliseconds(3000)));
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_LT(Clock::now() - begin, milliseconds(6000));
  EXPECT_EQ(answer->table.sum, 50u);
  EXPECT_EQ(NameOf(*answer, 0), "[rare callees]");
  ASSERT_EQ(answer->read.warnings.size(), 2u);
  EXPECT_THAT(answer->read.warnings[1],
              HasSubstr("5 samples of rare ones have no functions"));
}

TEST(FleetTest, RefusesStacksThatAreDamaged) {
  const FakeServer server(
      DatabaseWith([] { return FakeServer::Ok("\1\0\0"sv); }));
  Fleet fleet(*ClickHouse::Make({.url = server.url()}));
  const auto answer = fleet.ReadFlame(kTime, 10, Within(milliseconds(20000)));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ksym::ErrorCode::kCorrupt);
}

// A stack that nobody asked for is no one's, and the one asked for is missing.
TEST(FleetTest, TakesNoOtherStack) {
  const FakeServer server(DatabaseWith([] {
    return FakeServer::Ok(
        "\2\0\0\0\0\0\0\0"
        "\1\4evil"
        "\1\7/bin/sh"
        "\1\1"sv);
  }));
  Fleet fleet(*ClickHouse::Make({.url = server.url()}));
  const auto answer = fleet.ReadFunctions(kTime, Within(milliseconds(20000)));
  ASSERT_TRUE(answer) << answer.error().message();
  ASSERT_EQ(answer->table.lines.size(), 1u);
  EXPECT_EQ(NameOf(*answer, 0), "[rare callees]");
  EXPECT_THAT(answer->read.warnings[1], HasSubstr("lacks the stacks of 5"));
}

}  // namespace
}  // namespace profd::fleet
