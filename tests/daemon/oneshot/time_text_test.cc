// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/time_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <optional>

namespace profd {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// 2026-11-25 08:00:00 in Berlin, where it is UTC+1.
constexpr uint64_t kNow = 1'795'590'000 * kSecond;

class MomentTest : public testing::Test {
 protected:
  MomentTest() {
    ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    ::tzset();
  }
  ~MomentTest() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  static uint64_t Seconds(std::string_view text,
                          std::optional<uint64_t> after = std::nullopt) {
    const auto moment = ParseMoment(text, kNow, after);
    EXPECT_TRUE(moment) << text;
    return moment.value_or(0) / kSecond;
  }
};

TEST_F(MomentTest, IsSomeTimeAgo) {
  EXPECT_EQ(Seconds("now"), kNow / kSecond);
  EXPECT_EQ(Seconds("-30s"), kNow / kSecond - 30);
  EXPECT_EQ(Seconds("-15m"), kNow / kSecond - 900);
  EXPECT_EQ(Seconds("-2h"), kNow / kSecond - 7200);
  EXPECT_EQ(Seconds("-1d"), kNow / kSecond - 86'400);
  EXPECT_EQ(Seconds("-99999d"), 0u);
}

TEST_F(MomentTest, IsTheLastSuchTimeOfDay) {
  EXPECT_EQ(Seconds("02:10"), kNow / kSecond - (5 * 3600 + 50 * 60));
  EXPECT_EQ(Seconds("02:10:30"), kNow / kSecond - (5 * 3600 + 50 * 60) + 30);
  EXPECT_EQ(Seconds("08:00"), kNow / kSecond);
  // Later than now: yesterday.
  EXPECT_EQ(Seconds("23:50"), kNow / kSecond - (8 * 3600 + 10 * 60));
}

TEST_F(MomentTest, IsTheNextSuchTimeBehindAnother) {
  const uint64_t night = Seconds("23:50");
  EXPECT_EQ(Seconds("00:10", night * kSecond), night + 20 * 60);
  EXPECT_EQ(Seconds("23:55", night * kSecond), night + 5 * 60);
}

TEST_F(MomentTest, MayHaveThousandths) {
  const auto ns = [](std::string_view text,
                     std::optional<uint64_t> after = std::nullopt) {
    return ParseMoment(text, kNow, after).value_or(0);
  };
  constexpr uint64_t kMs = 1'000'000;
  EXPECT_EQ(ns("1795590000.25"), kNow + 250 * kMs);
  EXPECT_EQ(ns("@1795590000.007"), kNow + 7 * kMs);
  EXPECT_EQ(ns("2026-11-25 08:00:00.5"), kNow + 500 * kMs);
  EXPECT_EQ(ns("07:59:59.999"), kNow - kMs);
  // In the same second as the other one, and in the next ones.
  EXPECT_EQ(ns("07:59:59.5", kNow - 750 * kMs), kNow - 500 * kMs);
  EXPECT_EQ(ns("08:00:01.5", kNow - 750 * kMs), kNow + 1500 * kMs);
  EXPECT_TRUE(HasThousandths("02:10:05.24"));
  EXPECT_FALSE(HasThousandths("02:10:05"));
  for (const char* text :
       {"02:10.5", "-15m.5", "-1.5s", "now.5", "1.", "1.2345", "1.x",
        "2026-11-25.5", "2026-11-25 08:00.5", ".5", "1.5.5", "02:10:05.-1"}) {
    EXPECT_FALSE(ParseMoment(text, kNow, std::nullopt)) << text;
  }
  EXPECT_EQ(ExactLocalTimeText(kNow + 7 * kMs), "2026-11-25 08:00:00.007");
}

TEST_F(MomentTest, IsADate) {
  EXPECT_EQ(Seconds("2026-11-25 08:00"), kNow / kSecond);
  EXPECT_EQ(Seconds("2026-11-25T08:00:05"), kNow / kSecond + 5);
  EXPECT_EQ(Seconds("2026-11-25"), kNow / kSecond - 8 * 3600);
  // In summer it is UTC+2.
  EXPECT_EQ(Seconds("2026-07-01 02:00"), 1'782'864'000u);
  EXPECT_EQ(Seconds("@1795590000"), kNow / kSecond);
  EXPECT_EQ(Seconds("1795590000"), kNow / kSecond);
}

TEST_F(MomentTest, IsNothingElse) {
  for (const char* text :
       {"", "-", "-m", "-5", "-5w", "--5m", "25:00", "02:60", "02:10x",
        "2026-06-31", "2026-13-01", "2026-11-25 8", "noon", "@",
        "99999999999999999999", "-5m ", "1e9"}) {
    EXPECT_FALSE(ParseMoment(text, kNow, std::nullopt)) << text;
  }
}

}  // namespace
}  // namespace profd
