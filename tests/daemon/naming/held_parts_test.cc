// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/held_parts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace profd {
namespace {

using Clock = HeldParts::Clock;

HeldParts::Part PartOf(int second, bool ends_profile = false) {
  auto raw = std::make_shared<RawProfile>();
  RawSample sample;
  sample.comm = std::to_string(second);
  sample.count = 1;
  raw->samples.push_back(sample);
  raw->accounting.taken = 1;
  return {.raw = std::move(raw),
          .taken = Clock::time_point(std::chrono::seconds(second)),
          .ends_profile = ends_profile};
}

// Parts of one profile become one, taken when the last one was.
TEST(HeldPartsTest, MergesPartsOfAProfile) {
  HeldParts held;
  EXPECT_TRUE(held.empty());
  for (const int second : {1, 2, 3}) held.Add(PartOf(second));
  EXPECT_EQ(held.first().drains, 3u);
  const HeldParts::Part part = held.TakeFirst();
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(part.raw->samples.size(), 3u);
  EXPECT_EQ(part.raw->accounting.taken, 3u);
  EXPECT_EQ(part.taken, Clock::time_point(std::chrono::seconds(3)));
  EXPECT_FALSE(part.ends_profile);
}

// What comes after the end of a profile stays apart, in order.
TEST(HeldPartsTest, KeepsProfilesApart) {
  HeldParts held;
  held.Add(PartOf(1));
  held.Add(PartOf(2, true));
  held.Add(PartOf(3, true));
  held.Add(PartOf(4));
  EXPECT_EQ(held.first().raw->samples.size(), 2u);
  EXPECT_TRUE(held.TakeFirst().ends_profile);
  EXPECT_EQ(held.TakeFirst().raw->samples.front().comm, "3");
  EXPECT_EQ(held.TakeFirst().raw->samples.front().comm, "4");
  EXPECT_TRUE(held.empty());
}

}  // namespace
}  // namespace profd
