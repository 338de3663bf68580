// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace profd::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kEvil = "'; DROP TABLE samples; --";

// No text of a question is SQL in any query, whichever member it is.
TEST(QuestionTest, TextsAreLiterals) {
  Question question = {.from = 7200, .until = 7300, .kind = std::string(kEvil)};
  question.function = kEvil;
  for (const NameFilter& filter : kNameFilters) {
    question.*filter.member = {std::string(kEvil), "b" + std::string(kEvil)};
  }
  const std::vector<std::string> rows = {std::string(kEvil)};
  for (const Doubles doubles : {Doubles::kNone, Doubles::kMaybe}) {
    for (const std::string& sql :
         {CoverageSql(question, 10), KindsSql(question),
          RowNamesSql(question, doubles,
                      {.by = By::kPod, .kind = kEvil, .rows = 20}),
          CellsSql(question, doubles,
                   {.by = By::kService, .step = 10, .rows = rows}),
          StackSumsSql(question, doubles, 10), WholeSumSql(question, doubles),
          StacksSql(question, std::vector<uint64_t>{1, 2}),
          NamesSql(question, doubles, By::kHost, 9)}) {
      EXPECT_THAT(sql, Not(HasSubstr("DROP TABLE samples; ")));
      EXPECT_THAT(sql, Not(HasSubstr("'';")));
    }
  }
  EXPECT_THAT(StackSumsSql(question, Doubles::kNone, 10),
              HasSubstr(R"(service IN ('\x27\x3B DROP TABLE samples\x3B --', )"
                        R"('b\x27\x3B DROP)"));
}

// A sample has one of the names of each member.
TEST(QuestionTest, AsksForOneNameOrSeveral) {
  const std::string one = StackSumsSql(
      {.from = 7200, .until = 7300, .host = {"a"}}, Doubles::kNone, 10);
  EXPECT_THAT(one, HasSubstr(" AND host = 'a' "));
  Question question = {.from = 7200, .until = 7300, .host = {"a", "b"}};
  question.unit = {"x", "y"};
  question.pod = {"p", "n/q"};
  const std::string sql = StackSumsSql(question, Doubles::kNone, 10);
  EXPECT_THAT(sql, HasSubstr(" AND host IN ('a', 'b') "));
  EXPECT_THAT(sql, HasSubstr("unit IN ('x', 'x.service', 'y', 'y.service')"));
  EXPECT_THAT(sql, HasSubstr("(pod IN ('p', 'n/q') OR if(pod = ''"));
  EXPECT_THAT(KindsSql(question), HasSubstr("host IN ('a', 'b')"));
}

// The key has the hour, so that a filter on it reads few rows.
TEST(QuestionTest, AsksForHoursAndTimes) {
  const std::string sql =
      StackSumsSql({.from = 7300, .until = 7400}, Doubles::kNone, 10);
  EXPECT_THAT(sql, HasSubstr("hour >= toDateTime(7200) AND "
                             "hour < toDateTime(7400)"));
  EXPECT_THAT(sql, HasSubstr("time >= toDateTime(7300) AND "
                             "time < toDateTime(7400)"));
  EXPECT_THAT(sql, Not(HasSubstr("intervals")));
  EXPECT_THAT(StackSumsSql({.from = 7300, .until = 7400}, Doubles::kMaybe, 10),
              HasSubstr("HAVING count() > 1"));
}

TEST(QuestionTest, KnowsWhatSamplesAreToldApartBy) {
  EXPECT_EQ(ParseBy("service"), By::kService);
  EXPECT_EQ(ParseBy("comm"), By::kCommand);
  EXPECT_EQ(ParseBy("pid"), std::nullopt);
  EXPECT_EQ(ParseBy(""), std::nullopt);
}

}  // namespace
}  // namespace profd::fleet
