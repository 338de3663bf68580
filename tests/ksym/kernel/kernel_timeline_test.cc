// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kernel_timeline.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/ksym/kernel/kernel_tables.h"

namespace ksym {
namespace {

using ksym_test::TableOf;

constexpr std::string_view kTable =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T one\n"
    "ffffffff81001000 T two\n"
    "ffffffff81002000 T _etext\n"
    "ffffffffc0001000 t bpf_prog_old\t[bpf]\n"
    "ffffffffc0002000 t bpf_prog_other\t[bpf]\n";

class KernelTimelineTest : public testing::Test {
 protected:
  void Add(uint64_t start, uint64_t size, const char* name) {
    timeline_.Apply(
        {KernelSymbolChange::Kind::kAdded, Address{start}, size, name, "bpf"});
  }
  void Remove(uint64_t start, uint64_t size, const char* name) {
    timeline_.Apply({KernelSymbolChange::Kind::kRemoved, Address{start}, size,
                     name, "bpf"});
  }
  // The name, "" for none, "?" for an ambiguous one.
  std::string NameAt(uint64_t address) {
    const auto answer = timeline_.Find(Address{address}, buffer_);
    if (answer.kind == KernelTimeline::Answer::Kind::kAmbiguous) return "?";
    if (answer.kind == KernelTimeline::Answer::Kind::kNone) return "";
    EXPECT_EQ(answer.symbol.start + answer.symbol.offset, Address{address});
    return std::string(answer.symbol.name);
  }

  KernelTimeline timeline_{TableOf(kTable)};
  SymbolNameBuffer buffer_;
};

// Without changes the snapshot answers.
TEST_F(KernelTimelineTest, AnswersFromTheSnapshot) {
  EXPECT_EQ(NameAt(0xffffffff81000fff), "one");
  EXPECT_EQ(NameAt(0xffffffff81001000), "two");
  EXPECT_EQ(NameAt(0xffffffffc0001004), "bpf_prog_old");
}

// A program that is loaded has its name from its first to its last byte.
TEST_F(KernelTimelineTest, KnowsAddedSymbols) {
  Add(0xffffffffd0000000, 0x100, "bpf_prog_new");
  EXPECT_EQ(NameAt(0xffffffffd0000000), "bpf_prog_new");
  EXPECT_EQ(NameAt(0xffffffffd00000ff), "bpf_prog_new");
  EXPECT_EQ(NameAt(0xffffffffd0000100), "");
  EXPECT_EQ(NameAt(0xffffffff81001000), "two");
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffd0000000), "bpf_prog_new");
}

// One that goes is known to the end of its interval, and not after.
TEST_F(KernelTimelineTest, ForgetsRemovedSymbolsWithTheirInterval) {
  Add(0xffffffffd0000000, 0x100, "bpf_prog_new");
  timeline_.EndInterval();
  Remove(0xffffffffd0000000, 0x100, "bpf_prog_new");
  EXPECT_EQ(NameAt(0xffffffffd0000010), "bpf_prog_new");
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffd0000010), "");
  EXPECT_EQ(timeline_.added_symbols(), 0u);
}

// The same holds for one that was there when the table was read.
TEST_F(KernelTimelineTest, ForgetsRemovedSymbolsOfTheSnapshot) {
  Remove(0xffffffffc0001000, 0x100, "bpf_prog_old");
  EXPECT_EQ(NameAt(0xffffffffc0001010), "bpf_prog_old");
  EXPECT_EQ(NameAt(0xffffffffc0002010), "bpf_prog_other");
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffc0001010), "");
  EXPECT_EQ(NameAt(0xffffffffc0002010), "bpf_prog_other");
}

// Two programs at one address within one interval: no name is the true one.
TEST_F(KernelTimelineTest, GivesNoNameWhereTwoWereInOneInterval) {
  Add(0xffffffffd0000000, 0x100, "bpf_prog_a");
  Remove(0xffffffffd0000000, 0x100, "bpf_prog_a");
  Add(0xffffffffd0000080, 0x100, "bpf_prog_b");
  EXPECT_EQ(NameAt(0xffffffffd0000010), "bpf_prog_a");
  EXPECT_EQ(NameAt(0xffffffffd0000090), "?");
  EXPECT_EQ(NameAt(0xffffffffd0000100), "bpf_prog_b");
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffd0000010), "");
  EXPECT_EQ(NameAt(0xffffffffd0000090), "bpf_prog_b");
}

// The same program loaded again at its old place is one program.
TEST_F(KernelTimelineTest, KnowsAProgramThatIsLoadedAgain) {
  for (int i = 0; i < 3; ++i) {
    Add(0xffffffffd0000000, 0x100, "bpf_prog_a");
    Remove(0xffffffffd0000000, 0x100, "bpf_prog_a");
  }
  EXPECT_EQ(NameAt(0xffffffffd0000010), "bpf_prog_a");
}

// A program in the place of one that the snapshot had.
TEST_F(KernelTimelineTest, GivesNoNameWhereTheSnapshotsWasReplaced) {
  Remove(0xffffffffc0001000, 0x100, "bpf_prog_old");
  Add(0xffffffffc0001000, 0x100, "bpf_prog_new");
  EXPECT_EQ(NameAt(0xffffffffc0001010), "?");
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffc0001010), "bpf_prog_new");
}

// A table that is read anew takes over; what only the old one had is known to
// the interval's end.
TEST_F(KernelTimelineTest, FollowsANewTable) {
  timeline_.Replace(
      TableOf("ffffffff81000000 T _stext\n"
              "ffffffff81000000 T one\n"
              "ffffffff81002000 T _etext\n"
              "ffffffffc0100000 t module_function\t[mod]\n"));
  EXPECT_EQ(NameAt(0xffffffffc0100010), "module_function");
  EXPECT_EQ(NameAt(0xffffffffc0001004), "bpf_prog_old");
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffc0100010), "module_function");
  EXPECT_EQ(NameAt(0xffffffffc0001004), "");
}

// A module that got the place of one that went in the same interval has no
// name in it, as the samples may be the other's; from the next one on it has.
TEST_F(KernelTimelineTest, GivesNoNameWhereModulesChangedPlaces) {
  timeline_.Replace(
      TableOf("ffffffff81001000 T two\n"
              "ffffffffc0100000 t a_work\t[a]\n"));
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffc0100010), "a_work");
  timeline_.Replace(
      TableOf("ffffffff81001000 T two\n"
              "ffffffffc0100000 t b_work\t[b]\n"));
  EXPECT_EQ(NameAt(0xffffffffc0100010), "?");
  EXPECT_EQ(NameAt(0xffffffff81001010), "two");
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffc0100010), "b_work");
}

// Where a module's last symbol ends is not known: one that comes behind it was
// never its part. What goes again within the interval has no name.
TEST_F(KernelTimelineTest, NamesAModuleBehindAnother) {
  const std::string alone =
      "ffffffff81001000 T two\n"
      "ffffffffc0100000 t a_work\t[a]\n";
  const std::string both = alone + "ffffffffc0100800 t b_work\t[b]\n";
  timeline_.Replace(TableOf(alone));
  timeline_.EndInterval();
  timeline_.Replace(TableOf(both));
  EXPECT_EQ(NameAt(0xffffffffc0100010), "a_work");
  EXPECT_EQ(NameAt(0xffffffffc0100810), "b_work");
  timeline_.EndInterval();
  timeline_.Replace(TableOf(alone));
  EXPECT_EQ(NameAt(0xffffffffc0100010), "a_work");
  EXPECT_EQ(NameAt(0xffffffffc0100810), "?");
}

// While the table waits to be read again what is in doubt has no name, if it is
// a module's; what the kernel reports by itself and its image have.
TEST_F(KernelTimelineTest, DoubtsModulesUntilTheTableIsReadAgain) {
  const std::string table =
      std::string(kTable) + "ffffffffc0100000 t a_work\t[a]\n";
  const std::vector<KernelRange> where_a = {
      {Address{0xffffffffc0100000}, Address{0xffffffffc0101000}}};
  timeline_.Replace(TableOf(table));
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffc0100010), "a_work");
  timeline_.DoubtModules({{Address{0}, Address{~uint64_t{0}}}});
  EXPECT_EQ(NameAt(0xffffffffc0100010), "?");
  EXPECT_EQ(NameAt(0xffffffffc0001004), "bpf_prog_old");
  EXPECT_EQ(NameAt(0xffffffff81001010), "two");
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffc0100010), "?");
  timeline_.Replace(TableOf(table));
  EXPECT_EQ(NameAt(0xffffffffc0100010), "a_work");
  // Had it gone, another could have been there between the two readings.
  timeline_.EndInterval();
  timeline_.DoubtModules(where_a);
  timeline_.EndInterval();
  timeline_.Replace(TableOf(kTable));
  EXPECT_EQ(NameAt(0xffffffffc0100010), "?");
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffc0100010), "");
}

// A storm of loads and unloads leaves nothing behind.
TEST_F(KernelTimelineTest, StaysSmallInAStorm) {
  for (int interval = 0; interval < 100; ++interval) {
    for (int i = 0; i < 500; ++i) {
      Add(0xffffffffd0000000, 0x100, "bpf_prog_a");
      Remove(0xffffffffd0000000, 0x100, "bpf_prog_a");
    }
    timeline_.EndInterval();
    EXPECT_EQ(timeline_.added_symbols(), 0u);
  }
}

// Intervals that had ended when the table was read have what the one before it
// has, until the first one that had not; where both have something there is no
// answer, whatever is told of the place meanwhile.
TEST_F(KernelTimelineTest, EarlierIntervals) {
  timeline_.Replace(
      TableOf("ffffffff81000000 T _stext\n"
              "ffffffff81000000 T one\n"
              "ffffffff81002000 T _etext\n"
              "ffffffffc0001000 t bpf_prog_new\t[bpf]\n"
              "ffffffffc0001800 t bpf_prog_late\t[bpf]\n"));
  timeline_.EndEarlierInterval();
  EXPECT_EQ(NameAt(0xffffffffc0002004), "bpf_prog_other");
  Remove(0xffffffffc0001000, 0x100, "bpf_prog_old");
  EXPECT_EQ(NameAt(0xffffffffc0001004), "?");
  timeline_.EndEarlierInterval();
  Add(0xffffffffc0001000, 0x100, "bpf_prog_new");
  EXPECT_EQ(NameAt(0xffffffffc0001004), "?");
  EXPECT_EQ(NameAt(0xffffffffc0002004), "bpf_prog_other");
  timeline_.EndEarlierInterval();
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffc0001004), "bpf_prog_new");
  EXPECT_EQ(NameAt(0xffffffffc0002004), "");
  // Told of and listed: it goes from both.
  Remove(0xffffffffc0001000, 0x100, "bpf_prog_new");
  EXPECT_EQ(NameAt(0xffffffffc0001004), "bpf_prog_new");
  timeline_.EndInterval();
  EXPECT_EQ(NameAt(0xffffffffc0001004), "");
}

}  // namespace
}  // namespace ksym
