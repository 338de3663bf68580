// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "daemon/history/table_builder.h"
#include "tests/ksym/base/chosen_keys.h"

namespace profd::history {
namespace {

// Stacks of a file whose numbers of parent and function are chosen so that
// they undo each other.
TEST(HistoryChosenKeysTest, AreFastAsStacks) {
  std::vector<Node> ordinary;
  std::vector<Node> chosen;
  for (uint32_t i = 1; i <= ksym::kChosenKeys; ++i) {
    ordinary.push_back({.parent = 0, .function = i});
    chosen.push_back({.parent = i, .function = i});
  }
  const auto intern = [](const std::vector<Node>& nodes) {
    TableBuilder builder;
    const size_t before = builder.tables().nodes.size();
    for (const Node& node : nodes) builder.InternNode(node);
    EXPECT_EQ(builder.tables().nodes.size(), before + nodes.size());
  };
  EXPECT_LT(ksym::TimesLonger(intern, ordinary, chosen),
            ksym::kMostTimesLonger);
}

}  // namespace
}  // namespace profd::history
