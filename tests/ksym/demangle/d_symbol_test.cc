// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/d_symbol.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace ksym {
namespace {

std::string Repeated(std::string_view part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

TEST(DSymbolTest, ReadsNames) {
  EXPECT_EQ(DemangleD("_D3foo3barFZv"), "foo.bar()");
  EXPECT_EQ(DemangleD("_D8demangle13__T4testTaTiZv"),
            "demangle.test!(char, int)");
  EXPECT_EQ(DemangleD("_D1n3foo4testFZ3barMFZv"), "n.foo.test().bar()");
  EXPECT_EQ(DemangleD("_D3fooQ"), "");
  EXPECT_EQ(DemangleD("_D"), "");
  EXPECT_EQ(DemangleD(""), "");
}

// Each function's arguments may be the type of what is before them instead.
TEST(DSymbolTest, BoundsTheChoices) {
  const auto name = [](size_t functions) {
    return "_D1a" + Repeated("FZ1b", functions) + "i";
  };
  EXPECT_EQ(DemangleD(name(kMaxDChoices)),
            "a" + Repeated("().b", kMaxDChoices));
  EXPECT_EQ(DemangleD(name(kMaxDChoices + 1)), "");
}

TEST(DSymbolTest, BoundsTheLength) {
  const auto name = [](size_t size) {
    return "_D" + std::to_string(size) + std::string(size, 'x') + "i";
  };
  EXPECT_EQ(DemangleD(name(kMaxDBytes - 7)), std::string(kMaxDBytes - 7, 'x'));
  EXPECT_EQ(DemangleD(name(kMaxDBytes - 6)), "");
}

// Each part doubles, or more, what libiberty takes for those behind it.
TEST(DSymbolTest, BoundsTheTime) {
  for (const auto& name :
       {"_D1b" + Repeated("FS1a", 200) + "!", "_D1b" + Repeated("MFS1a", 99),
        "_D__T1a" + Repeated("S15__T1a", 90) + "!",
        "_D__T1a" + Repeated("S4294967295__T1a", 50) + "!",
        "_D1a" + Repeated("HQbQb", 100), "_D1b" + Repeated("FS1a", 14) + "!"}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(DemangleD(name), "");
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took, std::chrono::milliseconds(500)) << name;
  }
}

}  // namespace
}  // namespace ksym
