// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/top_state.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace profd {
namespace {

using enum ThreadState;
using std::chrono::seconds;

TopRow RowOf(std::string_view name, uint64_t running, uint64_t blocked = 0,
             uint64_t parked = 0) {
  TopRow row;
  row.name = name;
  row.self[kRunning] = running;
  row.self[kBlocked] = blocked;
  row.self[kParked] = parked;
  row.total = row.self;
  return row;
}

class TopStateTest : public testing::Test {
 protected:
  TopCommand Type(std::string_view text) {
    TopCommand last = TopCommand::kNone;
    for (const char c : text) last = Press(Key::Kind::kText, {c});
    return last;
  }
  TopCommand Press(Key::Kind kind, std::string text = {}) {
    return ApplyKey({.kind = kind, .text = std::move(text)},
                    {.tables = tables_, .page = 10}, state_);
  }
  std::vector<std::string> Names(const TopTables& tables) {
    std::vector<std::string> names;
    for (const TopRow* row : ChooseRows(tables, state_)) {
      names.push_back(row->name);
    }
    return names;
  }

  void HaveRows(size_t count) {
    tables_.functions.assign(count, RowOf("a", 1));
  }

  TopTables tables_;
  TopState state_;
};

// Each view has its key, and keys that mean nothing change nothing.
TEST_F(TopStateTest, ChoosesViews) {
  Type("t");
  EXPECT_EQ(state_.subject, TopSubject::kThreads);
  Type("c");
  EXPECT_EQ(state_.subject, TopSubject::kCommands);
  Type("f!~Z");
  EXPECT_EQ(state_.subject, TopSubject::kFunctions);
  EXPECT_EQ(Type("q"), TopCommand::kQuit);
  EXPECT_EQ(Type("w"), TopCommand::kWrite);
  EXPECT_EQ(Press(Key::Kind::kRedraw), TopCommand::kRedraw);
}

// Sorting goes through all columns and around, both ways; threads have no
// totals.
TEST_F(TopStateTest, MovesOverColumns) {
  std::vector<TopOrder> orders;
  for (int i = 0; i < 6; ++i) {
    orders.push_back(state_.order);
    Type("s");
  }
  EXPECT_EQ(orders, (std::vector<TopOrder>{{kRunning, false},
                                           {kRunning, true},
                                           {kRunnable, false},
                                           {kRunnable, true},
                                           {kBlocked, false},
                                           {kBlocked, true}}));
  EXPECT_EQ(state_.order, (TopOrder{kRunning, false}));
  Type("<");
  EXPECT_EQ(state_.order, (TopOrder{kBlocked, true}));
  Type("t");
  EXPECT_EQ(state_.order, (TopOrder{kBlocked, false}));
  Type(">");
  EXPECT_EQ(state_.order, (TopOrder{kRunning, false}));
  Type("<<");
  EXPECT_EQ(state_.order, (TopOrder{kRunnable, false}));
}

// While a filter is typed letters are text and no commands.
TEST_F(TopStateTest, EditsTheFilter) {
  Type("/");
  EXPECT_EQ(Type("quit"), TopCommand::kNone);
  EXPECT_EQ(state_.filter, "quit");
  Press(Key::Kind::kText, "\xc3\xa9");
  Press(Key::Kind::kBackspace);
  Press(Key::Kind::kBackspace);
  EXPECT_EQ(state_.filter, "qui");
  Press(Key::Kind::kEnter);
  EXPECT_FALSE(state_.edits_filter);
  EXPECT_EQ(state_.filter, "qui");
  Press(Key::Kind::kEscape);
  EXPECT_EQ(state_.filter, "");
  Type("/x");
  Press(Key::Kind::kEscape);
  EXPECT_EQ(state_.filter, "");
  EXPECT_FALSE(state_.edits_filter);
  Type("/" + std::string(1000, 'x'));
  EXPECT_EQ(state_.filter.size(), 200u);
}

// Scrolling ends at both ends of the rows.
TEST_F(TopStateTest, Scrolls) {
  HaveRows(25);
  Press(Key::Kind::kUp);
  EXPECT_EQ(state_.first, 0u);
  Press(Key::Kind::kDown);
  EXPECT_EQ(state_.first, 1u);
  Press(Key::Kind::kPageDown);
  EXPECT_EQ(state_.first, 11u);
  Press(Key::Kind::kPageDown);
  EXPECT_EQ(state_.first, 15u);
  HaveRows(12);  // there are fewer now
  Press(Key::Kind::kUp);
  EXPECT_EQ(state_.first, 1u);
  Press(Key::Kind::kEnd);
  EXPECT_EQ(state_.first, 2u);
  Press(Key::Kind::kHome);
  EXPECT_EQ(state_.first, 0u);
  HaveRows(0);
  Press(Key::Kind::kPageDown);
  EXPECT_EQ(state_.first, 0u);
}

// Windows go from a second to five minutes.
TEST_F(TopStateTest, ChoosesWindows) {
  Type("-");
  EXPECT_EQ(state_.window, seconds(5));
  Type("---------");
  EXPECT_EQ(state_.window, kLeastWindow);
  Type("+");
  EXPECT_EQ(state_.window, seconds(2));
  Type("+++++++++++");
  EXPECT_EQ(state_.window, kMostWindow);
  state_.window = seconds(7);
  Type("+");
  EXPECT_EQ(state_.window, seconds(10));
}

// Any key ends the help, and q the program.
TEST_F(TopStateTest, ShowsHelp) {
  Type("?");
  EXPECT_TRUE(state_.shows_help);
  Type("t");
  EXPECT_FALSE(state_.shows_help);
  EXPECT_EQ(state_.subject, TopSubject::kFunctions);
  Type("p");
  EXPECT_TRUE(state_.is_paused);
  Type("?");
  EXPECT_EQ(Type("q"), TopCommand::kQuit);
}

// Rows come largest first, by the column; equal ones by name.
TEST_F(TopStateTest, SortsRows) {
  TopTables tables;
  tables.functions = {RowOf("b", 1), RowOf("a", 1), RowOf("c", 5, 1),
                      RowOf("d", 0, 9)};
  EXPECT_EQ(Names(tables), (std::vector<std::string>{"c", "a", "b", "d"}));
  state_.order.state = kBlocked;
  EXPECT_EQ(Names(tables), (std::vector<std::string>{"d", "c", "a", "b"}));
  tables.functions[0].total[kBlocked] = 10;
  state_.order.by_total = true;
  EXPECT_EQ(Names(tables).front(), "b");
}

// A filter finds parts of names in any case, and of threads their ids as well.
TEST_F(TopStateTest, Filters) {
  TopTables tables;
  tables.functions = {RowOf("ReadFile", 1), RowOf("Write", 2)};
  state_.filter = "dfil";
  EXPECT_EQ(Names(tables), std::vector<std::string>{"ReadFile"});
  state_.filter = "nothing";
  EXPECT_TRUE(Names(tables).empty());
  tables.threads = {RowOf("app", 1), RowOf("other", 1)};
  tables.threads[0].tid = 4711;
  tables.threads[1].place = "ReadFile";
  state_.subject = TopSubject::kThreads;
  state_.filter = "471";
  EXPECT_EQ(Names(tables), std::vector<std::string>{"app"});
  state_.filter = "read";
  EXPECT_EQ(Names(tables), std::vector<std::string>{"other"});
}

// Parked time is blocked time until it is hidden; then a row that has nothing
// else is not there.
TEST_F(TopStateTest, HidesParkedTime) {
  TopTables tables;
  tables.functions = {RowOf("[parked]", 0, 0, 9), RowOf("a", 0, 3)};
  state_.order.state = kBlocked;
  EXPECT_EQ(Names(tables), (std::vector<std::string>{"[parked]", "a"}));
  EXPECT_EQ(TimeIn(tables.functions[0].self, kBlocked, state_), 9u);
  Type("k");
  EXPECT_EQ(Names(tables), std::vector<std::string>{"a"});
  Type("k");
  EXPECT_EQ(Names(tables).size(), 2u);
}

// Words of options are those of the screen.
TEST_F(TopStateTest, ParsesNames) {
  EXPECT_EQ(ParseTopSubject("threads"), TopSubject::kThreads);
  EXPECT_EQ(ParseTopSubject("thread"), std::nullopt);
  EXPECT_EQ(ParseThreadState("blocked"), kBlocked);
  EXPECT_EQ(ParseThreadState(""), std::nullopt);
}

}  // namespace
}  // namespace profd
