// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/held_parts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace profd {
namespace {

using Clock = HeldParts::Clock;

Clock::time_point At(int second) {
  return Clock::time_point(std::chrono::seconds(second));
}

HeldParts::Part PartOf(int second, bool ends_profile = false) {
  auto raw = std::make_shared<RawProfile>();
  RawSample sample;
  sample.comm = Comm(std::to_string(second));
  sample.count = 1;
  raw->samples.push_back(sample);
  raw->accounting.taken = 1;
  return {
      .raw = std::move(raw), .taken = At(second), .ends_profile = ends_profile};
}

// A part that nothing puts off is named by itself: another one may have been
// taken with other kernel symbols.
TEST(HeldPartsTest, GivesPartsOneByOne) {
  HeldParts held;
  EXPECT_TRUE(held.empty());
  for (const int second : {1, 2}) held.Add(PartOf(second));
  EXPECT_EQ(held.size(), 2u);
  EXPECT_EQ(held.first().samples.front().comm.view(), "1");
  EXPECT_EQ(held.taken(), At(1));
  HeldParts::Part part = held.TakeFirst();
  EXPECT_EQ(part.raw->samples.size(), 1u);
  EXPECT_EQ(part.taken, At(1));
  part = held.TakeFirst();
  EXPECT_EQ(part.raw->samples.front().comm.view(), "2");
  EXPECT_TRUE(held.empty());
}

// What waits for one reading of the table becomes one part, taken when the last
// one was.
TEST(HeldPartsTest, MergesWhatIsPutOff) {
  HeldParts held;
  for (const int second : {1, 2}) held.Add(PartOf(second));
  held.JoinToFirst();
  EXPECT_EQ(held.taken(), At(2));
  held.Add(PartOf(3));
  EXPECT_EQ(held.taken(), At(2));  // this one is not put off yet
  held.JoinToFirst();
  held.Add(PartOf(4));
  EXPECT_EQ(held.size(), 4u);
  HeldParts::Part part = held.TakeFirst();
  EXPECT_EQ(part.raw->samples.size(), 3u);
  EXPECT_EQ(part.raw->accounting.taken, 3u);
  EXPECT_EQ(part.taken, At(3));
  EXPECT_FALSE(part.ends_profile);
  part = held.TakeFirst();
  EXPECT_EQ(part.raw->samples.size(), 1u);
  EXPECT_EQ(part.taken, At(4));
  EXPECT_TRUE(held.empty());
}

// What comes after the end of a profile stays apart, in order.
TEST(HeldPartsTest, KeepsProfilesApart) {
  HeldParts held;
  held.Add(PartOf(1));
  held.Add(PartOf(2, true));
  held.Add(PartOf(3, true));
  held.Add(PartOf(4));
  held.JoinToFirst();
  held.JoinToFirst();
  EXPECT_EQ(held.taken(), At(2));
  const HeldParts::Part first = held.TakeFirst();
  EXPECT_EQ(first.raw->samples.size(), 2u);
  EXPECT_TRUE(first.ends_profile);
  held.JoinToFirst();
  EXPECT_EQ(held.TakeFirst().raw->samples.front().comm.view(), "3");
  EXPECT_EQ(held.TakeFirst().raw->samples.front().comm.view(), "4");
  EXPECT_TRUE(held.empty());
}

}  // namespace
}  // namespace profd
