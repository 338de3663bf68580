// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/text_columns.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace profd {
namespace {

// A character of a wide script takes two columns, an accent none more.
TEST(TextColumnsTest, CountsColumns) {
  EXPECT_EQ(ColumnsOf(""), 0u);
  EXPECT_EQ(ColumnsOf("abc"), 3u);
  EXPECT_EQ(ColumnsOf("\u00e9t\u00e9"), 3u);
  EXPECT_EQ(ColumnsOf("\u6f22\u5b57"), 4u);
}

// A name that fits stays; a longer one first loses what is between brackets,
// then its beginning.
TEST(TextColumnsTest, FitsNames) {
  constexpr std::string_view kName = "int ns::Sort<a, b<c> >::Run(char*, int)";
  EXPECT_EQ(FitName(kName, kName.size()), kName);
  EXPECT_EQ(FitName(kName, kName.size() - 1), "int ns::Sort<>::Run()");
  EXPECT_EQ(FitName(kName, 21), "int ns::Sort<>::Run()");
  EXPECT_EQ(FitName(kName, 20), ".. ns::Sort<>::Run()");
  EXPECT_EQ(FitName(kName, 7), "..Run()");
  EXPECT_EQ(FitName(kName, 1), ".");
  EXPECT_EQ(FitName(kName, 0), "");
}

// Brackets that are part of a name stay, and unmatched ones cost nothing.
TEST(TextColumnsTest, KeepsOperators) {
  EXPECT_EQ(FitName("A::operator()(int, char const*)", 20), "A::operator()()");
  EXPECT_EQ(FitName("bool operator<(Some const&, Some const&)", 20),
            "bool operator<()");
  EXPECT_EQ(FitName("A::operator->(Some, Some)", 16), "A::operator->()");
  EXPECT_EQ(FitName("(anonymous namespace)::Go(int, int)", 30),
            "(anonymous namespace)::Go()");
  EXPECT_EQ(FitName("a(b<c)", 5), "..<c)");
  EXPECT_EQ(FitName("abc)defgh", 6), "..efgh");
}

// No cut splits a character, and a wide one that does not fit is left out.
TEST(TextColumnsTest, CutsWholeCharacters) {
  EXPECT_EQ(FitName("abc\u6f22\u5b57", 5), "..\u5b57");
  EXPECT_EQ(FitName("abc\u00e9\u00e9", 4), "..\u00e9\u00e9");
  EXPECT_EQ(CutLine("\u6f22\u5b57x", 5), "\u6f22\u5b57x");
  EXPECT_EQ(CutLine("\u6f22\u5b57xy", 5), "\u6f22..");
  EXPECT_EQ(CutLine("abcdef", 5), "abc..");
  EXPECT_EQ(CutLine("abcdef", 1), ".");
}

// Padding fills up to the column, and cuts nothing.
TEST(TextColumnsTest, Pads) {
  std::string out;
  AppendPadded("\u6f22", 4, out);
  AppendPadded("abc", 2, out);
  EXPECT_EQ(out, "\u6f22  abc");
}

}  // namespace
}  // namespace profd
