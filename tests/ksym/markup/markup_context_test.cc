// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_context.h"

#include <gtest/gtest.h>

namespace ksym {
namespace {

MarkupMmap Region(uint64_t start, uint64_t size) {
  return {{start}, size, nullptr, "r", {start}};
}

TEST(MarkupContextTest, RegionsAreHalfOpen) {
  // An address is found from the first byte to the last.
  MarkupContext context;
  context.AddMmap(Region(0x1000, 0x100));
  EXPECT_EQ(context.FindMmap({0xfff}), nullptr);
  EXPECT_NE(context.FindMmap({0x1000}), nullptr);
  EXPECT_NE(context.FindMmap({0x10ff}), nullptr);
  EXPECT_EQ(context.FindMmap({0x1100}), nullptr);
}

TEST(MarkupContextTest, OverlapsAreFound) {
  // At both ends, inside and around; neighbors do not overlap.
  MarkupContext context;
  context.AddMmap(Region(0x1000, 0x100));
  EXPECT_EQ(context.FindOverlap(Region(0xf00, 0x100)), nullptr);
  EXPECT_EQ(context.FindOverlap(Region(0x1100, 0x100)), nullptr);
  EXPECT_NE(context.FindOverlap(Region(0xf00, 0x101)), nullptr);
  EXPECT_NE(context.FindOverlap(Region(0x10ff, 1)), nullptr);
  EXPECT_NE(context.FindOverlap(Region(0, 0x10000)), nullptr);
  EXPECT_NE(context.FindOverlap(Region(0x1000, 0x100)), nullptr);
}

TEST(MarkupContextTest, ModuleIdsAreUnique) {
  // The first one stays, until Reset.
  MarkupContext context;
  EXPECT_NE(context.AddModule({7, "a", "ab"}), nullptr);
  EXPECT_EQ(context.AddModule({7, "b", "cd"}), nullptr);
  EXPECT_EQ(context.FindModule(7)->name, "a");
  EXPECT_EQ(context.FindModule(8), nullptr);
  context.Reset();
  EXPECT_TRUE(context.empty());
  EXPECT_EQ(context.FindModule(7), nullptr);
}

}  // namespace
}  // namespace ksym
