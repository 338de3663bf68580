// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/process_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ksym/process/test_mappings.h"

namespace ksym {
namespace {

using testing::ElementsAre;

class ProcessHistoryTest : public testing::Test {
 protected:
  std::vector<std::string> MappingsAt(uint32_t pid, uint64_t time_ns) {
    const auto* mappings = history_.Mappings(history_.Find(pid, time_ns));
    return mappings == nullptr ? std::vector<std::string>{"none"}
                               : Texts(*mappings);
  }

  // "start-end time" of each.
  std::vector<std::string> ChangesAt(uint32_t pid, uint64_t time_ns) {
    std::vector<std::string> texts;
    for (const auto& change : history_.Changes(history_.Find(pid, time_ns))) {
      texts.push_back(std::to_string(change.start.value) + "-" +
                      std::to_string(change.end.value) + " " +
                      std::to_string(change.time_ns));
    }
    return texts;
  }

  ProcessHistory history_;
};

// A child has what its parent had at the fork, and not what came later.
TEST_F(ProcessHistoryTest, CopiesOnFork) {
  history_.Seed({.pid = 1, .mappings = {At(10, 20, "a")}}, 100);
  history_.Fork(1, 2, 200);
  history_.Map(1, At(30, 40, "parent"), 300);
  history_.Map(2, At(50, 60, "child"), 300);
  EXPECT_THAT(MappingsAt(2, 250), ElementsAre("10-20 a", "50-60 child"));
  EXPECT_THAT(MappingsAt(1, 250), ElementsAre("10-20 a", "30-40 parent"));
}

// An exec begins anew; before it the old image answers.
TEST_F(ProcessHistoryTest, BeginsAnewAtExec) {
  history_.Seed({.pid = 1, .mappings = {}}, 1);
  history_.Fork(1, 2, 100);
  history_.Map(2, At(10, 20, "old"), 110);
  history_.Exec(2, 200);
  history_.Map(2, At(10, 20, "new"), 210);
  EXPECT_THAT(MappingsAt(2, 199), ElementsAre("10-20 old"));
  EXPECT_THAT(MappingsAt(2, 200), ElementsAre("10-20 new"));
  const auto present = history_.Find(2, 300);
  EXPECT_EQ(history_.BeforeExec(present), history_.Find(2, 150));
  EXPECT_EQ(history_.BeforeExec(history_.Find(2, 150)), 0u);
}

// A process that exited keeps its mappings until it is forgotten.
TEST_F(ProcessHistoryTest, KeepsTheDeadUntilForgotten) {
  history_.Fork(1, 2, 100);
  history_.Exec(2, 110);
  history_.Map(2, At(10, 20, "a"), 120);
  history_.End(2, 200);
  history_.Forget(200);
  EXPECT_THAT(MappingsAt(2, 150), ElementsAre("10-20 a"));
  EXPECT_THAT(MappingsAt(2, 250), ElementsAre("10-20 a"));
  history_.Forget(201);
  EXPECT_THAT(MappingsAt(2, 150), ElementsAre("none"));
  EXPECT_EQ(history_.generations(), 0u);
}

// A pid that is used again is another process.
TEST_F(ProcessHistoryTest, TellsReusedPidsApart) {
  history_.Seed({.pid = 1, .mappings = {}}, 1);
  history_.Fork(1, 2, 100);
  history_.Map(2, At(10, 20, "first"), 110);
  history_.End(2, 200);
  history_.Fork(1, 2, 300);
  history_.Map(2, At(10, 20, "second"), 310);
  EXPECT_THAT(MappingsAt(2, 150), ElementsAre("10-20 first"));
  EXPECT_THAT(MappingsAt(2, 350), ElementsAre("10-20 second"));
}

// Threads may outlive the one that began the process: while they are seen or
// map something it is there, and then no longer.
TEST_F(ProcessHistoryTest, LivesWhileItsThreadsAreSeen) {
  history_.Seed({.pid = 1, .mappings = {}}, 1);
  history_.Fork(1, 2, 100);
  history_.Map(2, At(10, 20, "a"), 120);
  history_.End(2, 200);
  history_.Map(2, At(30, 40, "b"), 500);
  history_.Forget(400);
  EXPECT_THAT(MappingsAt(2, 500), ElementsAre("10-20 a", "30-40 b"));
  EXPECT_NE(history_.See({.pid = 2, .exec_count = 1}, 1000), 0u);
  history_.Forget(1000);
  EXPECT_THAT(MappingsAt(2, 1000), ElementsAre("10-20 a", "30-40 b"));
  history_.Forget(1001);
  EXPECT_THAT(MappingsAt(2, 1000), ElementsAre("none"));
}

// The thread that calls exec may not be the one that began the process, which
// ends at that moment.
TEST_F(ProcessHistoryTest, KnowsAnExecOfAnotherThread) {
  history_.Seed({.pid = 1, .mappings = {At(10, 20, "a")}}, 1);
  history_.End(1, 200);
  history_.Exec(1, 201);
  EXPECT_EQ(history_.BeforeExec(history_.Find(1, 300)), history_.Find(1, 100));
}

// One that was there before the reports is known back to the beginning.
TEST_F(ProcessHistoryTest, SeedsReachBack) {
  history_.Seed({.pid = 7, .mappings = {At(10, 20, "a")}}, 500);
  EXPECT_THAT(MappingsAt(7, 1), ElementsAre("10-20 a"));
  // Read again, after reports were lost: what is new wins.
  history_.Seed({.pid = 7, .mappings = {At(10, 15, "b")}}, 600);
  EXPECT_THAT(MappingsAt(7, 600), ElementsAre("10-15 b", "15-20 a"));
}

// Nothing is known of a process that nobody told of, nor of its child before
// that execs.
TEST_F(ProcessHistoryTest, KnowsNothingOfOthers) {
  EXPECT_THAT(MappingsAt(9, 1), ElementsAre("none"));
  history_.End(9, 5);
  history_.Fork(9, 10, 6);
  history_.Map(10, At(10, 20, "a"), 7);
  EXPECT_THAT(MappingsAt(10, 7), ElementsAre("none"));
  history_.Exec(10, 8);
  history_.Map(10, At(10, 20, "b"), 9);
  EXPECT_THAT(MappingsAt(10, 9), ElementsAre("10-20 b"));
  EXPECT_THAT(MappingsAt(10, 7), ElementsAre("none"));
}

ProcessId Program(uint32_t pid, uint32_t exec_count, uint64_t start_ns = 1) {
  return {.pid = pid, .exec_count = exec_count, .start_ns = start_ns};
}

// A process that is sampled as the same program before and after reports were
// lost has what it had, and what it mapped meanwhile.
TEST_F(ProcessHistoryTest, KnowsWhoIsSeenAgain) {
  history_.Seed({.pid = 7, .mappings = {At(10, 20, "a")}}, 100);
  const auto generation = history_.See(Program(7, 3), 150);
  history_.LoseTrack(200);
  EXPECT_EQ(history_.FindSure(7, 150), generation);
  EXPECT_EQ(history_.FindSure(7, 151), 0u);
  history_.Map(7, At(30, 40, "b"), 210);
  EXPECT_EQ(history_.See(Program(7, 3), 220), generation);
  EXPECT_EQ(history_.FindSure(7, 220), generation);
  EXPECT_FALSE(history_.AwaitsReading(7));
  EXPECT_THAT(MappingsAt(7, 220), ElementsAre("10-20 a", "30-40 b"));
}

// Another program, another process of that number, and who was not sampled
// before are not known after reports were lost, until they were read.
TEST_F(ProcessHistoryTest, ForgetsWhatItCannotBeSureOf) {
  for (const uint32_t pid : {1, 2, 3}) {
    history_.Seed({.pid = pid, .mappings = {At(10, 20, "a")}}, 100);
    if (pid != 3) history_.See(Program(pid, 3), 150);
  }
  history_.LoseTrack(200);
  for (const auto& id : {Program(1, 4), Program(2, 3, 2), Program(3, 3)}) {
    history_.Map(id.pid, At(30, 40, "b"), 230);
    history_.Map(id.pid, At(50, 60, "c"), 260);
    const auto generation = history_.See(id, 250);
    EXPECT_THAT(MappingsAt(id.pid, 240),
                ElementsAre("10-20 a", "30-40 b", "50-60 c"));
    EXPECT_EQ(history_.FindSure(id.pid, 240), 0u);
    EXPECT_TRUE(history_.AwaitsReading(id.pid));
    EXPECT_THAT(MappingsAt(id.pid, 250), ElementsAre("none"));
    history_.Seed({.pid = id.pid, .mappings = {At(50, 60, "c")}}, 300);
    EXPECT_EQ(history_.See(id, 310), generation);
    EXPECT_THAT(MappingsAt(id.pid, 250), ElementsAre("50-60 c"));
    // What was there before it was mapped is not known.
    EXPECT_THAT(ChangesAt(id.pid, 250), ElementsAre("30-60 260"));
    // A generation that did not begin by exec tells nothing of what was before.
    EXPECT_EQ(history_.BeforeExec(generation), 0u);
  }
}

// Where reports are lost again before a process is read, it is known all the
// same if the program was sampled before the reading and is after it.
TEST_F(ProcessHistoryTest, BelievesAReadingBetweenSamples) {
  history_.Seed({.pid = 7, .mappings = {At(10, 20, "a")}}, 100);
  history_.LoseTrack(200);
  const auto before = history_.See(Program(7, 3), 250);
  history_.Map(7, At(30, 40, "b"), 260);
  history_.LoseTrack(300);
  history_.Seed({.pid = 7, .mappings = {At(30, 40, "b")}}, 310);
  history_.LoseTrack(400);
  EXPECT_EQ(history_.FindSure(7, 350), 0u);
  const auto after = history_.See(Program(7, 3), 350);
  EXPECT_NE(after, before);
  EXPECT_THAT(MappingsAt(7, 350), ElementsAre("30-40 b"));
  EXPECT_THAT(ChangesAt(7, 350), ElementsAre("30-40 260"));
  // Another one is not what was read.
  history_.LoseTrack(500);
  history_.See(Program(7, 4), 600);
  EXPECT_THAT(MappingsAt(7, 600), ElementsAre("none"));
}

// A parent in doubt gives its child nothing, and is to be read for the next.
TEST_F(ProcessHistoryTest, ReadsParentsInDoubt) {
  history_.Seed({.pid = 7, .mappings = {At(10, 20, "a")}}, 100);
  history_.LoseTrack(200);
  history_.Fork(7, 8, 210);
  EXPECT_TRUE(history_.AwaitsReading(7));
  EXPECT_TRUE(history_.AwaitsReading(8));
  history_.Seed({.pid = 7, .mappings = {At(10, 20, "b")}}, 220);
  EXPECT_FALSE(history_.AwaitsReading(7));
  history_.Fork(7, 9, 230);
  EXPECT_FALSE(history_.AwaitsReading(9));
  EXPECT_THAT(MappingsAt(9, 230), ElementsAre("10-20 b"));
}

// A program that was executed after the loss is known by its reports.
TEST_F(ProcessHistoryTest, KnowsWhoExecsAfterALoss) {
  history_.Seed({.pid = 7, .mappings = {At(10, 20, "a")}}, 100);
  history_.LoseTrack(200);
  history_.Exec(7, 210);
  history_.Map(7, At(10, 20, "b"), 211);
  EXPECT_NE(history_.See(Program(7, 9), 220), 0u);
  EXPECT_THAT(MappingsAt(7, 220), ElementsAre("10-20 b"));
  EXPECT_EQ(history_.BeforeExec(history_.Find(7, 220)), 0u);
}

// Processes that a listing does not show have ended, but for those that began
// since.
TEST_F(ProcessHistoryTest, EndsThoseThatAreNotThere) {
  for (const uint32_t pid : {1, 2}) {
    history_.Seed({.pid = pid, .mappings = {At(10, 20, "a")}}, 100);
  }
  history_.Fork(1, 3, 300);
  history_.EndOthers({1}, 200);
  history_.Forget(1000);
  EXPECT_THAT(MappingsAt(1, 1000), ElementsAre("10-20 a"));
  EXPECT_THAT(MappingsAt(2, 1000), ElementsAre("none"));
  EXPECT_THAT(MappingsAt(3, 1000), ElementsAre("10-20 a"));
}

// A child of a process that was not read is not known before it was read, but
// then since it was forked.
TEST_F(ProcessHistoryTest, ReadsChildrenOfTheUnknown) {
  history_.Fork(8, 9, 100);
  EXPECT_TRUE(history_.AwaitsReading(9));
  EXPECT_FALSE(history_.AwaitsReading(8));
  const auto generation = history_.Find(9, 110);
  history_.Seed({.pid = 9, .since_ns = 150, .mappings = {At(10, 20, "a")}},
                150);
  EXPECT_FALSE(history_.AwaitsReading(9));
  EXPECT_EQ(history_.Find(9, 110), generation);
  EXPECT_THAT(MappingsAt(9, 110), ElementsAre("10-20 a"));
  EXPECT_THAT(MappingsAt(9, 99), ElementsAre("none"));
}

// What had the number of a process before it tells nothing of it, nor of its
// children, where its own fork was lost.
TEST_F(ProcessHistoryTest, TakesNothingFromTheDead) {
  history_.Seed({.pid = 7, .mappings = {At(10, 20, "a")}}, 100);
  history_.See(Program(7, 3), 140);
  history_.End(7, 150);
  history_.LoseTrack(200);
  EXPECT_THAT(MappingsAt(7, 190), ElementsAre("10-20 a"));
  history_.Map(7, At(10, 20, "b"), 210);
  EXPECT_THAT(MappingsAt(7, 210), ElementsAre("none"));
  history_.Fork(7, 8, 220);
  EXPECT_TRUE(history_.AwaitsReading(8));
  history_.LoseTrack(225);
  history_.Exec(7, 230);
  EXPECT_EQ(history_.BeforeExec(history_.Find(7, 240)), 0u);
}

// What ended unseen, or could not be read, is forgotten like others.
TEST_F(ProcessHistoryTest, ForgetsTheUnknown) {
  history_.Map(8, At(10, 20, "b"), 210);
  history_.GiveUp(8, 220);
  history_.Fork(6, 9, 230);
  history_.End(9, 240);
  history_.Forget(1000);
  EXPECT_EQ(history_.generations(), 0u);
}

// Without a time there is an answer only where it cannot matter.
TEST_F(ProcessHistoryTest, FindsTheOnlyGeneration) {
  history_.Seed({.pid = 7, .mappings = {At(10, 20, "a")}}, 100);
  history_.Exec(7, 500);
  const ProcessId seven = Program(7, 3);
  EXPECT_EQ(history_.FindOnly(seven, 100, 499), history_.Find(7, 200));
  EXPECT_EQ(history_.FindOnly(seven, 100, 500), 0u);
  EXPECT_EQ(history_.FindOnly(seven, 500, 900), history_.Find(7, 500));
  history_.Fork(7, 8, 600);
  EXPECT_EQ(history_.FindOnly(Program(8, 3), 100, 700), history_.Find(8, 700));
  // In doubt it is that of who was sampled before.
  history_.See(seven, 650);
  history_.LoseTrack(800);
  EXPECT_EQ(history_.FindOnly(seven, 600, 900), history_.Find(7, 600));
  EXPECT_EQ(history_.FindOnly(Program(7, 4), 600, 900), 0u);
}

// Where another file, or another part of it, takes the place of one, it is
// known until when; the same bytes mapped again are no change.
TEST_F(ProcessHistoryTest, KnowsWhatWasReplaced) {
  history_.Seed({.pid = 1, .mappings = {At(10, 30, "a")}}, 100);
  history_.Map(1, WithInode(At(20, 30, "a"), 1, 10), 200);
  history_.Map(1, At(40, 50, "elsewhere"), 210);
  EXPECT_THAT(ChangesAt(1, 300), ElementsAre());
  history_.Map(1, WithInode(At(25, 45, "b"), 2, 0), 220);
  EXPECT_THAT(ChangesAt(1, 300), ElementsAre("25-30 220", "40-45 220"));
  history_.Map(1, WithInode(At(25, 30, "b"), 2, 50), 230);
  EXPECT_THAT(ChangesAt(1, 300), ElementsAre("25-30 230", "40-45 220"));
  // The child has the result, not the change.
  history_.Fork(1, 2, 240);
  EXPECT_THAT(ChangesAt(2, 300), ElementsAre());
  history_.Forget(230);
  EXPECT_THAT(ChangesAt(1, 300), ElementsAre("25-30 230"));
}

// A process that mapped something before it could be read is known from the
// beginning, but for what was there before that mapping.
TEST_F(ProcessHistoryTest, SeedsWhatMappedBeforeItWasRead) {
  history_.Map(7, At(10, 20, "new"), 200);
  history_.Seed({.pid = 7, .mappings = {At(0, 5, "a"), At(10, 20, "new")}},
                300);
  EXPECT_THAT(MappingsAt(7, 1), ElementsAre("0-5 a", "10-20 new"));
  EXPECT_THAT(ChangesAt(7, 1), ElementsAre("10-20 200"));
}

// A pid that ended, and is read as another process whose fork was lost.
TEST_F(ProcessHistoryTest, SeedsAReusedPid) {
  history_.Seed({.pid = 7, .mappings = {At(10, 20, "a")}}, 100);
  history_.End(7, 200);
  history_.LoseTrack(250);
  history_.Seed({.pid = 7, .mappings = {At(10, 20, "b")}}, 300);
  EXPECT_THAT(MappingsAt(7, 150), ElementsAre("10-20 a"));
  EXPECT_THAT(MappingsAt(7, 300), ElementsAre("10-20 b"));
}

// The version tells that mappings were added.
TEST_F(ProcessHistoryTest, CountsVersions) {
  history_.Seed({.pid = 1, .mappings = {}}, 1);
  history_.Fork(1, 2, 100);
  const auto id = history_.Find(2, 100);
  const uint64_t before = history_.Version(id);
  history_.Map(2, At(10, 20, "a"), 110);
  EXPECT_GT(history_.Version(id), before);
}

// Many short lives leave nothing behind.
TEST_F(ProcessHistoryTest, StaysSmall) {
  history_.Seed({.pid = 1, .mappings = {At(10, 20, "a")}}, 1);
  for (uint64_t t = 10; t < 100000; t += 10) {
    const auto pid = static_cast<uint32_t>(2 + t % 1000);
    history_.Fork(1, pid, t);
    history_.Exec(pid, t + 1);
    history_.Map(pid, At(10, 20, "b"), t + 2);
    history_.End(pid, t + 3);
    history_.Forget(t);
  }
  EXPECT_LE(history_.generations(), 4u);
}

}  // namespace
}  // namespace ksym
