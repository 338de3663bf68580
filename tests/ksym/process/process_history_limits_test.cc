// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/process_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/ksym/process/test_mappings.h"

namespace ksym {
namespace {

using testing::ElementsAre;

// At the bound on mappings a process keeps those that it has, but for what
// others were put over; one of them can still take the place of another.
TEST(ProcessHistoryLimitsTest, BoundsOneProcess) {
  ProcessHistory history({.generations = 10, .mappings = 3, .changes = 2});
  const auto texts = [&](uint32_t pid) {
    return Texts(*history.Mappings(history.Find(pid, 99)));
  };
  for (const uint32_t pid : {1, 2}) {
    history.Seed({.pid = pid, .mappings = {At(0, 5, "a")}}, 1);
  }
  for (uint64_t i = 1; i <= 3; ++i) {
    history.Map(1, At(i * 10, i * 10 + 5, "b"), i);
    history.Map(2, At(i, i + 1, "b"), i);
  }
  EXPECT_THAT(texts(1),
              ElementsAre("0-5 a", "10-15 b", "20-25 b", "30-35 [too-large]"));
  EXPECT_THAT(texts(2), ElementsAre("0-1 a", "1-2 b", "4-5 a"));
  EXPECT_EQ(history.statistics().mappings_dropped, 3u);
  history.Map(1, At(10, 15, "c"), 10);
  history.Map(1, At(22, 23, "c"), 10);
  EXPECT_THAT(texts(1),
              ElementsAre("0-5 a", "10-15 c", "20-22 b", "30-35 [too-large]"));
  EXPECT_EQ(history.statistics().mappings_dropped, 4u);
}

// A reading of a process may have more, and bounds what comes later.
TEST(ProcessHistoryLimitsTest, KeepsMoreOfWhatIsRead) {
  ProcessHistory history(
      {.generations = 10, .mappings = 1, .read_mappings = 3, .changes = 2});
  std::vector<Mapping> mappings;
  for (uint64_t i = 0; i < 4; ++i) {
    mappings.push_back(At(i * 10, i * 10 + 5, "a"));
  }
  history.Seed({.pid = 1, .mappings = std::move(mappings)}, 1);
  history.Map(1, At(50, 55, "b"), 2);
  history.Map(1, At(20, 25, "b"), 3);
  EXPECT_THAT(Texts(*history.Mappings(history.Find(1, 9))),
              ElementsAre("0-5 a", "10-15 a", "20-25 b", "30-55 [too-large]"));
  EXPECT_EQ(history.statistics().mappings_dropped, 2u);
}

// At the bound on changes all between the first and the last one has changed;
// others are not touched.
TEST(ProcessHistoryLimitsTest, BoundsChanges) {
  ProcessHistory history({.generations = 10, .mappings = 9, .changes = 2});
  for (const uint32_t pid : {1, 2}) {
    history.Seed({.pid = pid, .mappings = {At(0, 5, "a")}}, 1);
  }
  for (uint64_t i = 1; i <= 3; ++i) {
    history.Map(1, WithInode(At(i, i + 1, "b"), 1 + i, 0), i);
  }
  const auto changes = history.Changes(history.Find(1, 9));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].start, Address{1});
  EXPECT_EQ(changes[0].end, Address{4});
  EXPECT_TRUE(history.Changes(history.Find(2, 9)).empty());
}

// A reading of many mappings is as one of few: what it covers has changed, what
// it does not cover stays, and what is as it was has not changed.
TEST(ProcessHistoryLimitsTest, TakesManyMappingsAtOnce) {
  for (const uint64_t many : {10u, 1000u}) {
    ProcessHistory history;
    const auto reading = [&](uint64_t inode, uint64_t first) {
      ProcessHistory::Reading made;
      made.pid = 1;
      made.mappings.push_back(At(0, 5, "same"));
      for (uint64_t i = first; i < first + many; ++i) {
        made.mappings.push_back(
            WithInode(At(10 * i, 10 * i + 5, "x"), inode, 0));
      }
      return made;
    };
    history.Seed(reading(7, 1), 1);
    history.Seed(reading(8, 2), 5);
    const auto id = history.Find(1, 9);
    const auto& known = *history.Mappings(id);
    ASSERT_EQ(known.size(), many + 2);
    EXPECT_EQ(known[0].path, "same");
    EXPECT_EQ(known[1].inode, 7u);
    EXPECT_EQ(known[2].inode, 8u);
    EXPECT_EQ(known.back().inode, 8u);
    const auto changes = history.Changes(id);
    ASSERT_FALSE(changes.empty());
    for (const auto& change : changes) {
      EXPECT_GE(change.start, Address{20});
      EXPECT_LE(change.end, Address{10 * many + 5});
      EXPECT_EQ(change.time_ns, 5u);
    }
  }
}

// At the bound on generations the oldest of a process makes room for its next
// one, and a new process is not known.
TEST(ProcessHistoryLimitsTest, BoundsGenerations) {
  ProcessHistory history({.generations = 2, .mappings = 9, .changes = 9});
  history.Seed({.pid = 1, .mappings = {At(0, 5, "a")}}, 1);
  history.Exec(1, 10);
  history.Map(1, At(0, 5, "b"), 11);
  history.Exec(1, 20);
  EXPECT_EQ(history.Find(1, 5), 0u);
  EXPECT_THAT(Texts(*history.Mappings(history.Find(1, 15))),
              ElementsAre("0-5 b"));
  EXPECT_THAT(Texts(*history.Mappings(history.Find(1, 25))), ElementsAre());
  history.Fork(1, 2, 30);
  history.Exec(2, 31);
  history.Map(2, At(0, 5, "c"), 32);
  history.End(2, 33);
  EXPECT_EQ(history.Find(2, 40), 0u);
  EXPECT_EQ(history.generations(), 2u);
  EXPECT_EQ(history.statistics().generations_dropped, 4u);
}

// Between two mappings that are kept there is one that stands for all that came
// later, also where these cover each other.
TEST(ProcessHistoryLimitsTest, TellsOfWhatIsNotKept) {
  ProcessHistory history({.mappings = 2});
  history.Seed({.pid = 1, .mappings = {At(0, 10, "a"), At(100, 110, "b")}}, 1);
  for (const uint64_t start : {30, 20, 50, 34, 90, 200, 300}) {
    history.Map(1, At(start, start + 10, "c"), 2);
  }
  const auto* mappings = history.Mappings(history.Find(1, 9));
  EXPECT_THAT(Texts(*mappings),
              ElementsAre("0-10 a", "20-100 [too-large]", "100-110 b",
                          "200-310 [too-large]"));
  EXPECT_EQ(mappings->at(1).inode, 0u);
  EXPECT_EQ(history.statistics().mappings_dropped, 7u);
}

// All lists together have so many mappings at the most: then the longest goes,
// in all processes that share it, and what maps more is known again.
TEST(ProcessHistoryLimitsTest, BoundsAllMappings) {
  ProcessHistory history({.all_mappings = 10});
  const auto seed = [&](uint32_t pid, uint64_t count) {
    std::vector<Mapping> mappings;
    for (uint64_t i = 0; i < count; ++i) {
      mappings.push_back(At(i * 10, i * 10 + 5, "a"));
    }
    history.Seed({.pid = pid, .mappings = std::move(mappings)}, 1);
  };
  seed(1, 6);
  history.Fork(1, 2, 2);
  EXPECT_EQ(history.mappings(), 6u);
  seed(3, 4);
  EXPECT_EQ(history.mappings(), 10u);
  EXPECT_EQ(history.statistics().mappings_dropped, 0u);
  history.Map(3, At(100, 105, "b"), 3);
  EXPECT_EQ(history.mappings(), 6u);
  EXPECT_EQ(history.statistics().mappings_dropped, 6u);
  const auto texts = [&](uint32_t pid) {
    return Texts(*history.Mappings(history.Find(pid, 9)));
  };
  EXPECT_THAT(texts(1), ElementsAre("0-55 [too-large]"));
  EXPECT_THAT(texts(2), ElementsAre("0-55 [too-large]"));
  EXPECT_EQ(texts(3).size(), 5u);
  history.Map(1, At(20, 30, "new"), 4);
  EXPECT_THAT(texts(1), ElementsAre("0-20 [too-large]", "20-30 new",
                                    "30-55 [too-large]"));
  for (const uint32_t pid : {1, 2, 3}) history.End(pid, 5);
  history.Forget(6);
  EXPECT_EQ(history.mappings(), 0u);
}

// One process has so many bytes of paths, whatever it maps, and equal ones
// count once.
TEST(ProcessHistoryLimitsTest, BoundsPathsOfAProcess) {
  ProcessHistory history({.path_bytes = 10});
  history.Exec(1, 1);
  history.Map(1, At(0, 5, "/three"), 2);
  history.Map(1, At(10, 15, "/three"), 2);
  history.Map(1, At(20, 25, "/four"), 2);
  history.Map(1, At(30, 35, "/fiv"), 2);
  EXPECT_THAT(Texts(*history.Mappings(history.Find(1, 9))),
              ElementsAre("0-5 /three", "10-15 /three", "20-25 [too-large]",
                          "30-35 /fiv"));
  EXPECT_EQ(history.path_bytes(), 10u);
  EXPECT_EQ(history.statistics().mappings_dropped, 1u);
}

// When the paths of all are used up, each may still bring a few; those that
// nobody has are forgotten.
TEST(ProcessHistoryLimitsTest, BoundsAllPaths) {
  constexpr size_t kSize = 400'000;
  ProcessHistory history({.path_bytes = kSize + 3,
                          .all_path_bytes = kSize + 2,
                          .always_path_bytes = 2});
  const std::string long_path(kSize, 'x');
  for (const uint32_t pid : {1, 2}) {
    history.Exec(pid, 1);
    history.Map(pid, At(0, 5, (long_path + std::to_string(pid)).c_str()), 2);
    history.Map(pid, At(10, 15, ("/" + std::to_string(pid)).c_str()), 3);
    history.Map(pid, At(20, 25, ("/a" + std::to_string(pid)).c_str()), 4);
  }
  const auto path = [&](uint32_t pid, size_t index) {
    return history.Mappings(history.Find(pid, 9))->at(index).path.str();
  };
  EXPECT_EQ(path(1, 0).size(), kSize + 1);
  EXPECT_EQ(path(1, 1), kTooLargePath);
  EXPECT_EQ(path(2, 0), kTooLargePath);
  EXPECT_EQ(path(2, 1), "/2");
  EXPECT_EQ(path(2, 2), kTooLargePath);
  history.End(1, 5);
  for (int i = 0; i < 9; ++i) history.Forget(6);
  EXPECT_EQ(history.path_bytes(), 2u);
  history.Map(2, At(30, 35, long_path.c_str()), 8);
  EXPECT_EQ(path(2, 3).size(), kSize);
}

// Three processes with as many mappings as Linux allows, by paths of nearly the
// longest length, take no more than the bounds say.
TEST(ProcessHistoryLimitsTest, BoundsHostileProcesses) {
  ProcessHistory history;
  for (const uint32_t pid : {1, 2, 3}) {
    history.Exec(pid, 1);
    for (uint64_t i = 0; i < 65'000; ++i) {
      const std::string path =
          std::string(3'890, 'p') + std::to_string(pid) + std::to_string(i);
      history.Map(pid, At(i * 10, i * 10 + 5, path.c_str()), 2);
    }
  }
  EXPECT_LE(history.path_bytes(), 3 * kMaxPathBytes);
  EXPECT_LE(history.mappings(), 3 * (2 * (size_t{1} << 14) + 1));
}

}  // namespace
}  // namespace ksym
