// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/output/numbered_texts.h"
#include "daemon/output/text_pieces.h"
#include "tests/ksym/base/chosen_keys.h"

namespace profd {
namespace {

template <typename Run>
double TimesLongerWithChosenTexts(const Run& run) {
  return ksym::TimesLonger(run, ksym::OrdinaryTexts(ksym::kChosenKeys),
                           ksym::TextsOfOneHash(ksym::kChosenKeys));
}

// Texts that are one to std::hash make no output slow: neither folded stacks
// and JSON nor pprof.
TEST(ChosenTextsTest, AreFastAsPieces) {
  const auto add = [](const std::vector<std::string>& texts) {
    TextPieces pieces;
    for (const std::string& text : texts) pieces.Add(text);
    EXPECT_EQ(pieces.Add(texts.back()), texts.size() - 1);
  };
  EXPECT_LT(TimesLongerWithChosenTexts(add), ksym::kMostTimesLonger);
}

TEST(ChosenTextsTest, AreFastAsNumberedTexts) {
  const auto add = [](const std::vector<std::string>& texts) {
    NumberedTexts numbered;
    for (const std::string& text : texts) numbered.Id(text);
    EXPECT_EQ(numbered.texts().size(), texts.size() + 1);
  };
  EXPECT_LT(TimesLongerWithChosenTexts(add), ksym::kMostTimesLonger);
}

}  // namespace
}  // namespace profd
