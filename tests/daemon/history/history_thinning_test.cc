// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/thinning.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "daemon/history/flame_adder.h"
#include "daemon/history/limits.h"
#include "daemon/history/rare_callees.h"
#include "daemon/history/segment_merger.h"
#include "daemon/history/table_check.h"
#include "daemon/history/words.h"
#include "tests/daemon/history/stack_parts.h"

namespace profd::history {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::Pair;

Tables Thinned(const std::vector<Profile>& parts) {
  Tables tables = TablesOf(parts);
  ThinTables(tables);
  const auto right = CheckTables(tables);
  EXPECT_TRUE(right) << right.error().message();
  EXPECT_EQ(tables.thinnings.size(), 1u);
  return tables;
}

TEST(HistoryThinning, FoldsWhatOneSampleHasIntoItsCaller) {
  const Tables tables =
      Thinned({PartOf(0, {{.user = "main;serve", .count = 2},
                          {.user = "main;serve;once;deep"},
                          {.user = "main;serve;other"}}),
               PartOf(1, {{.user = "main;twice"}, {.user = "main"}}),
               PartOf(2, {{.user = "main;twice"}})});
  EXPECT_THAT(
      SumsOfStacks(tables),
      ElementsAre(Pair("main | ", SumOfSamples(1, 0)),
                  Pair("main;serve | ", SumOfSamples(2, 0)),
                  Pair("main;serve;[rare callees] | ", SumOfSamples(2, 0)),
                  Pair("main;twice | ", SumOfSamples(2, 0))));
  EXPECT_EQ(tables.thinnings[0].stacks, 3u);
  // Those that were equal are one.
  EXPECT_EQ(tables.rows.size(), 5u);
}

// A stack that several samples begin with stays, though none ends in it twice.
TEST(HistoryThinning, KeepsCallersOfMore) {
  const Tables tables =
      Thinned({PartOf(0, {{.user = "main;a;b;c1"}, {.user = "main;a;b;c2"}})});
  EXPECT_THAT(
      SumsOfStacks(tables),
      ElementsAre(Pair("main;a;b;[rare callees] | ", SumOfSamples(2, 0))));
}

TEST(HistoryThinning, KeepsTheRootOfAProcess) {
  const Tables tables =
      Thinned({PartOf(0, {{.user = "only"},
                          {.user = "start;main"},
                          {.user = "", .kernel = "entry;read"}})});
  EXPECT_THAT(SumsOfStacks(tables),
              ElementsAre(Pair(" | entry;[rare callees]", SumOfSamples(1, 0)),
                          Pair("only | ", SumOfSamples(1, 0)),
                          Pair("start;[rare callees] | ", SumOfSamples(1, 0))));
}

// The sides are folded apart: a system call that many make stays, whoever made
// it once.
TEST(HistoryThinning, MarksBothSidesOfAStack) {
  const Tables tables =
      Thinned({PartOf(0, {{.user = "main;a", .kernel = "entry;read"},
                          {.user = "main;b", .kernel = "entry;read"},
                          {.user = "main;c", .kernel = "entry;write"}})});
  EXPECT_THAT(SumsOfStacks(tables),
              ElementsAre(Pair("main;[rare callees] | entry;[rare callees]",
                               SumOfSamples(1, 0)),
                          Pair("main;[rare callees] | entry;read",
                               SumOfSamples(2, 0))));
  std::vector<const FrameKind*> kinds;
  for (const Function& function : tables.functions) {
    if (tables.strings.Get(function.name) != kRareCallees) continue;
    kinds.push_back(KindOfFunction(tables, function));
    EXPECT_EQ(tables.strings.Get(function.reason),
              ksym::UnresolvedName(kRareReason));
    EXPECT_EQ(tables.strings.Get(function.object), "");
  }
  EXPECT_THAT(kinds, testing::UnorderedElementsAre(&kKernelFrame, &kJitFrame));
}

// The mark says that it is none: a function of that name is told from it.
TEST(HistoryThinning, TellsItsMarkFromAFunctionOfThatName) {
  ProfileBuilder builder;
  const FrameId main = builder.AddFrame({.name = builder.Intern("main")});
  const FrameId mark = builder.AddFrame(
      {.name = builder.Intern(kRareCallees), .kind = &kJitFrame});
  builder.AddSample(
      {.user = builder.AddStack(std::vector{mark, main}), .count = 2});
  const FrameId rare = builder.AddFrame({.name = builder.Intern("rare")});
  builder.AddSample(
      {.user = builder.AddStack(std::vector{rare, main}), .count = 1});
  builder.Add({.taken = 3, .emitted = 3});
  CaptureMetadata metadata;
  metadata.kinds = {EventKind("cpu-clock", 19, 0)};
  const Tables tables = Thinned({std::move(builder).Finish(metadata)});
  EXPECT_EQ(tables.nodes.size(), 4u);
  EXPECT_EQ(tables.functions.size(), 3u);
}

TEST(HistoryThinning, DropsWhatNobodyNames) {
  const Tables tables = Thinned({PartOf(
      0, {{.user = "main;often", .count = 5}, {.user = "main;once;deep"}})});
  EXPECT_EQ(tables.functions.size(), 3u);
  std::vector<std::string> texts;
  for (StringId id = 0; id < tables.strings.size(); ++id) {
    texts.emplace_back(tables.strings.Get(id));
  }
  EXPECT_THAT(texts, Contains("often"));
  EXPECT_THAT(texts, Not(Contains("once")));
  EXPECT_THAT(texts, Not(Contains("of once")));
  EXPECT_THAT(texts, Not(Contains("deep")));
}

// One wait may be most of the time: it stays if it is longer than most.
TEST(HistoryThinning, KeepsALongWait) {
  constexpr SampleKindId kBlocked = 2;
  const auto wait = [](std::string user, uint64_t value) {
    return TextSample{
        .user = std::move(user), .count = 1, .value = value, .kind = kBlocked};
  };
  const Tables tables = Thinned({PartOf(0, {wait("main;long;poll", 1000),
                                            wait("main;short;poll", 10),
                                            wait("main;mean", 505),
                                            {.user = "main;run"}})});
  // The mean is 505.
  EXPECT_THAT(SumsOfStacks(tables),
              ElementsAre(Pair("main;[rare callees] | ", SumOfSamples(3, 515)),
                          Pair("main;long;poll | ", SumOfSamples(1, 1000))));
}

// The mean is that of all of a kind, also where a new rate made it another
// setting's.
TEST(HistoryThinning, TakesSettingsTogether) {
  constexpr SampleKindId kBlocked = 2;
  const auto part = [](unsigned number, uint64_t rate, uint64_t value) {
    return PartOf(number,
                  {{.user = fmt::format("main;f{}", number),
                    .value = value,
                    .kind = kBlocked}},
                  rate);
  };
  const Tables tables = Thinned({part(0, 19, 10), part(1, 99, 1000)});
  EXPECT_THAT(SumsOfStacks(tables),
              ElementsAre(Pair("main;[rare callees] | ", SumOfSamples(1, 10)),
                          Pair("main;f1 | ", SumOfSamples(1, 1000))));
}

TEST(HistoryThinning, TwiceIsOnce) {
  // What is left has a stack that would be rare now.
  Tables tables = Thinned({PartOf(
      0, {{.user = "main;often", .count = 5}, {.user = "main;once;deep"}})});
  const std::string once =
      EncodeSegment(tables, {.first = 1, .last = 6}).value();
  ThinTables(tables);
  EXPECT_EQ(EncodeSegment(tables, {.first = 1, .last = 6}).value(), once);
  auto read = DecodeSegment(once);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->tables.thinnings, tables.thinnings);
  const auto outline = ReadSegmentOutline(once.substr(0, kSegmentHeaderBytes));
  ASSERT_TRUE(outline);
  EXPECT_EQ(outline->most.thinnings, 1u);
}

TEST(HistoryThinning, RefusesAFileThatSaysItTwice) {
  for (const size_t times : {0, 1, 2}) {
    Tables tables = TablesOf({PartNumber(0)});
    tables.thinnings.resize(times);
    const auto read =
        DecodeSegment(EncodeSegment(tables, {.first = 1, .last = 6}).value());
    EXPECT_EQ(read.has_value(), times <= kMaxThinnings) << times;
  }
}

// Files of an hour that could not become one before, and are smaller now.
TEST(HistoryThinning, AddsUpWhereFilesBecomeOne) {
  const Tables one = Thinned({PartOf(0, {{.user = "main;a;b"}})});
  const Tables other = Thinned({PartOf(1, {{.user = "main;c"}})});
  const Tables whole = TablesOf({PartOf(2, {{.user = "main;d"}})});
  SegmentMerger merger;
  for (const Tables* tables : {&one, &other, &whole}) {
    ASSERT_TRUE(merger.Add(*tables));
  }
  const Tables all = std::move(merger).Finish();
  EXPECT_THAT(all.thinnings, ElementsAre(Thinning{.stacks = 3}));
  EXPECT_THAT(SumsOfStacks(all),
              ElementsAre(Pair("main;[rare callees] | ", SumOfSamples(2, 0)),
                          Pair("main;d | ", SumOfSamples(1, 0))));
  Tables many = Thinned({PartOf(0, {{.user = "main;a;b"}})});
  many.thinnings[0].stacks = std::numeric_limits<uint32_t>::max();
  SegmentMerger full;
  ASSERT_TRUE(full.Add(many));
  ASSERT_TRUE(full.Add(other));
  EXPECT_EQ(std::move(full).Finish().thinnings, many.thinnings);
}

// What is folded on the disk and what is too small to show are one box.
TEST(HistoryThinning, IsOneFrameWithWhatIsTooSmallToShow) {
  const Tables tables = Thinned({PartOf(0, {{.user = "main;often", .count = 50},
                                            {.user = "main;seldom", .count = 2},
                                            {.user = "main;once"}})});
  FlameAdder adder({}, {.nodes = 3, .max_bytes = size_t{64} << 20});
  ASSERT_TRUE(adder.Add(tables));
  const Profile flame = std::move(adder).Finish();
  std::map<std::string, uint64_t> stacks;
  for (const ProfileSample& sample : flame.samples) {
    const Frame& leaf = flame.frames[flame.Stack(sample.user)[0]];
    stacks[std::string(flame.String(leaf.name))] += sample.count;
    EXPECT_EQ(flame.Stack(sample.user).size(), 2u);
  }
  EXPECT_THAT(stacks, ElementsAre(Pair(kRareCallees, 3u), Pair("often", 50u)));
  EXPECT_EQ(flame.samples.size(), 2u);
}

// Random stacks of several kinds, commands and seconds.
std::vector<Profile> RandomParts(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned end) {
    return static_cast<unsigned>(random() % end);
  };
  std::vector<Profile> parts;
  for (unsigned number = 0; number < 20; ++number) {
    std::vector<TextSample> samples;
    for (unsigned i = 0; i < 30; ++i) {
      TextSample sample = {.user = below(9) == 0 ? "" : "main"};
      for (unsigned depth = below(8); !sample.user.empty() && depth-- > 0;) {
        sample.user += fmt::format(";f{}", below(3 + depth));
      }
      if (below(2) == 0) {
        sample.kernel = "entry";
        for (unsigned depth = below(5); depth-- > 0;) {
          sample.kernel += fmt::format(";k{}", below(4));
        }
      }
      sample.kind = static_cast<SampleKindId>(below(3));
      if (sample.kind != 0) sample.value = below(1000) + 1;
      sample.count = below(5) == 0 ? 2 : 1;
      sample.comm = fmt::format("c{}", below(2));
      samples.push_back(std::move(sample));
    }
    parts.push_back(PartOf(number, samples, number < 10 ? 19 : 99));
  }
  return parts;
}

// By series, part and kind.
SumsByText SumsOfRows(const Tables& tables) {
  SumsByText sums;
  for (const Row& row : tables.rows) {
    const Series& series = tables.series[row.series];
    AddTo(sums[fmt::format("{} {} {} {}", tables.strings.Get(series.comm),
                           series.pid, series.kind, row.part)],
          row);
  }
  return sums;
}

// What begins with each stack of one side, and what ends there; of each kind.
struct NodeSums {
  SumOfSamples total;
  SumOfSamples self;

  bool operator==(const NodeSums&) const = default;
};
std::map<std::string, NodeSums> SumsOfNodes(const Tables& tables) {
  std::map<std::string, NodeSums> sums;
  for (const Row& row : tables.rows) {
    const uint32_t kind = tables.series[row.series].kind;
    for (const auto& [side, node] :
         {std::pair("user", row.user), {"kernel", row.kernel}}) {
      for (uint32_t at = node; at != 0; at = tables.nodes[at].parent) {
        NodeSums& sum =
            sums[fmt::format("{} {} {}", kind, side, StackText(tables, at))];
        AddTo(sum.total, row);
        if (at == node) AddTo(sum.self, row);
      }
    }
  }
  return sums;
}

// How many samples begin with each stack, of all kinds.
std::map<std::string, uint64_t> CountsOfNodes(const Tables& tables) {
  std::map<std::string, uint64_t> counts;
  for (const auto& [text, sums] : SumsOfNodes(tables)) {
    counts[text.substr(text.find(' ') + 1)] += sums.total.first;
  }
  return counts;
}

TEST(HistoryThinning, KeepsEachSum) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const std::vector<Profile> parts = RandomParts(seed);
    const Tables before = TablesOf(parts);
    const Tables after = Thinned(parts);
    EXPECT_EQ(SumsOfRows(after), SumsOfRows(before)) << seed;
    const auto all = SumsOfNodes(before);
    size_t marks = 0;
    for (const auto& [stack, sums] : SumsOfNodes(after)) {
      if (stack.ends_with(kRareCallees)) {
        ++marks;
      } else {
        const auto found = all.find(stack);
        ASSERT_NE(found, all.end()) << stack;
        EXPECT_EQ(sums, found->second) << stack;
      }
    }
    EXPECT_GT(marks, 0u);
    // Whatever has more than one sample is there, and of the others what is
    // large.
    const auto left = CountsOfNodes(after);
    for (const auto& [stack, count] : CountsOfNodes(before)) {
      if (count < 2) continue;
      EXPECT_THAT(left, Contains(Pair(stack, count)));
    }
    EXPECT_LT(left.size(), CountsOfNodes(before).size());
    EXPECT_EQ(after.parts.size(), before.parts.size());
    EXPECT_EQ(after.counters.size(), before.counters.size());
  }
}

}  // namespace
}  // namespace profd::history
