// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/mapping_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/ksym/process/test_mappings.h"

namespace ksym {
namespace {

using testing::ElementsAre;

// A mapping replaces what it covers, and leaves the rest with its offsets.
TEST(InsertMappingTest, CutsWhatItCovers) {
  std::vector<Mapping> mappings;
  InsertMapping(mappings, At(10, 50, "a"));
  InsertMapping(mappings, At(20, 30, "b"));
  EXPECT_THAT(Texts(mappings), ElementsAre("10-20 a", "20-30 b", "30-50 a"));
  EXPECT_EQ(mappings[2].file_offset, FileOffset{20});
  InsertMapping(mappings, At(15, 35, "c"));
  EXPECT_THAT(Texts(mappings), ElementsAre("10-15 a", "15-35 c", "35-50 a"));
  EXPECT_EQ(mappings[2].file_offset, FileOffset{25});
  InsertMapping(mappings, At(0, 100, "d"));
  EXPECT_THAT(Texts(mappings), ElementsAre("0-100 d"));
}

// Neighbours that only touch stay whole; an empty mapping is none.
TEST(InsertMappingTest, KeepsNeighbours) {
  std::vector<Mapping> mappings;
  InsertMapping(mappings, At(20, 30, "b"));
  InsertMapping(mappings, At(10, 20, "a"));
  InsertMapping(mappings, At(30, 40, "c"));
  InsertMapping(mappings, At(25, 25, "x"));
  EXPECT_THAT(Texts(mappings), ElementsAre("10-20 a", "20-30 b", "30-40 c"));
}

}  // namespace
}  // namespace ksym
