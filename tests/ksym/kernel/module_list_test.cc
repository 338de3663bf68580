#include "ksym/kernel/module_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ksym {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const KernelModule kExt4 = {"ext4", {Address{0x10000}, Address{0x20000}}};
const KernelModule kZram = {"zram", {Address{0x30000}, Address{0x38000}}};
const KernelModule kXor = {"xor", {Address{0x34000}, Address{0x35000}}};

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
  const KernelModule moved = {"zram", kXor.memory};
  EXPECT_THAT(list.EndInterval({moved}), ElementsAre(moved.memory));
}

}  // namespace
}  // namespace ksym
