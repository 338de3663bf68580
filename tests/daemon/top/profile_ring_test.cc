// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/profile_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace profd {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

ProfileRing::Part PartOf(uint64_t duration_ns, size_t text_bytes = 0) {
  Profile profile;
  profile.metadata.duration_ns = duration_ns;
  profile.strings.Intern(std::string(text_bytes, 'x'));
  return std::make_shared<const Profile>(std::move(profile));
}

// The newest parts come, oldest first, as many as the time asks for.
TEST(ProfileRingTest, GivesTheLastSeconds) {
  ProfileRing ring;
  EXPECT_TRUE(ring.Last(kSecondNs).empty());
  const auto first = PartOf(kSecondNs);
  const auto second = PartOf(kSecondNs);
  const auto third = PartOf(kSecondNs);
  ring.Add(first);
  ring.Add(second);
  ring.Add(third);
  EXPECT_EQ(ring.Last(1), (std::vector{third}));
  EXPECT_EQ(ring.Last(kSecondNs), (std::vector{third}));
  EXPECT_EQ(ring.Last(2 * kSecondNs), (std::vector{second, third}));
  EXPECT_EQ(ring.Last(9 * kSecondNs), (std::vector{first, second, third}));
}

// Parts are never quite as long as was wanted: the nearest number of them is
// taken.
TEST(ProfileRingTest, TakesTheNearestNumberOfParts) {
  ProfileRing ring;
  for (int i = 0; i < 5; ++i) ring.Add(PartOf(kSecondNs + 1'000'000));
  EXPECT_EQ(ring.Last(3 * kSecondNs).size(), 3u);
}

// Time makes the oldest part go, at the bound and not before.
TEST(ProfileRingTest, BoundsTheTime) {
  ProfileRing ring;
  for (uint64_t i = 0; i < ProfileRing::kMaxSeconds; ++i) {
    ring.Add(PartOf(kSecondNs));
  }
  const uint64_t all = 2 * ProfileRing::kMaxSeconds * kSecondNs;
  EXPECT_EQ(ring.Last(all).size(), ProfileRing::kMaxSeconds);
  ring.Add(PartOf(kSecondNs));
  EXPECT_EQ(ring.Last(all).size(), ProfileRing::kMaxSeconds);
}

// Bytes make the oldest parts go; the newest stays however large it is.
TEST(ProfileRingTest, BoundsTheBytes) {
  ProfileRing ring;
  ring.Add(PartOf(kSecondNs, ProfileRing::kMaxBytes / 2));
  ring.Add(PartOf(kSecondNs, ProfileRing::kMaxBytes / 4));
  EXPECT_EQ(ring.Last(9 * kSecondNs).size(), 2u);
  ring.Add(PartOf(kSecondNs, ProfileRing::kMaxBytes / 2));
  EXPECT_EQ(ring.Last(9 * kSecondNs).size(), 2u);
  EXPECT_LE(ring.bytes(), ProfileRing::kMaxBytes);
  ring.Add(PartOf(kSecondNs, 2 * ProfileRing::kMaxBytes));
  EXPECT_EQ(ring.Last(9 * kSecondNs).size(), 1u);
}

}  // namespace
}  // namespace profd
