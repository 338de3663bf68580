// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/history/history_writer.h"
#include "daemon/history/queries.h"
#include "ksym/base/unique_fd.h"
#include "tests/daemon/history/sample_parts.h"

namespace profd::history {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kRoom = size_t{64} << 20;

uint64_t TimeOf(unsigned number) { return kFirstPart + number * kSecond; }

ksym::Result<HistoryWriter> OpenAt(const std::string& directory, uint64_t now,
                                   HistoryWriter::Limits limits = {}) {
  return HistoryWriter::Open(directory, limits, {.boot = "b", .name = "r"},
                             now);
}

void Write(HistoryWriter& writer, unsigned begin, unsigned end) {
  for (unsigned i = begin; i < end; ++i) {
    writer.Add(PartNumber(i));
    const auto done = writer.Commit(TimeOf(i + 1));
    EXPECT_TRUE(done) << done.error().message();
  }
}

// The files' kinds, oldest first: "journal", "segment".
std::vector<std::string> KindsIn(const std::string& directory) {
  std::vector<std::string> kinds;
  const auto files = ListFiles(directory).value();
  for (const FileName& name : files) {
    kinds.emplace_back(name.is_segment ? "segment" : "journal");
  }
  return kinds;
}

HistoryAnswer ReadAllOf(const std::string& directory) {
  auto answer = ReadRange(directory, {}, {.max_bytes = kRoom});
  EXPECT_TRUE(answer) << answer.error().message();
  return answer ? std::move(*answer) : HistoryAnswer();
}

std::string PathOfOnly(const std::string& directory) {
  const auto files = ListFiles(directory).value();
  EXPECT_EQ(files.size(), 1u);
  return directory + "/" + TextOf(files.front());
}

TEST(HistoryWriter, IsReadWhileItWrites) {
  const TemporaryDirectory directory;
  auto writer = OpenAt(directory.path(), TimeOf(0));
  ASSERT_TRUE(writer) << writer.error().message();
  Write(*writer, 0, 3);
  EXPECT_THAT(KindsIn(directory.path()), ElementsAre("journal"));
  const HistoryAnswer answer = ReadAllOf(directory.path());
  EXPECT_EQ(answer.coverage.parts, 3u);
  EXPECT_EQ(answer.profile.accounting.emitted, 45u);
  EXPECT_EQ(answer.read.torn_bytes, 0u);
  EXPECT_TRUE(answer.profile.metadata.warnings.empty());
  EXPECT_EQ(writer->counts().records, 3u);
}

TEST(HistoryWriter, SealsAfterTheTime) {
  const TemporaryDirectory directory;
  auto writer = OpenAt(directory.path(), TimeOf(0),
                       {.journal = std::chrono::seconds(10)});
  ASSERT_TRUE(writer);
  Write(*writer, 0, 25);
  EXPECT_THAT(KindsIn(directory.path()),
              ElementsAre("segment", "segment", "journal"));
  const HistoryAnswer answer = ReadAllOf(directory.path());
  EXPECT_EQ(answer.coverage.parts, 25u);
  EXPECT_EQ(answer.coverage.holes, 0u);
}

TEST(HistoryWriter, SealsAtTheBoundOfMemory) {
  const TemporaryDirectory directory;
  auto writer =
      OpenAt(directory.path(), TimeOf(0), {.journal_memory_bytes = 1});
  ASSERT_TRUE(writer);
  Write(*writer, 0, 2);
  EXPECT_THAT(KindsIn(directory.path()), ElementsAre("segment", "segment"));
}

TEST(HistoryWriter, MakesASegmentOfTheJournalThatWasLeft) {
  const TemporaryDirectory directory;
  {
    auto writer = OpenAt(directory.path(), TimeOf(0));
    ASSERT_TRUE(writer);
    Write(*writer, 0, 2);
  }
  // Half a record.
  const std::string journal = PathOfOnly(directory.path());
  fs::resize_file(journal, fs::file_size(journal) - 1);
  auto writer = OpenAt(directory.path(), TimeOf(9));
  ASSERT_TRUE(writer);
  EXPECT_THAT(KindsIn(directory.path()), ElementsAre("segment"));
  EXPECT_GT(writer->counts().bytes_torn, 0u);
  EXPECT_EQ(ReadAllOf(directory.path()).coverage.parts, 1u);
  Write(*writer, 10, 11);
  const HistoryAnswer answer = ReadAllOf(directory.path());
  EXPECT_EQ(answer.coverage.parts, 2u);
  EXPECT_EQ(answer.coverage.holes, 1u);
  EXPECT_THAT(answer.profile.metadata.warnings.at(0),
              HasSubstr("nothing is known of 2026-11-25"));
}

TEST(HistoryWriter, PrefersTheSegmentOfAJournal) {
  const TemporaryDirectory directory;
  {
    auto writer = OpenAt(directory.path(), TimeOf(0));
    ASSERT_TRUE(writer);
    Write(*writer, 0, 2);
  }
  const std::string journal = PathOfOnly(directory.path());
  fs::copy_file(journal, directory.path() + "/saved");
  ASSERT_TRUE(OpenAt(directory.path(), TimeOf(2)));
  EXPECT_THAT(KindsIn(directory.path()), ElementsAre("segment"));
  fs::rename(directory.path() + "/saved", journal);
  EXPECT_EQ(ReadAllOf(directory.path()).coverage.parts, 2u);
  ASSERT_TRUE(OpenAt(directory.path(), TimeOf(2)));
  EXPECT_FALSE(fs::exists(journal));
  EXPECT_EQ(ReadAllOf(directory.path()).coverage.parts, 2u);
}

TEST(HistoryWriter, HasTheDirectoryAlone) {
  const TemporaryDirectory directory;
  {
    auto writer = OpenAt(directory.path(), TimeOf(0));
    ASSERT_TRUE(writer);
    const auto second = OpenAt(directory.path(), TimeOf(0));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ksym::ErrorCode::kInvalid);
    EXPECT_THAT(second.error().message(), HasSubstr(directory.path()));
  }
  EXPECT_TRUE(OpenAt(directory.path(), TimeOf(0)));
}

TEST(HistoryWriter, DeletesTheOldestForRoom) {
  const TemporaryDirectory directory;
  auto writer = OpenAt(directory.path(), TimeOf(0),
                       {.max_bytes = 8000, .journal = std::chrono::seconds(1)});
  ASSERT_TRUE(writer);
  Write(*writer, 0, 30);
  EXPECT_GT(writer->counts().files_deleted, 0u);
  EXPECT_LE(writer->bytes(), 8000u);
  const HistoryAnswer answer = ReadAllOf(directory.path());
  EXPECT_GT(answer.coverage.parts, 1u);
  EXPECT_LT(answer.coverage.parts, 30u);
  // The newest are there.
  EXPECT_EQ(answer.profile.metadata.start_unix_ns,
            TimeOf(30 - static_cast<unsigned>(answer.coverage.parts)));
}

TEST(HistoryWriter, DeletesWhatIsTooOld) {
  const TemporaryDirectory directory;
  auto writer = OpenAt(
      directory.path(), TimeOf(0),
      {.max_age = std::chrono::seconds(5), .journal = std::chrono::seconds(1)});
  ASSERT_TRUE(writer);
  Write(*writer, 0, 20);
  const HistoryAnswer answer = ReadAllOf(directory.path());
  EXPECT_LE(answer.coverage.parts, 8u);
  EXPECT_GE(answer.coverage.parts, 5u);
}

TEST(HistoryDirectory, LeavesADamagedFileOutAndSaysSo) {
  const TemporaryDirectory directory;
  auto writer =
      OpenAt(directory.path(), TimeOf(0), {.journal = std::chrono::seconds(1)});
  ASSERT_TRUE(writer);
  // Two in each.
  Write(*writer, 0, 6);
  const auto files = ListFiles(directory.path()).value();
  ASSERT_EQ(files.size(), 3u);
  const std::string second = directory.path() + "/" + TextOf(files[1]);
  fs::resize_file(second, fs::file_size(second) / 2);
  const HistoryAnswer answer = ReadAllOf(directory.path());
  EXPECT_EQ(answer.coverage.parts, 4u);
  EXPECT_EQ(answer.read.bad_files, 1u);
  EXPECT_THAT(answer.profile.metadata.warnings.back(),
              HasSubstr(TextOf(files[1])));
}

TEST(HistoryDirectory, ReadsNoLinksAndNoPipes) {
  const TemporaryDirectory directory;
  const std::string name = directory.path() + "/000000000001.journal";
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  EXPECT_EQ(ReadAllOf(directory.path()).read.bad_files, 1u);
  fs::remove(name);
  fs::create_symlink("/etc/passwd", name);
  EXPECT_EQ(ReadAllOf(directory.path()).read.bad_files, 1u);
}

TEST(HistoryDirectory, SaysThatThereIsNone) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(ReadRange(directory.path(), {}, {.max_bytes = kRoom}));
  EXPECT_FALSE(
      ReadRange(directory.path() + "/nothing", {}, {.max_bytes = kRoom}));
}

// A process may not make files larger than this while it lives. The signal that
// says so is ignored, so that write(2) fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_ = {};
};

// What cannot be written now is with the next record.
TEST(HistoryWriter, TriesAgainAfterAFailure) {
  const TemporaryDirectory directory;
  auto writer = OpenAt(directory.path(), TimeOf(0));
  ASSERT_TRUE(writer);
  Write(*writer, 0, 2);
  {
    // Room for a part of the record.
    const FileSizeLimit limit(fs::file_size(PathOfOnly(directory.path())) + 20);
    writer->Add(PartNumber(2));
    EXPECT_FALSE(writer->Commit(TimeOf(3)));
  }
  const HistoryAnswer before = ReadAllOf(directory.path());
  EXPECT_EQ(before.coverage.parts, 2u);
  EXPECT_EQ(before.read.torn_bytes, 0u);
  Write(*writer, 3, 4);
  const HistoryAnswer answer = ReadAllOf(directory.path());
  EXPECT_EQ(answer.coverage.parts, 4u);
  EXPECT_EQ(answer.coverage.holes, 0u);
  EXPECT_EQ(writer->counts().write_failures, 1u);
  EXPECT_EQ(writer->counts().parts_dropped, 0u);
}

TEST(HistoryWriter, DropsAndCountsWhatItCannotWriteForLong) {
  const TemporaryDirectory directory;
  auto writer =
      OpenAt(directory.path(), TimeOf(0), {.journal_memory_bytes = 1});
  ASSERT_TRUE(writer);
  {
    const FileSizeLimit limit(10);
    writer->Add(PartNumber(0));
    EXPECT_FALSE(writer->Commit(TimeOf(1)));
  }
  EXPECT_EQ(writer->counts().parts_dropped, 1u);
  EXPECT_EQ(writer->counts().samples_dropped, 15u);
  Write(*writer, 1, 2);
  EXPECT_EQ(ReadAllOf(directory.path()).coverage.parts, 1u);
}

TEST(HistoryWriter, CountsWhatNeitherJournalNorSegmentTakes) {
  const TemporaryDirectory directory;
  auto writer =
      OpenAt(directory.path(), TimeOf(0), {.journal = std::chrono::seconds(3)});
  ASSERT_TRUE(writer);
  Write(*writer, 0, 2);
  {
    const FileSizeLimit limit(10);
    writer->Add(PartNumber(2));
    EXPECT_FALSE(writer->Commit(TimeOf(9)));
  }
  EXPECT_EQ(writer->counts().parts_dropped, 1u);
  EXPECT_EQ(writer->counts().samples_dropped, 15u);
  Write(*writer, 10, 11);
  EXPECT_EQ(ReadAllOf(directory.path()).coverage.parts, 3u);
}

// Tells the number of each part that is on the disk, until it is killed.
[[noreturn]] void WriteUntilKilled(const std::string& directory, int pipe) {
  auto writer =
      OpenAt(directory, TimeOf(0), {.journal = std::chrono::seconds(4)});
  for (unsigned i = 0; writer; ++i) {
    writer->Add(PartNumber(i));
    if (!writer->Commit(TimeOf(i))) break;
    const char done = 1;
    if (::write(pipe, &done, 1) != 1) break;
  }
  ::_exit(1);
}

TEST(HistoryWriter, LosesNothingWrittenWhenItIsKilled) {
  for (int round = 0; round < 25; ++round) {
    const TemporaryDirectory directory;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const ksym::UniqueFd read_end(ends[0]);
    ksym::UniqueFd write_end(ends[1]);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) WriteUntilKilled(directory.path(), write_end.get());
    write_end.Reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + round * 3));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    uint64_t written = 0;
    for (char done = 0; ::read(read_end.get(), &done, 1) == 1;) ++written;

    const auto writer = OpenAt(directory.path(), TimeOf(0));
    ASSERT_TRUE(writer) << writer.error().message();
    EXPECT_EQ(writer->counts().files_bad, 0u);
    if (written == 0) continue;
    const HistoryAnswer answer = ReadAllOf(directory.path());
    // The last one may be there without having said so.
    EXPECT_GE(answer.coverage.parts, written);
    EXPECT_LE(answer.coverage.parts, written + 1);
    EXPECT_EQ(answer.profile.accounting.emitted, 15 * answer.coverage.parts);
    EXPECT_EQ(answer.read.bad_files, 0u);
  }
}

}  // namespace
}  // namespace profd::history
