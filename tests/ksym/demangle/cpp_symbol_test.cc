// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/cpp_symbol.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "ksym/demangle/demangle.h"

namespace ksym {
namespace {

// The substitution with this number: "S_", "S0_", ... "S10_".
std::string Substitution(size_t number) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (number == 0) return "S_";
  std::string digits;
  size_t rest = number - 1;
  do {
    digits.insert(digits.begin(), kDigits[rest % kDigits.size()]);
    rest /= kDigits.size();
  } while (rest > 0);
  return "S" + digits + "_";
}

TEST(CppSymbolTest, ReadsNames) {
  EXPECT_EQ(DemangleCpp("_ZN3foo3barEiPKc"), "foo::bar(int, char const*)");
  EXPECT_EQ(DemangleCpp("_Z1fIJidEEvDpRKT_"),
            "void f<int, double>(int const&, double const&)");
  EXPECT_EQ(DemangleCpp("_Z1fIJidEEv1AIXsZT_EE"), "void f<int, double>(A<2>)");
  EXPECT_EQ(DemangleCpp("_ZZ4mainENKUlvE_clEv"),
            "main::{lambda()#1}::operator()() const");
  EXPECT_EQ(DemangleCpp("_Z"), "");
  EXPECT_EQ(DemangleCpp("main"), "");
  EXPECT_EQ(DemangleCpp(""), "");
}

// By both spellings, whatever was on the stack.
TEST(CppSymbolTest, ReadsScopesOfBothSpellings) {
  for (const char* name :
       {"_Z1fI1AEDTsr1AE1xET_", "_Z1fI1AEDTsr1A1xET_", "_Z1fI1AEDTsrT_1xES1_",
        "_Z1fI1AEDTsr1A1xET_", "_Z1fI1AEDTsr1AE1xET_"}) {
    EXPECT_EQ(DemangleCpp(name), "decltype (A::x) f<A>(A)") << name;
  }
}

// Each function type has the one before it twice, and libiberty looks for a
// pack in all of them before it writes anything. `first` is the number of the
// first one as a substitution.
TEST(CppSymbolTest, BoundsTheSearchForPacks) {
  const auto doubled = [](size_t times, size_t first) {
    std::string type = "FviiE";
    for (size_t i = 0; i < times; ++i) {
      type.insert(0, "Fv");
      type += Substitution(first + i) + "E";
    }
    return type;
  };
  const auto expansion = [&](size_t times) {
    return DemangleCpp("_Z1fIJiEEvDp" + doubled(times, 1));
  };
  const auto pack_size = [&](size_t times) {
    return DemangleCpp("_Z1fIJiEE1AIXsZst" + doubled(times, 2) + "EEv");
  };
  EXPECT_EQ(expansion(1),
            "void f<int>((void (void (int, int), void (int, int)))...)");
  EXPECT_EQ(pack_size(1), "A<0> f<int>()");
  for (const size_t times : {25U, 60U, 300U}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(expansion(times), "");
    EXPECT_EQ(pack_size(times), "");
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::milliseconds(500));
  }
}

// libiberty has an array on the stack for each pair of a template and a
// reference to a template parameter: 17 MB for this name.
TEST(CppSymbolTest, BoundsTheStack) {
  const auto crossed = [](size_t templates, size_t references) {
    std::string name = "_Z1fIiEvFv";
    for (size_t i = 0; i < templates; ++i) name += "1aIiE";
    for (size_t i = 0; i < references; ++i) name += "RT_";
    name += "E";
    // "a<int>" and "int&" are two substitutions each time, so that the function
    // type's number is about this.
    const size_t last = 2 * (templates + references);
    std::string found;
    for (size_t number = last - 20; number < last + 8; ++number) {
      const std::string text = DemangleCpp(name + Substitution(number));
      if (text.ends_with("&))")) found = text;
    }
    return found;
  };
  EXPECT_NE(crossed(10, 10), "");
  EXPECT_EQ(crossed(400, 650), "");
}

}  // namespace
}  // namespace ksym
