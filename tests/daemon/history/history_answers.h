// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/history_directory.h"
#include "daemon/history/history_writer.h"
#include "daemon/history/queries.h"
#include "daemon/history/query_json.h"
#include "daemon/output/format.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {

// Directories of small files, and what queries answer of them: the same before
// and after files were put together.

namespace fs = std::filesystem;

inline constexpr uint64_t kHour = 3600 * kSecond;
inline constexpr uint64_t kFirstHour = kFirstPart / kHour * kHour;
// The first hour's files may be put together.
inline constexpr uint64_t kDue = kFirstHour + 2 * kHour;

inline const auto kNever = [] { return false; };

// A segment for each part.
inline ksym::Result<HistoryWriter> OpenForParts(const std::string& directory,
                                                const std::string& run = "r") {
  return HistoryWriter::Open(directory, {.journal_memory_bytes = 1},
                             {.boot = "b", .name = run}, kFirstPart);
}

inline void WriteParts(HistoryWriter& writer, unsigned begin, unsigned end,
                       uint64_t rate = 19) {
  for (unsigned i = begin; i < end; ++i) {
    writer.Add(PartNumber(i, rate));
    ASSERT_TRUE(writer.Commit(kFirstPart + (i + 1) * kSecond));
  }
}

// "1-5" for a segment, "6" for a journal, oldest first.
inline std::vector<std::string> FilesIn(const std::string& directory) {
  std::vector<std::string> texts;
  const auto files = ListFiles(directory).value();
  for (const FileName& name : files) {
    texts.push_back(name.is_segment ? fmt::format("{}-{}", name.sequences.first,
                                                  name.sequences.last)
                                    : fmt::format("{}", name.sequences.first));
  }
  return texts;
}

inline size_t CountNames(const std::string& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory),
                                           fs::directory_iterator()));
}

inline std::string FrameText(const Profile& profile, FrameId id) {
  const Frame& frame = profile.frames[id];
  return fmt::format("{} {} {} {} {} {} {} {}", profile.String(frame.name),
                     profile.String(frame.object),
                     profile.String(frame.build_id), frame.kind->name,
                     ksym::UnresolvedName(frame.reason),
                     profile.String(frame.file), profile.String(frame.function),
                     frame.first_line);
}

// All that a profile says of its samples, in any order.
inline std::map<std::string, std::pair<uint64_t, uint64_t>> SamplesOf(
    const Profile& profile) {
  std::map<std::string, std::pair<uint64_t, uint64_t>> samples;
  // Once for all stacks that they are in: under sanitizers this takes long.
  std::vector<std::string> frames;
  frames.reserve(profile.frames.size());
  for (FrameId id = 0; id < profile.frames.size(); ++id) {
    frames.push_back(FrameText(profile, id));
  }
  for (const ProfileSample& sample : profile.samples) {
    std::string text = fmt::format(
        "{} {} {} {} {} {} {} {}", profile.String(sample.comm), sample.pid,
        sample.tid, profile.String(sample.cgroup),
        static_cast<int>(sample.user_state),
        static_cast<int>(sample.kernel_state), sample.kind, sample.parked);
    for (const CallStackId stack : {sample.user, sample.kernel}) {
      text += "\n--";
      for (const FrameId frame : profile.Stack(stack)) {
        text += "\n" + frames[frame];
      }
    }
    auto& [count, value] = samples[text];
    count += sample.count;
    value += sample.value;
  }
  return samples;
}

inline std::string SortedLines(const std::string& text) {
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

inline Answers AnswersOf(const std::string& directory) {
  Answers answers;
  const QueryBounds bounds = {.max_bytes = size_t{64} << 20};
  Selection selection = {.from_unix_ns = kFirstPart - kHour,
                         .until_unix_ns = kFirstPart + 2 * kHour};
  for (auto& samples : answers.samples) {
    const auto range = ReadRange(directory, selection, bounds);
    const auto functions = ReadFunctions(directory, selection, bounds);
    const auto flame = ReadFlame(directory, selection, 1000, bounds);
    const auto line = ReadTimeline(directory,
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
inline void ExpectSameAfter(const std::string& directory, HistoryWriter& writer,
                            uint64_t now = kDue) {
  const Answers before = AnswersOf(directory);
  EXPECT_FALSE(before.samples[0].empty());
  const auto done = writer.Compact(now, kNever);
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(AnswersOf(directory), before);
}

}  // namespace profd::history
