// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "daemon/history/history_writer.h"
#include "daemon/history/limits.h"
#include "daemon/history/queries.h"
#include "daemon/history/query_json.h"
#include "daemon/history/segment_merger.h"
#include "daemon/history/table_check.h"
#include "daemon/output/format.h"
#include "ksym/base/file.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kHour = 3600 * kSecond;
constexpr uint64_t kFirstHour = kFirstPart / kHour * kHour;
// The first hour's files may be put together.
constexpr uint64_t kDue = kFirstHour + kHour + 600 * kSecond;

const auto kNever = [] { return false; };

// A segment for each part.
ksym::Result<HistoryWriter> OpenForParts(const std::string& folder,
                                         const std::string& run = "r") {
  return HistoryWriter::Open(folder, {.journal_memory_bytes = 1},
                             {.boot = "b", .name = run}, kFirstPart);
}

void WriteParts(HistoryWriter& writer, unsigned begin, unsigned end,
                uint64_t rate = 19) {
  for (unsigned i = begin; i < end; ++i) {
    writer.Add(PartNumber(i, rate));
    ASSERT_TRUE(writer.Commit(kFirstPart + (i + 1) * kSecond));
  }
}

// "1-5" for a segment, "6" for a journal, oldest first.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> texts;
  const auto files = ListFiles(folder).value();
  for (const FileName& name : files) {
    texts.push_back(name.is_segment ? fmt::format("{}-{}", name.sequences.first,
                                                  name.sequences.last)
                                    : fmt::format("{}", name.sequences.first));
  }
  return texts;
}

size_t CountNames(const std::string& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

std::string FrameText(const Profile& profile, FrameId id) {
  const Frame& frame = profile.frames[id];
  return fmt::format("{} {} {} {} {} {} {} {}", profile.String(frame.name),
                     profile.String(frame.object),
                     profile.String(frame.build_id), frame.kind->name,
                     ksym::UnresolvedName(frame.reason),
                     profile.String(frame.file), profile.String(frame.function),
                     frame.first_line);
}

// All that a profile says of its samples, in any order.
std::map<std::string, std::pair<uint64_t, uint64_t>> SamplesOf(
    const Profile& profile) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> samples;
  for (const ProfileSample& sample : profile.samples) {
    std::string text = fmt::format(
        "{} {} {} {} {} {} {} {}", profile.String(sample.comm), sample.pid,
        sample.tid, profile.String(sample.cgroup),
        static_cast<int>(sample.user_state),
        static_cast<int>(sample.kernel_state), sample.kind, sample.parked);
    for (const CallStackId stack : {sample.user, sample.kernel}) {
      text += "\n--";
      for (const FrameId frame : profile.Stack(stack)) {
        text += "\n" + FrameText(profile, frame);
      }
    }
    auto& [count, value] = samples[text];
    count += sample.count;
    value += sample.value;
  }
  return samples;
}

std::string SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::ranges::sort(lines);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

// What the queries answer, of all and of a second in the middle.
struct Answers {
  std::map<std::string, std::pair<uint64_t, uint64_t>> samples[2];
  std::vector<Accounting> accountings;
  std::vector<std::string> warnings;
  std::vector<std::string> texts;

  bool operator==(const Answers&) const = default;
};

Answers AnswersOf(const std::string& folder) {
  Answers answers;
  const QueryBounds bounds = {.max_bytes = size_t{64} << 20};
  Selection selection = {.from_unix_ns = kFirstPart - kHour,
                         .until_unix_ns = kFirstPart + 2 * kHour};
  for (auto& samples : answers.samples) {
    const auto range = ReadRange(folder, selection, bounds);
    const auto functions = ReadFunctions(folder, selection, bounds);
    const auto flame = ReadFlame(folder, selection, 1000, bounds);
    const auto line = ReadTimeline(folder,
                                   {.selection = selection,
                                    .step_ns = kSecond,
                                    .by = TimelineBy::kCommand},
                                   bounds);
    EXPECT_TRUE(range && functions && flame && line);
    if (!range || !functions || !flame || !line) return answers;
    EXPECT_EQ(range->read.bad_files, 0u);
    samples = SamplesOf(range->profile);
    answers.accountings.push_back(range->profile.accounting);
    std::ranges::copy(range->profile.metadata.warnings,
                      std::back_inserter(answers.warnings));
    for (const OutputFormat format :
         {OutputFormat::kFolded, OutputFormat::kText}) {
      answers.texts.push_back(SortedLines(Render(range->profile, format, {})));
    }
    answers.texts.push_back(
        SortedLines(Render(flame->profile, OutputFormat::kFolded, {})));
    answers.texts.push_back(RenderFunctionsJson(*functions, 0));
    answers.texts.push_back(RenderTimelineJson(*line));
    selection.from_unix_ns = kFirstPart + 2 * kSecond;
    selection.until_unix_ns = kFirstPart + 3 * kSecond;
  }
  return answers;
}

// Tells what would be there without the compaction, and compacts.
void ExpectSameAfter(const std::string& folder, HistoryWriter& writer,
                     uint64_t now = kDue) {
  const Answers before = AnswersOf(folder);
  EXPECT_FALSE(before.samples[0].empty());
  const auto done = writer.Compact(now, kNever);
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(AnswersOf(folder), before);
}

TEST(HistoryCompaction, GivesTheUnionOfAnHour) {
  const TemporaryFolder folder;
  auto writer = OpenForParts(folder.path());
  ASSERT_TRUE(writer) << writer.error().message();
  WriteParts(*writer, 0, 4);
  WriteParts(*writer, 4, 6, 99);
  const uint64_t before = writer->bytes();
  ExpectSameAfter(folder.path(), *writer);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-6"));
  EXPECT_EQ(CountNames(folder.path()), 2u);  // and the lock
  EXPECT_EQ(writer->counts().compactions, 1u);
  EXPECT_EQ(writer->files(), 1u);
  EXPECT_LT(writer->bytes(), before);
  EXPECT_EQ(writer->bytes(),
            fs::file_size(folder.path() + "/" +
                          TextOf(ListFiles(folder.path()).value().front())));
  // It never goes into another one.
  WriteParts(*writer, 6, 8);
  ExpectSameAfter(folder.path(), *writer);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-6", "7-8"));
  ExpectSameAfter(folder.path(), *writer);
  EXPECT_EQ(writer->counts().compactions, 2u);
}

TEST(HistoryCompaction, HasEachThingOnce) {
  const Tables one = TablesOf({PartNumber(0), PartNumber(1)});
  const Tables other = TablesOf({PartNumber(1), PartNumber(2)});
  SegmentMerger merger;
  ASSERT_TRUE(merger.Add(one));
  ASSERT_TRUE(merger.Add(other));
  const Tables tables = std::move(merger).Finish();
  const Sizes sizes = tables.sizes();
  const Sizes wanted =
      TablesOf({PartNumber(0), PartNumber(1), PartNumber(2)}).sizes();
  EXPECT_EQ(sizes.strings, wanted.strings);
  EXPECT_EQ(sizes.functions, wanted.functions);
  EXPECT_EQ(sizes.nodes, wanted.nodes);
  EXPECT_EQ(sizes.series, wanted.series);
  EXPECT_EQ(sizes.kinds, 1u);
  EXPECT_EQ(sizes.settings, 1u);
  EXPECT_EQ(sizes.parts, 4u);
  EXPECT_TRUE(CheckTables(tables));
}

TEST(HistoryCompaction, WaitsForTheEndOfTheHour) {
  const TemporaryFolder folder;
  auto writer = OpenForParts(folder.path());
  ASSERT_TRUE(writer);
  WriteParts(*writer, 0, 3);
  ASSERT_TRUE(writer->Compact(kDue - kSecond, kNever));
  EXPECT_EQ(FilesIn(folder.path()).size(), 3u);
  // Others wait for the thread.
  EXPECT_FALSE(writer->Compact(kDue, [] { return true; }));
  EXPECT_EQ(FilesIn(folder.path()).size(), 3u);
  ASSERT_TRUE(writer->Compact(kDue + 600 * kSecond, kNever));
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-3"));
}

TEST(HistoryCompaction, WaitsForTheHoursLastJournal) {
  const TemporaryFolder folder;
  {
    auto writer = OpenForParts(folder.path());
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, 3);
  }
  auto writer =
      HistoryWriter::Open(folder.path(), {}, {.boot = "b", .name = "r"}, kDue);
  ASSERT_TRUE(writer);
  WriteParts(*writer, 3, 4);
  ExpectSameAfter(folder.path(), *writer);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-1", "2-2", "3-3", "4"));
  // It is sealed, and the next one is of another hour.
  writer->Add(PartNumber(4));
  ASSERT_TRUE(writer->Commit(kDue + kSecond));
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-1", "2-2", "3-3", "4-4"));
  ExpectSameAfter(folder.path(), *writer, kDue + kSecond);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-4"));
}

TEST(HistoryCompaction, KeepsHoursApart) {
  const TemporaryFolder folder;
  auto writer = OpenForParts(folder.path());
  ASSERT_TRUE(writer);
  WriteParts(*writer, 0, 2);
  WriteParts(*writer, 3600, 3602);
  ExpectSameAfter(folder.path(), *writer, kDue + kHour);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-2", "3-3", "4-4"));
  ExpectSameAfter(folder.path(), *writer, kDue + kHour);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-2", "3-4"));
}

// Holes, restarts and a clock that goes back are where they were.
TEST(HistoryCompaction, KeepsTheOrderOfParts) {
  const TemporaryFolder folder;
  {
    auto writer = OpenForParts(folder.path());
    ASSERT_TRUE(writer);
    WriteParts(*writer, 20, 24);
  }
  auto writer = OpenForParts(folder.path(), "second");
  ASSERT_TRUE(writer);
  WriteParts(*writer, 600, 602);
  WriteParts(*writer, 1, 4);
  const auto coverage =
      ReadRange(folder.path(), {}, {.max_bytes = 1 << 26}).value().coverage;
  EXPECT_EQ(coverage.restarts, 1u);
  EXPECT_EQ(coverage.holes, 1u);
  EXPECT_EQ(coverage.set_back, 1u);
  ExpectSameAfter(folder.path(), *writer);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-9"));
}

TEST(HistoryCompaction, LeavesAGapInTheNumbers) {
  const TemporaryFolder folder;
  {
    auto writer = OpenForParts(folder.path());
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, 5);
  }
  const auto files = ListFiles(folder.path()).value();
  fs::remove(folder.path() + "/" + TextOf(files[2]));
  auto writer = OpenForParts(folder.path());
  ASSERT_TRUE(writer);
  ExpectSameAfter(folder.path(), *writer);
  ExpectSameAfter(folder.path(), *writer);
  ExpectSameAfter(folder.path(), *writer);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-2", "4-5"));
}

// One that is damaged, or a journal that nobody can read, stays between.
TEST(HistoryCompaction, LeavesDamagedFilesAlone) {
  for (const bool is_journal : {false, true}) {
    const TemporaryFolder folder;
    {
      auto writer = OpenForParts(folder.path());
      ASSERT_TRUE(writer);
      WriteParts(*writer, 0, 5);
    }
    const auto files = ListFiles(folder.path()).value();
    const std::string third = folder.path() + "/" + TextOf(files[2]);
    if (is_journal) {
      fs::remove(third);
      std::ofstream(folder.path() + "/" + TextOf(JournalName(3)))
          << "a journal of another program";
    } else {
      fs::resize_file(third, fs::file_size(third) - 1);
    }
    auto writer = OpenForParts(folder.path());
    ASSERT_TRUE(writer);
    const auto before = ReadRange(folder.path(), {}, {.max_bytes = 1 << 26});
    uint64_t now = kDue;
    for (int i = 0; i < 4; ++i, now += 600 * kSecond) {
      (void)writer->Compact(now, kNever);
    }
    EXPECT_THAT(FilesIn(folder.path()), is_journal
                                            ? ElementsAre("1-2", "3", "4-5")
                                            : ElementsAre("1-2", "3-3", "4-5"));
    EXPECT_EQ(writer->counts().compactions, 2u);
    EXPECT_EQ(writer->counts().compaction_failures, is_journal ? 0u : 1u);
    const auto after = ReadRange(folder.path(), {}, {.max_bytes = 1 << 26});
    ASSERT_TRUE(before && after);
    EXPECT_EQ(SamplesOf(after->profile), SamplesOf(before->profile));
    EXPECT_EQ(after->read.bad_files, 1u);
  }
}

// Each state in which a writer can end: nothing is lost and nothing counts
// twice, for readers and for the next writer.
TEST(HistoryCompaction, EndsAnywhere) {
  const TemporaryFolder work;
  const std::string before = work.path() + "/before";
  const std::string after = work.path() + "/after";
  constexpr unsigned kFiles = 5;
  {
    auto writer = OpenForParts(before);
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, kFiles);
  }
  fs::copy(before, after);
  {
    auto writer = OpenForParts(after);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->Compact(kDue, kNever));
  }
  const Answers wanted = AnswersOf(before);
  const auto old_names = ListFiles(before).value();
  const auto new_names = ListFiles(after).value();
  ASSERT_EQ(new_names.size(), 1u);
  const std::string new_name = TextOf(new_names[0]);

  // Half of the new file under a name of its own.
  {
    const std::string folder = work.path() + "/half";
    fs::copy(before, folder);
    const std::string half = folder + "/" + new_name + ".abcdef";
    fs::copy_file(after + "/" + new_name, half);
    fs::resize_file(half, fs::file_size(half) / 2);
    EXPECT_EQ(AnswersOf(folder), wanted);
    auto writer = OpenForParts(folder);
    ASSERT_TRUE(writer);
    EXPECT_FALSE(fs::exists(half));
    EXPECT_EQ(AnswersOf(folder), wanted);
    ExpectSameAfter(folder, *writer);
    EXPECT_THAT(FilesIn(folder), ElementsAre("1-5"));
  }
  // The new file, and any of the old ones.
  for (unsigned there = 0; there < 1u << kFiles; ++there) {
    const std::string folder = fmt::format("{}/{}", work.path(), there);
    fs::copy(after, folder);
    for (unsigned i = 0; i < kFiles; ++i) {
      const std::string name = TextOf(old_names[i]);
      if ((there & (1u << i)) != 0) {
        fs::copy_file(before + "/" + name, folder + "/" + name);
      }
    }
    // And the journal of one of them.
    std::ofstream(folder + "/" + TextOf(JournalName(3))) << JournalHeader(3);
    EXPECT_EQ(AnswersOf(folder), wanted) << there;
    const auto writer = OpenForParts(folder);
    ASSERT_TRUE(writer);
    EXPECT_EQ(CountNames(folder), 2u) << there;
    EXPECT_EQ(writer->files(), 1u);
    EXPECT_EQ(writer->bytes(), fs::file_size(folder + "/" + new_name));
    EXPECT_EQ(AnswersOf(folder), wanted) << there;
  }
}

// A file that says more than it has takes nothing with it.
TEST(HistoryCompaction, NothingIsRemovedForADamagedFile) {
  const TemporaryFolder folder;
  {
    auto writer = OpenForParts(folder.path());
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, 3);
  }
  const std::string cover =
      folder.path() + "/000000000001-000000000009-1-2.segment";
  fs::copy_file(
      folder.path() + "/" + TextOf(ListFiles(folder.path()).value().front()),
      cover);
  const auto answer = ReadRange(folder.path(), {}, {.max_bytes = 1 << 26});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->read.bad_files, 1u);
  EXPECT_THAT(answer->read.warnings.at(0), HasSubstr("that of another file"));
  {
    const auto writer = OpenForParts(folder.path());
    ASSERT_TRUE(writer);
    EXPECT_EQ(writer->counts().files_bad, 1u);
  }
  fs::remove(cover);
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-1", "2-2", "3-3"));
}

// Somebody put a file of another history there.
TEST(HistoryCompaction, NothingIsRemovedOfAnotherTime) {
  const TemporaryFolder folder;
  {
    auto writer = OpenForParts(folder.path());
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, 4);
    ASSERT_TRUE(writer->Compact(kDue, kNever));
  }
  Tables tables = TablesOf({PartNumber(100)});
  const FileName name = SegmentNameOf(tables, {2, 2});
  const std::string other = folder.path() + "/" + TextOf(name);
  std::ofstream(other) << EncodeSegment(tables, {2, 2}).value();
  ASSERT_TRUE(OpenForParts(folder.path()));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-4"));
}

TEST(HistoryCompaction, TriesAgainWhatCouldNotBeWritten) {
  const TemporaryFolder folder;
  auto writer = OpenForParts(folder.path());
  ASSERT_TRUE(writer);
  WriteParts(*writer, 0, 3);
  const Answers before = AnswersOf(folder.path());
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 700, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto failed = writer->Compact(kDue, kNever);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_FALSE(failed);
  EXPECT_EQ(writer->counts().compaction_failures, 1u);
  EXPECT_EQ(CountNames(folder.path()), 4u);
  EXPECT_EQ(AnswersOf(folder.path()), before);
  // Not at once.
  ASSERT_TRUE(writer->Compact(kDue + kSecond, kNever));
  EXPECT_EQ(writer->counts().compactions, 0u);
  ASSERT_TRUE(writer->Compact(kDue + 600 * kSecond, kNever));
  EXPECT_EQ(writer->counts().compactions, 1u);
  EXPECT_EQ(AnswersOf(folder.path()), before);
}

TEST(HistoryCompaction, IsDeletedForRoomAndForItsAge) {
  const TemporaryFolder folder;
  auto writer = OpenForParts(folder.path());
  ASSERT_TRUE(writer);
  WriteParts(*writer, 0, 4);
  ASSERT_TRUE(writer->Compact(kDue, kNever));
  writer->SetLimits(
      {.max_age = std::chrono::hours(1), .journal_memory_bytes = 1});
  writer->Add(PartNumber(3602));
  ASSERT_TRUE(writer->Commit(kFirstPart + 3603 * kSecond));
  EXPECT_EQ(FilesIn(folder.path()).front(), "1-4");
  writer->Add(PartNumber(3610));
  ASSERT_TRUE(writer->Commit(kFirstPart + 3611 * kSecond));
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("5-5", "6-6"));
  ASSERT_TRUE(writer->Compact(kDue + kHour, kNever));
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("5-6"));
  writer->SetLimits({.max_bytes = 1});
  ASSERT_TRUE(writer->Commit(kFirstPart + 3612 * kSecond));
  EXPECT_EQ(writer->files(), 0u);
  EXPECT_EQ(writer->bytes(), 0u);
}

TEST(HistoryCompaction, HoldsToWhatAFileMayHave) {
  const auto outline = [](Sizes most, size_t text_bytes = 0) {
    return SegmentOutline{
        .sequences = {}, .most = most, .text_bytes = text_bytes};
  };
  const auto rows = [&](size_t count) {
    return outline({.strings = 0, .nodes = 0, .rows = count});
  };
  EXPECT_TRUE(FitTogether(rows(kMaxRows - 10), rows(10)));
  EXPECT_FALSE(FitTogether(rows(kMaxRows - 10), rows(11)));
  EXPECT_TRUE(FitTogether(outline({}, kMaxTextBytes), outline({})));
  EXPECT_FALSE(FitTogether(outline({}, kMaxTextBytes), outline({}, 1)));
  // The bounds of a file alone would let this be.
  const auto large =
      outline({.strings = 0, .nodes = kMaxNodes, .rows = kMaxRows});
  const auto series = outline({.strings = 0, .nodes = 0, .series = kMaxSeries});
  EXPECT_TRUE(FitTogether(large, outline({.strings = 0, .nodes = 0})));
  EXPECT_TRUE(FitTogether(series, outline({})));
  EXPECT_FALSE(FitTogether(large, series));
}

// What does not fit is the beginning of the next file.
TEST(HistoryCompaction, MakesSeveralFilesOfALargeHour) {
  const TemporaryFolder folder;
  {
    // Names of 13 MiB each; one file takes two of them.
    constexpr size_t kNames = 13 << 10;
    auto writer = OpenForParts(folder.path());
    ASSERT_TRUE(writer);
    for (unsigned part = 0; part < 5; ++part) {
      ProfileBuilder builder;
      for (size_t i = 0; i < kNames; ++i) {
        const std::string name = fmt::format("{:>1020}", part * kNames + i);
        const FrameId frame = builder.AddFrame({.name = builder.Intern(name)});
        builder.AddSample({.user_state = StackState::kWhole,
                           .user = builder.AddStack(std::vector{frame}),
                           .count = 1});
      }
      builder.Add({.taken = kNames, .emitted = kNames});
      CaptureMetadata metadata;
      metadata.kinds = {EventKind("cpu-clock", 19, 0)};
      metadata.start_unix_ns = kFirstPart + part * kSecond;
      metadata.duration_ns = kSecond;
      writer->Add(std::move(builder).Finish(std::move(metadata)));
      ASSERT_TRUE(writer->Commit(kFirstPart + (part + 1) * kSecond));
    }
    ASSERT_EQ(writer->counts().parts_dropped, 0u);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(writer->Compact(kDue, kNever));
    EXPECT_EQ(writer->counts().compactions, 2u);
  }
  EXPECT_THAT(FilesIn(folder.path()), ElementsAre("1-2", "3-4", "5-5"));
  const auto listing = ReadListing(folder.path(), {}, {.max_bytes = 1 << 26});
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->read.bad_files, 0u);
  uint64_t samples = 0;
  for (const FileSummary& file : listing->files) samples += file.samples;
  EXPECT_EQ(samples, 5u * (13 << 10));
}

TEST(HistoryCompaction, AnOutlineIsAtLeastWhatIsThere) {
  Tables tables = TablesOf({PartNumber(0), PartNumber(1, 99), PartNumber(2)});
  const std::string bytes = EncodeSegment(tables, {3, 5}).value();
  const auto outline = ReadSegmentOutline(bytes.substr(0, kSegmentHeaderBytes));
  ASSERT_TRUE(outline) << outline.error().message();
  EXPECT_EQ(outline->sequences, (Sequences{3, 5}));
  const Sizes sizes = tables.sizes();
  EXPECT_EQ(outline->most.strings, sizes.strings);
  EXPECT_EQ(outline->most.functions, sizes.functions);
  EXPECT_EQ(outline->most.nodes, sizes.nodes);
  EXPECT_EQ(outline->most.kinds, sizes.kinds);
  EXPECT_EQ(outline->most.settings, sizes.settings);
  EXPECT_EQ(outline->most.parts, sizes.parts);
  EXPECT_EQ(outline->most.counters, sizes.counters);
  EXPECT_EQ(outline->most.series, sizes.series);
  EXPECT_EQ(outline->most.rows, sizes.rows);
  EXPECT_EQ(outline->text_bytes, tables.text_bytes);
  for (size_t size = 0; size < kSegmentHeaderBytes; ++size) {
    EXPECT_FALSE(ReadSegmentOutline(bytes.substr(0, size)));
  }
}

// Whoever reads meanwhile sees all parts, each once.
TEST(HistoryCompaction, IsReadMeanwhile) {
  const TemporaryFolder folder;
  auto writer = OpenForParts(folder.path());
  ASSERT_TRUE(writer);
  constexpr unsigned kHours = 12;
  constexpr unsigned kPartsOfHour = 8;
  for (unsigned hour = 0; hour < kHours; ++hour) {
    WriteParts(*writer, hour * 3600, hour * 3600 + kPartsOfHour);
  }
  std::atomic<bool> is_done = false;
  std::atomic<unsigned> answers = 0;
  std::thread reader([&] {
    while (!is_done) {
      const auto answer =
          ReadRange(folder.path(), {}, {.max_bytes = size_t{64} << 20});
      // It may give up where files vanish all the time; it never tells less.
      if (!answer) continue;
      EXPECT_EQ(answer->coverage.parts, kHours * kPartsOfHour);
      EXPECT_EQ(answer->read.bad_files, 0u);
      ++answers;
    }
  });
  for (unsigned hour = 0; hour < kHours; ++hour) {
    EXPECT_TRUE(writer->Compact(kDue + kHours * kHour, kNever));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  is_done = true;
  reader.join();
  EXPECT_EQ(FilesIn(folder.path()).size(), kHours);
  EXPECT_GT(answers, 0u);
}

TEST(HistoryCompaction, LosesNothingWhenItIsKilled) {
  const TemporaryFolder work;
  const std::string before = work.path() + "/before";
  {
    auto writer = OpenForParts(before);
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, 12);
  }
  const Answers wanted = AnswersOf(before);
  for (int round = 0; round < 25; ++round) {
    const std::string folder = fmt::format("{}/{}", work.path(), round);
    fs::copy(before, folder);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto writer = OpenForParts(folder);
      if (writer) (void)writer->Compact(kDue, kNever);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + round * 500));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(AnswersOf(folder), wanted) << round;
    auto writer = OpenForParts(folder);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->Compact(kDue, kNever));
    EXPECT_THAT(FilesIn(folder), ElementsAre("1-12"));
    EXPECT_EQ(CountNames(folder), 2u);
    EXPECT_EQ(AnswersOf(folder), wanted) << round;
  }
}

}  // namespace
}  // namespace profd::history
