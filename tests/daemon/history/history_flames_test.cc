// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/flame_adder.h"
#include "daemon/history/history_directory.h"
#include "daemon/history/history_writer.h"
#include "daemon/history/layout.h"
#include "daemon/history/queries.h"
#include "daemon/history/segment_merger.h"
#include "daemon/history/stored_flames.h"
#include "daemon/history/summary.h"
#include "daemon/history/table_order.h"
#include "daemon/history/thinning.h"
#include "daemon/output/format.h"
#include "tests/daemon/history/sample_parts.h"
#include "tests/daemon/history/stack_parts.h"

namespace profd::history {
namespace {

const QueryBounds kRoomOfFlames = {.max_bytes = size_t{64} << 20};
constexpr unsigned kPartsOfRandomFile = 60;
constexpr Sequences kFirstFile = {.first = 1, .last = 1};

class RandomNumbers {
 public:
  explicit RandomNumbers(unsigned seed) : numbers_(seed) {}
  unsigned operator()() { return static_cast<unsigned>(numbers_()); }

 private:
  std::mt19937 numbers_;
};

StackState RandomState(RandomNumbers& random) {
  constexpr auto kStates = static_cast<unsigned>(StackState::kBeyondCopy) + 1;
  return static_cast<StackState>(random() % 40 == 0 ? random() % kStates : 1);
}

// A second of stacks that are alike but at their ends.
Profile RandomPart(RandomNumbers& random, unsigned number, bool has_waits) {
  ProfileBuilder builder;
  const auto stack = [&](const FrameKind& kind, unsigned depths) {
    std::vector<FrameId> frames;
    for (unsigned depth = random() % depths; depth > 0; --depth) {
      const unsigned name = random() % (random() % 100 == 0 ? 200 : 3);
      frames.push_back(builder.AddFrame(
          {.name = builder.Intern(fmt::format("f{}", name)),
           .object = builder.Intern(random() % 50 == 0 ? "b" : "a"),
           .build_id = builder.Intern(fmt::format("{:02x}", random() % 2)),
           .kind = &kind}));
    }
    return builder.AddStack(frames);
  };
  Accounting accounting;
  for (unsigned i = 30 + random() % 40; i > 0; --i) {
    const auto kind = static_cast<SampleKindId>(has_waits ? random() % 3 : 0);
    const uint64_t count = 1 + random() % 3;
    const CallStackId user = stack(kUserFrame, 4);
    builder.AddSample(
        {.comm = builder.Intern(random() % 3 == 0 ? "x" : "y"),
         .pid = 1 + static_cast<uint32_t>(random() % 3),
         .cgroup = builder.Intern("/a.service"),
         .user_state = RandomState(random),
         .kernel_state = RandomState(random),
         .kind = kind,
         .parked = random() % 50 == 0,
         .user = user,
         .kernel = stack(kKernelFrame, 2),
         .count = count,
         .value = kind == 0 ? 0 : count * 1000 + random() % 5000});
    accounting.emitted += count;
    accounting.user_stack_ends[random() % kStackEnds] += count;
    accounting.damaged_by_cause[random() % kDamageCauses] += random() % 2;
  }
  accounting.lost_by_cause[0] = random() % 2;
  accounting.taken = accounting.emitted + accounting.lost();
  builder.Add(accounting);
  CaptureMetadata metadata;
  const uint64_t rate = number % 40 < 30 ? 19 : 99;
  metadata.kinds = {EventKind("cpu-clock", rate, 0)};
  if (has_waits) {
    for (SampleKind& kind : WaitKinds("waits", rate)) {
      metadata.kinds.push_back(std::move(kind));
    }
  }
  metadata.start_unix_ns = kFirstPart + number * kSecond;
  metadata.duration_ns = kSecond;
  return std::move(builder).Finish(std::move(metadata));
}

// The parts from that number on, with waits in some.
Tables RandomFile(RandomNumbers& random, unsigned first) {
  PartAdder adder;
  const unsigned waits_from = first + random() % (2 * kPartsOfRandomFile);
  for (unsigned i = first; i < first + kPartsOfRandomFile; ++i) {
    EXPECT_TRUE(adder.Add(RandomPart(random, i, i >= waits_from),
                          {.boot = "b", .name = "r"}));
  }
  OrderTables(adder.tables());
  return std::move(adder.tables());
}

void WriteTables(const std::string& directory, Tables& tables,
                 Sequences sequences, const SegmentExtras& extras) {
  std::ofstream(directory + "/" + TextOf(SegmentNameOf(tables, sequences)),
                std::ios::binary)
      << EncodeSegment(tables, sequences, extras).value();
}

// All that an answer says.
std::string TextOfFlame(const std::string& directory,
                        const Selection& selection, size_t nodes) {
  const auto answer = ReadFlame(directory, selection, nodes, kRoomOfFlames);
  if (!answer) return std::string(answer.error().message());
  EXPECT_EQ(answer->read.bad_files, 0u);
  std::string text = Render(answer->profile, OutputFormat::kJson, {}) +
                     Render(answer->profile, OutputFormat::kFlamegraph, {});
  for (const ProfileSample& sample : answer->profile.samples) {
    text += fmt::format("{} {} {} {}\n", sample.user, sample.kernel,
                        sample.count, sample.value);
  }
  return text + fmt::format("{} {} {}", answer->coverage.parts,
                            answer->read.files, answer->read.folded_stacks);
}

uint64_t SumOfFlames(const std::string& directory, const Selection& selection) {
  const auto answer = ReadFlame(directory, selection, 1000, kRoomOfFlames);
  EXPECT_TRUE(answer) << answer.error().message();
  uint64_t count = 0;
  for (const auto& sample : answer->profile.samples) count += sample.count;
  return count;
}

TEST(HistoryFlames, GiveWhatRowsGive) {
  RandomNumbers random(7);
  for (int round = 0; round < 6; ++round) {
    const TemporaryDirectory with, without;
    for (unsigned file = 0; file < 4; ++file) {
      Tables tables = RandomFile(random, file * kPartsOfRandomFile);
      if (file == 1) ThinTables(tables);
      const Sequences sequences = {file + 1, file + 1};
      // Before anything sorts its rows.
      const auto flames = FlamesOf(tables);
      ASSERT_TRUE(flames);
      WriteTables(without.path(), tables, sequences, {});
      WriteTables(with.path(), tables, sequences, {.flames = &*flames});
    }
    for (const unsigned begin : {0u, 30u, 61u}) {
      for (const char* kind : {"", "cpu", "blocked", "none"}) {
        const Selection selection = {
            .from_unix_ns = kFirstPart + begin * kSecond - kSecond,
            .until_unix_ns = kFirstPart + (begin + 150) * kSecond,
            .kind = kind};
        for (const size_t nodes : {1u, 20u, 32'768u, 65'536u}) {
          EXPECT_EQ(TextOfFlame(with.path(), selection, nodes),
                    TextOfFlame(without.path(), selection, nodes))
              << begin << kind << nodes;
        }
      }
    }
  }
}

// As many stacks as need marks.
Tables LargeTables() {
  RandomNumbers random(3);
  std::vector<Profile> parts;
  for (unsigned part = 0; part < 40; ++part) {
    std::vector<TextSample> samples;
    for (unsigned i = 0; i < 6000; ++i) {
      samples.push_back(
          {.user = fmt::format("main;f{};g{};h{}", random() % 50,
                               random() % 100, random() % 40),
           .kernel = random() % 2 == 0 ? fmt::format("k{}", random() % 9) : "",
           .comm = random() % 2 == 0 ? "app" : "other"});
    }
    parts.push_back(PartOf(part, samples));
  }
  Tables tables = TablesOf(parts);
  OrderTables(tables);
  return tables;
}

TEST(HistoryFlames, GiveWhatRowsGiveOfManyStacks) {
  const TemporaryDirectory with, without;
  Tables tables = LargeTables();
  WriteTables(without.path(), tables, kFirstFile, {});
  const auto flames = FlamesOf(tables);
  ASSERT_TRUE(flames);
  EXPECT_GT(flames->flames[1].rare_up_to, 0u);
  EXPECT_LE(flames->nodes.size(), 2 * kStoredFlameNodes);
  WriteTables(with.path(), tables, kFirstFile, {.flames = &*flames});
  for (const size_t nodes : {100u, 20'000u, 32'768u, 65'536u}) {
    EXPECT_EQ(TextOfFlame(with.path(), {.from_unix_ns = 1}, nodes),
              TextOfFlame(without.path(), {.from_unix_ns = 1}, nodes))
        << nodes;
  }
}

// Tables whose flames can be told from their rows: each sample is one of ten.
Tables TenthOf(const Tables& tables) {
  Tables tenth = tables;
  for (Row& row : tenth.rows) row.count = 1;
  return tenth;
}

// A file of twenty seconds with ten samples in each row.
Tables TensOfSamples() {
  std::vector<Profile> parts;
  for (unsigned i = 0; i < 20; ++i) {
    parts.push_back(
        PartOf(i, {{.user = "main;serve", .count = 10},
                   {.user = "main", .kernel = "read", .count = 10},
                   {.user = "main", .count = 10, .value = 7, .kind = 2}}));
  }
  return TablesOf(parts);
}

TEST(HistoryFlames, AreReadWhereNothingElseIsAskedFor) {
  const TemporaryDirectory directory;
  Tables tables = TensOfSamples();
  Tables tenth = TenthOf(tables);
  const auto flames = FlamesOf(tenth);
  ASSERT_TRUE(flames);
  // The names of counters are the same in both.
  ASSERT_EQ(tenth.strings.size(), tables.strings.size());
  WriteTables(directory.path(), tables, kFirstFile, {.flames = &*flames});
  const Selection all = {.from_unix_ns = kFirstPart - kSecond,
                         .until_unix_ns = kFirstPart + 60 * kSecond};
  EXPECT_EQ(SumOfFlames(directory.path(), all), 40u);
  Selection selection = all;
  selection.kind = "blocked";
  EXPECT_EQ(SumOfFlames(directory.path(), selection), 20u);
  // Others need the rows.
  selection = all;
  selection.command = "app";
  EXPECT_EQ(SumOfFlames(directory.path(), selection), 400u);
  selection = all;
  selection.unit = "a.service";
  EXPECT_EQ(SumOfFlames(directory.path(), selection), 400u);
  selection = all;
  selection.function = "main";
  EXPECT_EQ(SumOfFlames(directory.path(), selection), 400u);
  selection = all;
  selection.pid = 7;
  EXPECT_EQ(SumOfFlames(directory.path(), selection), 400u);
  selection = all;
  selection.from_unix_ns = kFirstPart + kSecond;
  EXPECT_EQ(SumOfFlames(directory.path(), selection), 380u);
  const auto many = ReadFlame(directory.path(), all, 40'000, kRoomOfFlames);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->profile.samples.at(0).count, 200u);
}

TEST(HistoryFlames, AreNotOfTheTimeInAName) {
  const TemporaryDirectory directory;
  Tables tables = TensOfSamples();
  const std::string bytes = EncodeSummarized(tables, kFirstFile).value();
  FileName name = SegmentNameOf(tables, kFirstFile);
  name.begin_s -= 86400;
  name.end_s -= 86400;
  std::ofstream(directory.path() + "/" + TextOf(name), std::ios::binary)
      << bytes;
  EXPECT_EQ(SumOfFlames(directory.path(),
                        {.until_unix_ns = kFirstPart - 3600 * kSecond}),
            0u);
}

TEST(HistoryFlames, AreLeftOutWhereTheySaveNothing) {
  // As many nodes as rows and stacks.
  std::vector<TextSample> samples;
  for (unsigned i = 0; i < 50; ++i) {
    samples.push_back({.user = fmt::format("f{}", i)});
  }
  Tables tables = TablesOf({PartOf(0, samples)});
  EXPECT_FALSE(FlamesOf(tables));
  const auto read = DecodeSegment(EncodeSummarized(tables, kFirstFile).value(),
                                  Content::kFlames);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_FALSE(read->flames);
  EXPECT_EQ(read->tables.rows.size(), 50u);
}

TEST(HistoryFlames, LieBehindTheSummary) {
  Tables tables = TensOfSamples();
  const std::string bytes = EncodeSummarized(tables, kFirstFile).value();
  const auto read = DecodeSegment(bytes, Content::kFlames);
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_TRUE(read->flames);
  EXPECT_EQ(*read->flames, FlamesOf(tables));
  EXPECT_TRUE(read->tables.rows.empty());
  EXPECT_EQ(read->tables.nodes.size(), 1u);
  EXPECT_EQ(read->tables.parts.size(), tables.parts.size());
  EXPECT_EQ(read->tables.functions, tables.functions);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(DecodeSegment(flipped, Content::kFlames)) << bit;
    EXPECT_FALSE(DecodeSegment(flipped)) << bit;
  }
}

TEST(HistoryFlames, AreRefusedWhereTheyNameWhatIsNotThere) {
  Tables tables = TensOfSamples();
  const StoredFlames right = FlamesOf(tables).value();
  ASSERT_TRUE(DecodeFlames(EncodeFlames(right), tables));
  ASSERT_EQ(right.flames.size(), 4u);
  const std::vector<std::function<void(StoredFlames&)>> wrongs = {
      [](StoredFlames& flames) { flames.flames.clear(); },
      [](StoredFlames& flames) { flames.flames[1].kind = 3; },
      [](StoredFlames& flames) { ++flames.flames[1].roots; },
      [](StoredFlames& flames) { ++flames.flames[1].nodes; },
      [](StoredFlames& flames) { --flames.flames[1].counters; },
      [](StoredFlames& flames) { flames.roots[0].comm = 1000; },
      [](StoredFlames& flames) { flames.roots[0].user_state = 12; },
      [](StoredFlames& flames) { flames.roots[0].kernel_state = 12; },
      [](StoredFlames& flames) { flames.roots[0].parked = 2; },
      [](StoredFlames& flames) { flames.roots.emplace_back(); },
      [](StoredFlames& flames) { flames.nodes[2].parent = 2; },
      [](StoredFlames& flames) { flames.nodes[2].parent = 0; },
      [](StoredFlames& flames) { flames.nodes.back().parent = 1; },
      [](StoredFlames& flames) { flames.nodes[1].frame = 1; },
      [](StoredFlames& flames) { flames.nodes[2].frame = 1000; },
      [](StoredFlames& flames) { flames.nodes[2].is_kernel = 2; },
      [](StoredFlames& flames) { flames.nodes[1].is_kernel = 1; },
      [](StoredFlames& flames) { flames.nodes[2].count = 401; },
      [](StoredFlames& flames) { flames.nodes[2].count = ~uint64_t{0}; },
      [](StoredFlames& flames) {
        std::ranges::find(flames.nodes, 200u, &StoredNode::count)->more =
            ~uint64_t{0};
      },
      [](StoredFlames& flames) { flames.flames[1].value_of_sample <<= 40; },
      [](StoredFlames& flames) { flames.counters[0].name = 1000; },
      [](StoredFlames& flames) { flames.counters[0].name = 0; },
      [](StoredFlames& flames) { flames.counters.emplace_back(); },
  };
  for (size_t i = 0; i < wrongs.size(); ++i) {
    StoredFlames flames = right;
    wrongs[i](flames);
    EXPECT_FALSE(DecodeFlames(EncodeFlames(flames), tables)) << i;
  }
  const std::string bytes = EncodeFlames(right);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeFlames(bytes.substr(0, size), tables)) << size;
  }
}

TEST(HistoryFlames, ComeWithWhatAWriterMakes) {
  const TemporaryDirectory directory;
  const auto has_flames = [&](ptrdiff_t files) {
    const std::vector<FileName> names = ListFiles(directory.path()).value();
    EXPECT_EQ(std::ranges::count(names, true, &FileName::is_segment), files);
    for (const FileName& name : names) {
      if (!name.is_segment) continue;
      const auto bytes = ReadHistoryFile(directory.path(), name);
      const auto file = DecodeFile(name, bytes.value(), Content::kFlames);
      EXPECT_TRUE(file && file->flames) << TextOf(name);
    }
  };
  const auto open = [&] {
    return HistoryWriter::Open(directory.path(),
                               {.journal = std::chrono::seconds(20)},
                               {.boot = "b", .name = "r"}, kFirstPart);
  };
  auto writer = open();
  ASSERT_TRUE(writer) << writer.error().message();
  for (unsigned i = 0; i < 40; ++i) {
    writer->Add(PartOf(i, {{.user = "main;serve", .count = 3},
                           {.user = fmt::format("main;rare_{}", i / 10)}}));
    ASSERT_TRUE(writer->Commit(kFirstPart + (i + 1) * kSecond));
  }
  has_flames(1);
  // Makes a segment of the journal.
  writer = ksym::Fail(ksym::ErrorCode::kIo, "closed");
  writer = open();
  ASSERT_TRUE(writer) << writer.error().message();
  has_flames(2);
  const auto go_on = [] { return false; };
  ASSERT_TRUE(writer->Compact(kFirstPart + 3 * 3600 * kSecond, go_on));
  has_flames(1);
  const uint64_t later = kFirstPart + 50 * 3600 * kSecond;
  ASSERT_TRUE(writer->Thin(later, go_on));
  EXPECT_EQ(writer->counts().thinnings, 1u);
  has_flames(1);
}

}  // namespace
}  // namespace profd::history
