// SPDX-License-Identifier: Apache-2.0
// Tables whose keys are chosen so that hashes without a secret are all the
// same: a multiplication by an odd number and a shift can be undone.
#include "tests/ksym/base/chosen_keys.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/profile/profile.h"
#include "daemon/profile/raw_stack_table.h"

namespace profd {
namespace {

using ksym::kChosenKeys;
using ksym::kMostTimesLonger;
using ksym::TimesLonger;

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * kOdd;
  return hash ^ hash >> 32;
}

// Names of functions, commands, paths.
TEST(ChosenKeysTest, AreFastAsTexts) {
  const auto intern = [](const std::vector<std::string>& texts) {
    StringTable table;
    for (const std::string& text : texts) table.Intern(text);
    EXPECT_EQ(table.size(), texts.size() + 1);
  };
  EXPECT_LT(TimesLonger(intern, ksym::OrdinaryTexts(kChosenKeys),
                        ksym::TextsOfOneHash(kChosenKeys)),
            kMostTimesLonger);
}

// Addresses: two that follow each other undo each other.
TEST(ChosenKeysTest, AreFastAsFrames) {
  std::vector<Frame> ordinary;
  std::vector<Frame> chosen;
  uint64_t begin = Mix(Mix(0, 0), 0);
  begin = Mix(begin, reinterpret_cast<uintptr_t>(&kUserFrame) << 8);
  for (uint64_t i = 1; i <= kChosenKeys; ++i) {
    ordinary.push_back({.address = i, .file_offset = i});
    chosen.push_back({.address = i, .file_offset = Mix(begin, i)});
  }
  const auto add = [](const std::vector<Frame>& frames) {
    ProfileBuilder builder;
    for (const Frame& frame : frames) builder.AddFrame(frame);
    EXPECT_EQ(std::move(builder).Finish({}).frames.size(), frames.size());
  };
  EXPECT_LT(TimesLonger(add, ordinary, chosen), kMostTimesLonger);
}

// Numbers of stacks in a raw capture, out of order.
TEST(ChosenKeysTest, AreFastAsStacks) {
  constexpr uint64_t kTag = 0xff51afd7ed558ccd;  // whose product's upper half
  std::vector<StackId> ordinary;
  std::vector<StackId> chosen;
  for (uint64_t i = kChosenKeys; i > 0; --i) {
    ordinary.push_back(kFirstStackId + i);
    const uint64_t hash =
        (uint64_t{0x12345678} << 32 | i) * ksym::InverseOf(kTag);
    chosen.push_back((hash ^ hash >> 32) * ksym::InverseOf(kOdd));
  }
  const auto add = [](const std::vector<StackId>& ids) {
    RawStackTable table;
    for (const StackId id : ids) table.Add(id, RawStack{});
    EXPECT_EQ(table.size(), ids.size());
  };
  EXPECT_LT(TimesLonger(add, ordinary, chosen), kMostTimesLonger);
}

}  // namespace
}  // namespace profd
