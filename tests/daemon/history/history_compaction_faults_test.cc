// SPDX-License-Identifier: Apache-2.0
// Files that are put together while things go wrong: damaged ones, a full disk,
// an end at any moment, and readers meanwhile.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/history/history_answers.h"

namespace profd::history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One that is damaged, or a journal that nobody can read, stays between.
TEST(HistoryCompactionFaults, LeavesDamagedFilesAlone) {
  for (const bool is_journal : {false, true}) {
    const TemporaryDirectory directory;
    {
      auto writer = OpenForParts(directory.path());
      ASSERT_TRUE(writer);
      WriteParts(*writer, 0, 5);
    }
    const auto files = ListFiles(directory.path()).value();
    const std::string third = directory.path() + "/" + TextOf(files[2]);
    if (is_journal) {
      fs::remove(third);
      std::ofstream(directory.path() + "/" + TextOf(JournalName(3)))
          << "a journal of another program";
    } else {
      fs::resize_file(third, fs::file_size(third) - 1);
    }
    auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    const auto before = ReadRange(directory.path(), {}, {.max_bytes = 1 << 26});
    uint64_t now = kDue;
    for (int i = 0; i < 4; ++i, now += 600 * kSecond) {
      (void)writer->Compact(now, kNever);
    }
    EXPECT_THAT(FilesIn(directory.path()),
                is_journal ? ElementsAre("1-2", "3", "4-5")
                           : ElementsAre("1-2", "3-3", "4-5"));
    EXPECT_EQ(writer->counts().compactions, 2u);
    EXPECT_EQ(writer->counts().compaction_failures, is_journal ? 0u : 1u);
    const auto after = ReadRange(directory.path(), {}, {.max_bytes = 1 << 26});
    ASSERT_TRUE(before && after);
    EXPECT_EQ(SamplesOf(after->profile), SamplesOf(before->profile));
    EXPECT_EQ(after->read.bad_files, 1u);
  }
}

// Each state in which a writer can end: nothing is lost and nothing counts
// twice, for readers and for the next writer.
TEST(HistoryCompactionFaults, EndsAnywhere) {
  const TemporaryDirectory work;
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
    const std::string directory = work.path() + "/half";
    fs::copy(before, directory);
    const std::string half = directory + "/" + new_name + ".abcdef";
    fs::copy_file(after + "/" + new_name, half);
    fs::resize_file(half, fs::file_size(half) / 2);
    EXPECT_EQ(AnswersOf(directory), wanted);
    auto writer = OpenForParts(directory);
    ASSERT_TRUE(writer);
    EXPECT_FALSE(fs::exists(half));
    EXPECT_EQ(AnswersOf(directory), wanted);
    ExpectSameAfter(directory, *writer);
    EXPECT_THAT(FilesIn(directory), ElementsAre("1-5"));
  }
  // The new file, and any of the old ones.
  for (unsigned there = 0; there < 1u << kFiles; ++there) {
    const std::string directory = fmt::format("{}/{}", work.path(), there);
    fs::copy(after, directory);
    for (unsigned i = 0; i < kFiles; ++i) {
      const std::string name = TextOf(old_names[i]);
      if ((there & (1u << i)) != 0) {
        fs::copy_file(before + "/" + name, directory + "/" + name);
      }
    }
    // And the journal of one of them.
    std::ofstream(directory + "/" + TextOf(JournalName(3))) << JournalHeader(3);
    EXPECT_EQ(AnswersOf(directory), wanted) << there;
    const auto writer = OpenForParts(directory);
    ASSERT_TRUE(writer);
    EXPECT_EQ(CountNames(directory), 2u) << there;
    EXPECT_EQ(writer->files(), 1u);
    EXPECT_EQ(writer->bytes(), fs::file_size(directory + "/" + new_name));
    EXPECT_EQ(AnswersOf(directory), wanted) << there;
  }
}

// A file that says more than it has takes nothing with it.
TEST(HistoryCompactionFaults, NothingIsRemovedForADamagedFile) {
  const TemporaryDirectory directory;
  {
    auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, 3);
  }
  const std::string cover =
      directory.path() + "/000000000001-000000000009-1-2.segment";
  fs::copy_file(directory.path() + "/" +
                    TextOf(ListFiles(directory.path()).value().front()),
                cover);
  const auto answer = ReadRange(directory.path(), {}, {.max_bytes = 1 << 26});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->read.bad_files, 1u);
  EXPECT_THAT(answer->read.warnings.at(0), HasSubstr("that of another file"));
  {
    const auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    EXPECT_EQ(writer->counts().files_bad, 1u);
  }
  fs::remove(cover);
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-1", "2-2", "3-3"));
}

// Somebody put a file of another history there.
TEST(HistoryCompactionFaults, NothingIsRemovedOfAnotherTime) {
  const TemporaryDirectory directory;
  {
    auto writer = OpenForParts(directory.path());
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, 4);
    ASSERT_TRUE(writer->Compact(kDue, kNever));
  }
  Tables tables = TablesOf({PartNumber(100)});
  const FileName name = SegmentNameOf(tables, {2, 2});
  const std::string other = directory.path() + "/" + TextOf(name);
  std::ofstream(other) << EncodeSegment(tables, {2, 2}).value();
  ASSERT_TRUE(OpenForParts(directory.path()));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_THAT(FilesIn(directory.path()), ElementsAre("1-4"));
}

TEST(HistoryCompactionFaults, TriesAgainWhatCouldNotBeWritten) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
  ASSERT_TRUE(writer);
  WriteParts(*writer, 0, 3);
  const Answers before = AnswersOf(directory.path());
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 700, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto failed = writer->Compact(kDue, kNever);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_FALSE(failed);
  EXPECT_EQ(writer->counts().compaction_failures, 1u);
  EXPECT_EQ(CountNames(directory.path()), 4u);
  EXPECT_EQ(AnswersOf(directory.path()), before);
  // Not at once.
  ASSERT_TRUE(writer->Compact(kDue + kSecond, kNever));
  EXPECT_EQ(writer->counts().compactions, 0u);
  ASSERT_TRUE(writer->Compact(kDue + 600 * kSecond, kNever));
  EXPECT_EQ(writer->counts().compactions, 1u);
  EXPECT_EQ(AnswersOf(directory.path()), before);
}

// Whoever reads meanwhile sees all parts, each once.
TEST(HistoryCompactionFaults, IsReadMeanwhile) {
  const TemporaryDirectory directory;
  auto writer = OpenForParts(directory.path());
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
          ReadRange(directory.path(), {}, {.max_bytes = size_t{64} << 20});
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
  EXPECT_EQ(FilesIn(directory.path()).size(), kHours);
  EXPECT_GT(answers, 0u);
}

TEST(HistoryCompactionFaults, LosesNothingWhenItIsKilled) {
  const TemporaryDirectory work;
  const std::string before = work.path() + "/before";
  {
    auto writer = OpenForParts(before);
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, 12);
  }
  const Answers wanted = AnswersOf(before);
  for (int round = 0; round < 25; ++round) {
    const std::string directory = fmt::format("{}/{}", work.path(), round);
    fs::copy(before, directory);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto writer = OpenForParts(directory);
      if (writer) (void)writer->Compact(kDue, kNever);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + round * 500));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(AnswersOf(directory), wanted) << round;
    auto writer = OpenForParts(directory);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->Compact(kDue, kNever));
    EXPECT_THAT(FilesIn(directory), ElementsAre("1-12"));
    EXPECT_EQ(CountNames(directory), 2u);
    EXPECT_EQ(AnswersOf(directory), wanted) << round;
  }
}

}  // namespace
}  // namespace profd::history
