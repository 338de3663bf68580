// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/unit_index.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

namespace ksym {
namespace {

using Units = std::optional<std::vector<uint32_t>>;

Units Just(std::vector<uint32_t> units) { return units; }

Units UnitsIn(const UnitIndex& index, AddressRange range) {
  return index.UnitsIn(std::array{range});
}

// A unit is found by each byte that it claims, and by no other.
TEST(UnitIndex, ClaimsAreHalfOpen) {
  const UnitIndex index({{{20, 30}, 1}, {{10, 20}, 0}}, {});
  EXPECT_EQ(UnitsIn(index, {9, 10}), Just({}));
  EXPECT_EQ(UnitsIn(index, {10, 11}), Just({0}));
  EXPECT_EQ(UnitsIn(index, {19, 20}), Just({0}));
  EXPECT_EQ(UnitsIn(index, {19, 21}), Just({0, 1}));
  EXPECT_EQ(UnitsIn(index, {29, 30}), Just({1}));
  EXPECT_EQ(UnitsIn(index, {30, 31}), Just({}));
  EXPECT_EQ(UnitsIn(index, {0, 100}), Just({0, 1}));
}

// A claim is found behind others that lie within it, and a unit once however
// many of its claims and of the ranges there are.
TEST(UnitIndex, ClaimsOverlap) {
  const UnitIndex index(
      {{{0, 100}, 4}, {{10, 20}, 2}, {{30, 40}, 2}, {{200, 300}, 3}}, {});
  EXPECT_EQ(UnitsIn(index, {50, 60}), Just({4}));
  EXPECT_EQ(UnitsIn(index, {35, 36}), Just({2, 4}));
  EXPECT_EQ(index.UnitsIn(std::array{AddressRange{12, 13}, AddressRange{31, 32},
                                     AddressRange{250, 251}}),
            Just({2, 3, 4}));
}

// A unit that does not say where its code is may have it anywhere.
TEST(UnitIndex, SilentUnitsAreEverywhere) {
  const UnitIndex index({{{10, 20}, 1}}, {0, 5});
  EXPECT_EQ(UnitsIn(index, {15, 16}), Just({0, 1, 5}));
  EXPECT_EQ(UnitsIn(index, {90, 91}), Just({0, 5}));
}

// As many claims are searched as are allowed; with one more it cannot be told.
TEST(UnitIndex, SearchIsBounded) {
  std::vector<UnitIndex::Claim> claims(UnitIndex::kMaxSearched, {{10, 20}, 0});
  EXPECT_EQ(UnitsIn(UnitIndex(claims, {}), {15, 16}), Just({0}));
  claims.push_back({{10, 20}, 1});
  EXPECT_EQ(UnitsIn(UnitIndex(claims, {}), {15, 16}), std::nullopt);
  EXPECT_EQ(UnitsIn(UnitIndex(claims, {}), {20, 21}), Just({}));
}

// The same for claims in all.
TEST(UnitIndex, ClaimsAreBounded) {
  std::vector<UnitIndex::Claim> claims;
  for (uint32_t i = 0; i < UnitIndex::kMaxClaims; ++i) {
    claims.push_back({{i, uint64_t{i} + 1}, i});
  }
  EXPECT_EQ(UnitsIn(UnitIndex(claims, {}), {15, 16}), Just({15}));
  claims.push_back({{0, 1}, 0});
  EXPECT_EQ(UnitsIn(UnitIndex(claims, {}), {15, 16}), std::nullopt);
}

}  // namespace
}  // namespace ksym
