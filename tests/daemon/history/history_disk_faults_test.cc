// SPDX-License-Identifier: Apache-2.0
// A writer of a history at each of whose calls to the disk something goes
// wrong: an error, a full disk, one that is read-only from then on, or its own
// end.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "tests/daemon/history/faulty_disk.h"
#include "tests/daemon/history/history_answers.h"
#include "tests/daemon/history/rare_files.h"

namespace profd::history {
namespace {

using ::testing::ElementsAre;

constexpr std::array<DiskFault, 5> kFaults = {{
    {.error = EIO, .lasts = false},
    {.error = ENOSPC, .lasts = false},
    {.error = ENOSPC, .lasts = true},
    {.error = EROFS, .lasts = true},
    {.error = 0, .lasts = false},
}};

std::string TextOf(const DiskFault& fault) {
  return fmt::format("error {}, {}, at call {}", fault.error,
                     fault.lasts ? "for good" : "once", fault.at);
}

constexpr unsigned kWrittenParts = 6;

// How a child ends that thins a directory's only file out.
constexpr int kThinned = 0;
constexpr int kNotThinned = 1;
constexpr int kToldWrong = 2;

int ThinAndTell(const std::string& directory) {
  auto writer = OpenForParts(directory);
  // A directory that cannot be locked is left as it is.
  if (!writer) return kNotThinned;
  const bool is_done = writer->Thin(kOld, kNever).has_value();
  const WriterCounts& counts = writer->counts();
  const auto files = ListFiles(directory).value();
  const bool is_counted = counts.thinnings == (is_done ? 1u : 0u) &&
                          counts.thinning_failures == (is_done ? 0u : 1u);
  if (!is_counted || files.size() != 1 || writer->files() != 1 ||
      writer->bytes() != fs::file_size(directory + "/" + TextOf(files[0]))) {
    return kToldWrong;
  }
  return is_done ? kThinned : kNotThinned;
}

TEST(HistoryDiskFaults, CompactionLosesNothing) {
  const TemporaryDirectory work;
  const std::string before = work.path() + "/before";
  {
    auto writer = OpenForParts(before);
    ASSERT_TRUE(writer);
    WriteParts(*writer, 0, kWrittenParts);
  }
  const Answers wanted = AnswersOf(before);
  size_t runs = 0;
  for (DiskFault fault : kFaults) {
    for (bool is_reached = true; is_reached; ++fault.at, ++runs) {
      const std::string directory = fmt::format("{}/{}", work.path(), runs);
      fs::copy(before, directory);
      const auto run = RunWithFault(fault, [&] {
        auto writer = OpenForParts(directory);
        // A directory that cannot be locked is left as it is.
        if (writer) (void)writer->Compact(kDue, kNever);
        return 0;
      });
      if (!run) GTEST_SKIP() << "processes may not be traced here";
      EXPECT_EQ(run->was_killed, fault.error == 0 && run->calls > fault.at);
      EXPECT_EQ(run->exit_status, 0) << TextOf(fault);
      EXPECT_EQ(AnswersOf(directory), wanted) << TextOf(fault);
      // The next writer brings it to its end, and tidies up.
      auto writer = OpenForParts(directory);
      ASSERT_TRUE(writer) << TextOf(fault);
      ASSERT_TRUE(writer->Compact(kDue, kNever)) << TextOf(fault);
      EXPECT_EQ(writer->counts().files_bad, 0u) << TextOf(fault);
      EXPECT_THAT(FilesIn(directory), ElementsAre("1-6")) << TextOf(fault);
      EXPECT_EQ(CountNames(directory), 2u) << TextOf(fault);
      EXPECT_EQ(AnswersOf(directory), wanted) << TextOf(fault);
      is_reached = run->calls > fault.at;
      fs::remove_all(directory);
    }
  }
  // Each of the faults at each call, and one beyond the last.
  EXPECT_GT(runs, kFaults.size() * (kWrittenParts + 5));
}

// The file is what it was or what it becomes, and the next writer brings it to
// its end.
TEST(HistoryDiskFaults, ThinningLosesNothing) {
  const TemporaryDirectory work;
  const std::string before = work.path() + "/before";
  const std::string after = work.path() + "/after";
  MakeHours(before, 1);
  fs::copy(before, after);
  ASSERT_TRUE(OpenForParts(after)->Thin(kOld, kNever));
  const auto samples_of = [](const std::string& directory) {
    const auto answer =
        ReadRange(directory, {}, {.max_bytes = size_t{64} << 20});
    EXPECT_TRUE(answer && answer->read.bad_files == 0);
    return answer ? SamplesOf(answer->profile) : SamplesOf({});
  };
  const auto whole = samples_of(before);
  const auto thin = samples_of(after);
  ASSERT_NE(whole, thin);
  size_t runs = 0;
  for (DiskFault fault : kFaults) {
    for (bool is_reached = true; is_reached; ++fault.at, ++runs) {
      const std::string directory = fmt::format("{}/{}", work.path(), runs);
      fs::copy(before, directory);
      const auto run =
          RunWithFault(fault, [&] { return ThinAndTell(directory); });
      if (!run) GTEST_SKIP() << "processes may not be traced here";
      EXPECT_EQ(run->was_killed, fault.error == 0 && run->calls > fault.at);
      EXPECT_NE(run->exit_status, kToldWrong) << TextOf(fault);
      const auto samples = samples_of(directory);
      EXPECT_TRUE(samples == whole || samples == thin) << TextOf(fault);
      if (!run->was_killed && run->exit_status == kThinned) {
        EXPECT_EQ(samples, thin) << TextOf(fault);
      }
      auto writer = OpenForParts(directory);
      ASSERT_TRUE(writer) << TextOf(fault);
      ASSERT_TRUE(writer->Thin(kOld, kNever)) << TextOf(fault);
      EXPECT_EQ(writer->counts().files_bad, 0u) << TextOf(fault);
      EXPECT_EQ(CountNames(directory), 2u) << TextOf(fault);
      EXPECT_EQ(samples_of(directory), thin) << TextOf(fault);
      is_reached = run->calls > fault.at;
      fs::remove_all(directory);
    }
  }
  EXPECT_GT(runs, kFaults.size() * 6);
}

// What a writer says of itself to the process that looks after it.
struct Said {
  std::array<bool, kWrittenParts> is_committed = {};
  WriterCounts counts;
};

// Memory that a child of the process writes to.
class SharedSaid {
 public:
  SharedSaid()
      : memory_(::mmap(nullptr, sizeof(Said), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ != MAP_FAILED) said_ = new (memory_) Said;
  }
  SharedSaid(const SharedSaid&) = delete;
  SharedSaid& operator=(const SharedSaid&) = delete;
  ~SharedSaid() {
    if (memory_ != MAP_FAILED) ::munmap(memory_, sizeof(Said));
  }
  Said* get() const { return said_; }

 private:
  void* memory_;
  Said* said_ = nullptr;
};

// A writer whose journals have three parts at most.
ksym::Result<HistoryWriter> OpenForFewParts(const std::string& directory) {
  return HistoryWriter::Open(directory, {.journal = std::chrono::seconds(2)},
                             {.boot = "b", .name = "r"}, kFirstPart);
}

int WriteAndTell(const std::string& directory, Said& said) {
  auto writer = OpenForFewParts(directory);
  for (unsigned i = 0; writer && i < kWrittenParts; ++i) {
    writer->Add(PartNumber(i));
    said.is_committed[i] =
        writer->Commit(kFirstPart + (i + 1) * kSecond).has_value();
    said.counts = writer->counts();
  }
  return 0;
}

// The samples of one part's second.
std::map<std::string, std::pair<uint64_t, uint64_t>> SecondOf(
    const std::string& directory, unsigned part) {
  const auto answer =
      ReadRange(directory,
                {.from_unix_ns = kFirstPart + part * kSecond,
                 .until_unix_ns = kFirstPart + (part + 1) * kSecond},
                {.max_bytes = size_t{64} << 20});
  EXPECT_TRUE(answer) << answer.error().message();
  if (!answer) return {};
  EXPECT_EQ(answer->read.bad_files, 0u);
  return SamplesOf(answer->profile);
}

// Each part is as it was taken or not there at all, and that is counted.
void ExpectRightOrCounted(const std::string& directory,
                          const std::string& right, const Said& said,
                          bool was_killed, const std::string& what) {
  uint64_t lost = 0;
  uint64_t not_yet_written = 0;
  for (unsigned i = kWrittenParts; i-- > 0;) {
    const auto samples = SecondOf(directory, i);
    if (!samples.empty()) {
      EXPECT_EQ(samples, SecondOf(right, i)) << what << ", part " << i;
      continue;
    }
    // Those after the last Commit() that was done are tried again by the next.
    const bool is_last =
        std::none_of(said.is_committed.begin() + i, said.is_committed.end(),
                     [](bool is_committed) { return is_committed; });
    ++(is_last ? not_yet_written : lost);
  }
  // On a full disk the oldest files, of three parts at most, make room.
  EXPECT_LE(lost, said.counts.parts_dropped + 3 * said.counts.files_deleted)
      << what;
  // One that is killed has not come to them.
  if (not_yet_written != 0 && !was_killed) {
    EXPECT_GT(said.counts.write_failures, 0u) << what;
  }
}

TEST(HistoryDiskFaults, WrittenPartsAreWholeAndMissingOnesAreCounted) {
  const TemporaryDirectory work;
  const std::string right = work.path() + "/right";
  SharedSaid shared;
  ASSERT_NE(shared.get(), nullptr);
  ASSERT_EQ(WriteAndTell(right, *shared.get()), 0);
  size_t runs = 0;
  for (DiskFault fault : kFaults) {
    for (bool is_reached = true; is_reached; ++fault.at, ++runs) {
      const std::string directory = fmt::format("{}/{}", work.path(), runs);
      Said& said = *shared.get();
      said = {};
      const auto run =
          RunWithFault(fault, [&] { return WriteAndTell(directory, said); });
      if (!run) GTEST_SKIP() << "processes may not be traced here";
      is_reached = run->calls > fault.at;
      if (!fs::exists(directory)) continue;
      // For readers at once, and when the next writer was there.
      for (const bool has_next : {false, true}) {
        if (has_next) {
          const auto writer = OpenForFewParts(directory);
          ASSERT_TRUE(writer) << TextOf(fault);
          EXPECT_EQ(writer->counts().files_bad, 0u) << TextOf(fault);
        }
        if (ListFiles(directory).value().empty()) continue;
        ExpectRightOrCounted(directory, right, said, run->was_killed,
                             TextOf(fault));
      }
      fs::remove_all(directory);
    }
  }
  EXPECT_GT(runs, kFaults.size() * kWrittenParts * 2);
}

}  // namespace
}  // namespace profd::history
