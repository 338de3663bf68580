// SPDX-License-Identifier: Apache-2.0
#include "daemon/fleet/answers.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace profd::fleet {
namespace {

using namespace std::string_view_literals;

// A row of `stacks`: number 1, main and vfs_write, /bin/a and [kernel], and the
// kinds.
std::string StackRow(std::string_view kinds) {
  std::string row(
      "\1\0\0\0\0\0\0\0"
      "\2\4main\11vfs_write"
      "\2\6/bin/a\10[kernel]"sv);
  row += static_cast<char>(kinds.size());
  return row += kinds;
}

TEST(AnswersTest, StackHasItsFrames) {
  std::vector<StackFrame> frames;
  const std::string rows = StackRow("\1\4");
  const auto read = ReadStacks(rows, [&](const StoredStack& stack) {
    EXPECT_EQ(stack.stack, 1u);
    frames = stack.frames;
  });
  ASSERT_TRUE(read);
  EXPECT_EQ(frames, (std::vector<StackFrame>{
                        {&kUserFrame, "main", "/bin/a"},
                        {&kKernelFrame, "vfs_write", "[kernel]"}}));
}

// 0 is a mark, and what a later version may store is code.
TEST(AnswersTest, KindsThatAreNone) {
  std::vector<StackFrame> frames;
  const auto read =
      ReadStacks(StackRow("\0\xff"sv),
                 [&](const StoredStack& stack) { frames = stack.frames; });
  ASSERT_TRUE(read);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].kind, nullptr);
  EXPECT_EQ(frames[1].kind, &kJitFrame);
}

TEST(AnswersTest, RefusesListsOfUnlikeLength) {
  size_t used = 0;
  const auto count = [&](const StoredStack&) { ++used; };
  for (const auto kinds : {""sv, "\1"sv, "\1\1\1"sv}) {
    const auto read = ReadStacks(StackRow(kinds), count);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ksym::ErrorCode::kCorrupt);
  }
  EXPECT_EQ(used, 0u);
}

TEST(AnswersTest, SumsOfStacks) {
  const auto rows =
      "\5\0\0\0\0\0\0\0\4main\1\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"sv;
  const auto sums = ReadStackSums(rows);
  ASSERT_TRUE(sums);
  ASSERT_EQ(sums->size(), 1u);
  EXPECT_EQ((*sums)[0].stack, 5u);
  EXPECT_EQ((*sums)[0].command, "main");
  EXPECT_TRUE((*sums)[0].parked);
  EXPECT_EQ((*sums)[0].count, 2u);
  EXPECT_EQ((*sums)[0].value, 3u);
  for (size_t size = 1; size < rows.size(); ++size) {
    EXPECT_FALSE(ReadStackSums(rows.substr(0, size))) << size;
  }
}

TEST(AnswersTest, NoRowIsNoName) {
  const auto names = ReadRowNames("");
  ASSERT_TRUE(names);
  EXPECT_EQ(names->names, 0u);
  EXPECT_TRUE(names->largest.empty());
  EXPECT_EQ(ReadWholeSum("")->count, 0u);
}

}  // namespace
}  // namespace profd::fleet
