// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/module_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/ksym/kernel/kernel_tables.h"

namespace ksym {
namespace {

using ksym_test::TableOf;
using testing::ElementsAre;
using testing::IsEmpty;

KernelModule Module(std::string_view name, uint64_t start, uint64_t end) {
  return {.name = std::string(name),
          .memory = {Address{start}, Address{end}},
          .bytes = end - start};
}

const KernelModule kExt4 = Module("ext4", 0x10000, 0x20000);
const KernelModule kZram = Module("zram", 0x30000, 0x38000);
const KernelModule kXor = Module("xor", 0x34000, 0x35000);

// Lines of /proc/modules give name and memory; those without a name, a
// size or an address, or with one that is hidden or wraps, are left out.
TEST(ParseModules, TakesLinesApart) {
  EXPECT_THAT(ParseModules("ext4 65536 2 - Live 0x10000\n"
                           "hidden 16 0 - Live 0x0000000000000000\n"
                           "wraps 32 0 - Live 0xfffffffffffffff0\n"
                           "nonsense\n\n"
                           " 16 0 - Live 0x1000\n"
                           "zram 32768 0 a,b, Live 0x30000 (E)"),
              ElementsAre(kExt4, kZram));
  EXPECT_THAT(ParseModules(""), IsEmpty());
}

// Since Linux 6.4 the size is that of several areas: where the code of one
// begins that of the one before has ended.
TEST(ParseModules, EndsCodeWhereOtherCodeBegins) {
  EXPECT_THAT(
      ParseModules("zram 65536 0 - Live 0x12000\n"
                   "lz4 65536 1 zram, Live 0x10000\n"
                   "xor 4096 0 - Live 0x40000\n"),
      testing::Pointwise(
          testing::Truly([](const auto& pair) {
            return std::get<0>(pair).memory == std::get<1>(pair);
          }),
          std::vector<KernelRange>{{Address{0x12000}, Address{0x22000}},
                                   {Address{0x10000}, Address{0x12000}},
                                   {Address{0x40000}, Address{0x41000}}}));
}

// What a module needs to begin with goes when it has begun; another size else
// is that of another one.
TEST(ParseModules, KnowsAModuleThatWasLoading) {
  const auto of = [](std::string_view text) {
    return ParseModules(text).front();
  };
  const KernelModule loading = of("zram 65536 0 - Loading 0x12000");
  const KernelModule live = of("zram 45056 0 - Live 0x12000");
  EXPECT_TRUE(IsSameModule(loading, live));
  EXPECT_TRUE(IsSameModule(live, loading));
  EXPECT_FALSE(IsSameModule(live, of("zram 65536 0 - Live 0x12000")));
  EXPECT_FALSE(IsSameModule(loading, of("lz4 65536 0 - Loading 0x12000")));

  const auto table = TableOf("0000000000012000 t in_zram\t[zram]\n");
  ModuleList list(ModulesOfTable({loading}, {live}, table));
  EXPECT_THAT(list.EndInterval({live}), IsEmpty());
  EXPECT_THAT(list.EndInterval({live}), IsEmpty());
  EXPECT_THAT(list.EndInterval({}), IsEmpty());
  EXPECT_THAT(list.EndInterval({}), ElementsAre(live.memory));
}

// A module that came while the table was read is in it or not, as its symbols
// are, and where it is: another one of its name is none.
TEST(ModulesOfTable, KnowsWhatCameMeanwhile) {
  const auto table = TableOf(
      "0000000000001000 T _stext\n"
      "0000000000001000 T core\n"
      "0000000000002000 T _etext\n"
      "0000000000030040 t in_zram\t[zram]\n"
      "0000000000050000 t elsewhere\t[xor]\n");
  const auto of_table = [&](std::vector<KernelModule> before,
                            const std::vector<KernelModule>& after) {
    return ModulesOfTable(std::move(before), after, table);
  };
  EXPECT_THAT(of_table({kExt4}, {kExt4, kZram}), ElementsAre(kExt4, kZram));
  EXPECT_THAT(of_table({kExt4}, {kXor, kExt4}), ElementsAre(kExt4));
  EXPECT_THAT(of_table({kXor, kExt4}, {}), ElementsAre(kXor, kExt4));
  EXPECT_THAT(of_table({}, {kXor, kZram}), ElementsAre(kZram));
}

// As long as the same modules are at the same places nothing is doubtful.
TEST(ModuleList, NothingChanged) {
  ModuleList list({kExt4, kZram});
  EXPECT_THAT(list.EndInterval({kZram, kExt4}), IsEmpty());
  EXPECT_THAT(list.EndInterval({kZram, kExt4}), IsEmpty());
}

// One that went keeps its names in the interval in which it went, and no
// longer, also when it comes back: its place may have been another's.
TEST(ModuleList, AModuleGoes) {
  ModuleList list({kExt4, kZram});
  EXPECT_THAT(list.EndInterval({kExt4}), IsEmpty());
  EXPECT_THAT(list.EndInterval({kExt4}), ElementsAre(kZram.memory));
  EXPECT_THAT(list.EndInterval({kExt4, kZram}), ElementsAre(kZram.memory));
}

// One that is new is not in the table, whatever the table has at its place.
TEST(ModuleList, AModuleComes) {
  ModuleList list({kExt4, kZram});
  EXPECT_THAT(list.EndInterval({kExt4, kXor}), ElementsAre(kXor.memory));
}

// Asking who is new forgets nothing of who went.
TEST(ModuleList, Newcomers) {
  ModuleList list({kExt4, kZram});
  EXPECT_THAT(list.Newcomers({kExt4, kXor}), ElementsAre(kXor.memory));
  EXPECT_THAT(list.Newcomers({kExt4}), IsEmpty());
  EXPECT_THAT(list.EndInterval({kExt4}), IsEmpty());
}

// The same name at another place is another module.
TEST(ModuleList, AModuleMoves) {
  ModuleList list({kZram});
  const KernelModule moved = Module("zram", 0x34000, 0x35000);
  EXPECT_THAT(list.EndInterval({moved}), ElementsAre(moved.memory));
}

}  // namespace
}  // namespace ksym
