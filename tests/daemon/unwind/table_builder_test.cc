// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/table_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ksym/base/file.h"

namespace profd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

// Lets a builder's thread work on the first file until it is opened.
class Gate {
 public:
  void Open() {
    const std::scoped_lock lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    is_reached_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void AwaitReached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_reached_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  bool is_reached_ = false;
};

BuiltTable TableOfRows(size_t rows) {
  auto table = std::make_shared<ksym::UnwindTable>();
  table->rows.resize(rows);
  return {.rows = std::move(table), .code = {}, .pieces = {}};
}

TableBuilder::Job JobOf(uint64_t id, uint64_t wanted, size_t bytes) {
  return {.id = id,
          .wanted = wanted,
          .source = ksym::ByteSource::OfMemory(std::string(bytes, 'x'))};
}

// All that comes until so many are there.
std::vector<uint64_t> TakeIds(TableBuilder& builder, size_t count) {
  std::vector<uint64_t> ids;
  while (ids.size() < count) {
    builder.Wait(seconds(10));
    for (const auto& result : builder.Take()) ids.push_back(result.id);
  }
  return ids;
}

// What is wanted most comes first, then the smallest; a wish can be raised
// until the work begins.
TEST(TableBuilderTest, BuildsWhatIsWantedMostAndThenTheSmallest) {
  Gate gate;
  TableBuilder builder([&](const ksym::ByteSource&) {
    gate.Pass();
    return TableOfRows(1);
  });
  builder.Add(JobOf(1, 0, 1));
  gate.AwaitReached();
  builder.Add(JobOf(2, 5, 100));
  builder.Add(JobOf(3, 5, 10));
  builder.Add(JobOf(4, 1, 1));
  builder.Add(JobOf(5, 7, 1000));
  builder.Want(4, 6);
  builder.Want(5, 2);   // less than before: no change
  builder.Want(99, 1);  // not there: nothing
  gate.Open();
  EXPECT_THAT(TakeIds(builder, 5), ElementsAre(1, 5, 4, 3, 2));
}

// With more in hand than it may have the thread waits until it is taken.
TEST(TableBuilderTest, WaitsWhileTooMuchIsNotTaken) {
  std::atomic<int> built = 0;
  TableBuilder builder(
      [&](const ksym::ByteSource&) {
        ++built;
        return TableOfRows(100);
      },
      800);
  for (uint64_t id = 1; id <= 3; ++id) builder.Add(JobOf(id, 0, 1));
  builder.Wait(seconds(10));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(built, 1);
  EXPECT_THAT(TakeIds(builder, 3), testing::SizeIs(3));
}

// One that goes ends with the file in hand, and without the others.
TEST(TableBuilderTest, EndsWithWhatIsInHand) {
  Gate gate;
  std::atomic<int> built = 0;
  {
    TableBuilder builder([&](const ksym::ByteSource&) {
      gate.Pass();
      ++built;
      return TableOfRows(1);
    });
    for (uint64_t id = 1; id <= 50; ++id) builder.Add(JobOf(id, 0, 1));
    gate.AwaitReached();
    std::thread([&gate] {
      std::this_thread::sleep_for(milliseconds(20));
      gate.Open();
    }).detach();
  }
  EXPECT_LT(built, 50);
  EXPECT_GE(built, 1);
}

// Waiting for nothing returns at once.
TEST(TableBuilderTest, DoesNotWaitWithoutWork) {
  TableBuilder builder([](const ksym::ByteSource&) { return TableOfRows(1); });
  const auto begin = SteadyClock::now();
  builder.Wait(seconds(10));
  EXPECT_LT(SteadyClock::now() - begin, seconds(5));
  EXPECT_TRUE(builder.Take().empty());
}

ksym::ByteSource OwnProgram() {
  auto fd = ksym::OpenForRead("/proc/self/exe");
  EXPECT_TRUE(fd);
  return ksym::ByteSource::OfFile(std::move(*fd),
                                  std::filesystem::file_size("/proc/self/exe"));
}

// A program has rows, code and pieces, the same from the cache; what is no
// program has none.
TEST(TableBuilderTest, BuildsTheTablesOfPrograms) {
  const std::string directory =
      testing::TempDir() + "table_builder_test_" + std::to_string(::getpid());
  const auto build = BuildTablesWith(directory);
  const BuiltTable first = build(OwnProgram());
  const BuiltTable again = build(OwnProgram());
  const BuiltTable without = BuildTablesWith("")(OwnProgram());
  std::filesystem::remove_all(directory);
  ASSERT_TRUE(first.rows && again.rows && without.rows);
  EXPECT_GT(first.rows->rows.size(), 100u);
  EXPECT_EQ(first.rows->rows.size(), again.rows->rows.size());
  EXPECT_EQ(first.rows->rows.size(), without.rows->rows.size());
  EXPECT_FALSE(first.code.empty());
  EXPECT_EQ(first.pieces.size(), again.pieces.size());
  EXPECT_FALSE(first.pieces.empty());
  EXPECT_FALSE(build(ksym::ByteSource::OfMemory("no program")).rows);
}

}  // namespace
}  // namespace profd
