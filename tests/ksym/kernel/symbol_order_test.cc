// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/symbol_order.h"

#include <gtest/gtest.h>

namespace ksym {
namespace {

bool Before(AliasKey a, AliasKey b) {
  return AliasBefore(a, b) && !AliasBefore(b, a);
}

// Each step of the rule decides when the steps before it do not.
TEST(AliasOrder, StepsDecideInTurn) {
  EXPECT_TRUE(Before({"zz_long_local", 't'}, {"a", 'D'}));       // code
  EXPECT_TRUE(Before({"set_reset", 't'}, {"_sinittext", 'T'}));  // marks
  EXPECT_TRUE(Before({"__long_global", 'T'}, {"a", 'W'}));       // linkage
  // The fallbacks of drivers/base/cpu.c are weak aliases of a static function.
  EXPECT_TRUE(
      Before({"cpu_show_not_affected", 't'}, {"cpu_show_ghostwrite", 'W'}));
  EXPECT_TRUE(Before({"__long_global", 'T'}, {"a", 't'}));
  EXPECT_TRUE(Before({"sys_read_long", 'T'}, {"_sys", 'T'}));  // underscores
  EXPECT_TRUE(Before({"long_name", 't'}, {"f.cold", 't'}));    // suffix
  EXPECT_TRUE(Before({"zz", 't'}, {"aaa", 't'}));              // length
  EXPECT_TRUE(Before({"aa", 't'}, {"ab", 't'}));               // bytes
}

// `__pfx_X` stands where X would, so padding and function agree on the name.
TEST(AliasOrder, PaddingStandsWhereItsFunctionDoes) {
  EXPECT_TRUE(Before({"__pfx_sys_read", 'T'}, {"_sys", 'T'}));
  EXPECT_TRUE(Before({"__pfx_a", 'T'}, {"__pfx_bb", 'T'}));
}

// Linker-script marks are told from functions by their whole name.
TEST(SectionMark, NamesOfSectionEdges) {
  for (const char* name :
       {"_text", "_stext", "_etext", "_sinittext", "_einittext",
        "__lock_text_start", "__softirqentry_text_end", "__init_begin"}) {
    EXPECT_TRUE(IsSectionMark(name)) << name;
  }
  for (const char* name : {"text", "irq_entries_start", "_start", "do_end",
                           "__startup", "_text_poke"}) {
    EXPECT_FALSE(IsSectionMark(name)) << name;
  }
}

// Only the suffixes of the old control-flow integrity go.
TEST(Suffix, CfiGoesAndEverythingElseStays) {
  EXPECT_EQ(StripCfiSuffix("f.cfi"), "f");
  EXPECT_EQ(StripCfiSuffix("f.cfi_jt"), "f");
  for (const char* name : {"f.cold", "f.isra.0", "f.part.1", "f.constprop.2",
                           "f.llvm.123", "f.cfi.0", ".cfi", "cfi"}) {
    EXPECT_EQ(StripCfiSuffix(name), name);
  }
}

}  // namespace
}  // namespace ksym
