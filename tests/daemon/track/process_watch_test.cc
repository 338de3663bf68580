// SPDX-License-Identifier: Apache-2.0
#include "daemon/track/process_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/track/process_state.h"

namespace profd {
namespace {

constexpr uint32_t kPid = 1000;
constexpr uint64_t kAddress = 0x401000;

ksym::ProcessId Program(uint32_t exec_count) {
  return {.pid = kPid, .exec_count = exec_count, .start_ns = 1};
}

// A process that is program 1 from 100 ns on, 2 from 200 on and so forth. All
// have their code at the same place.
class ProcessWatchTest : public testing::Test {
 protected:
  ProcessWatchTest()
      : watch_([&](const ksym::ProcessImage& image) { told_.push_back(image); },
               [&](const ksym::ProcessId& id) { gone_.push_back(id); }, [] {}) {
    std::vector<SideBandEvent> events;
    for (uint64_t program = 1; program <= 3; ++program) {
      events.push_back({100 * program, ExecReport{kPid}});
      ksym::Mapping mapping;
      mapping.start = {kAddress};
      mapping.end = {kAddress + 0x1000};
      mapping.path = "/program" + std::to_string(program);
      mapping.inode = program;
      events.push_back({100 * program + 5, MapReport{kPid, mapping}});
    }
    watch_.Apply(std::move(events), 399);
  }

  void See(std::vector<SampleHint> hints) {
    watch_.See(hints);
    watch_.TellObserver();
  }

  // The file that a sample of the program is named by; empty: none.
  std::string FileOf(uint32_t exec_count) {
    constexpr std::array kFrames = {kAddress + 8};
    const auto answer = watch_.Find(Program(exec_count), kFrames, kTaken);
    const auto mappings = watch_.MappingsOf(answer);
    return mappings.empty() ? "" : mappings.front().path;
  }

  static constexpr TakenSet kTaken = {.set = 0, .flip_ns = 390, .end_ns = 399};
  std::vector<ksym::ProcessImage> told_;
  std::vector<ksym::ProcessId> gone_;
  ProcessWatch watch_;
};

SampleHint Hint(uint32_t exec_count, uint64_t time_ns) {
  return {.id = Program(exec_count), .set = 0, .time_ns = time_ns};
}

TEST_F(ProcessWatchTest, NamesEachProgramByItsTime) {
  See({Hint(1, 150), Hint(2, 250), Hint(3, 350)});
  EXPECT_EQ(FileOf(1), "/program1");
  EXPECT_EQ(FileOf(2), "/program2");
  EXPECT_EQ(FileOf(3), "/program3");
  EXPECT_EQ(told_.size(), 3u);
}

// Hints of copied stacks and of others come apart, and the last sample of a
// program may be of the time of the next one.
TEST_F(ProcessWatchTest, TakesTheFirstHintByItsTime) {
  See({Hint(1, 201), Hint(1, 150)});
  EXPECT_EQ(FileOf(1), "/program1");
}

// A program whose only hint is of the next one's time is known, by that next
// one, to have been the one before.
TEST_F(ProcessWatchTest, KnowsASampleWithinExecve) {
  See({Hint(2, 301), Hint(3, 350)});
  EXPECT_EQ(FileOf(2), "/program2");
  EXPECT_EQ(FileOf(3), "/program3");
}

// The observer is told of the next program by its own number as well, and that
// both are gone.
TEST_F(ProcessWatchTest, TellsOfAProgramThatWasTakenForTheOneBefore) {
  See({Hint(2, 301)});
  See({Hint(3, 350)});
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[1].id, Program(3));
  EXPECT_EQ(told_[1].mappings.front().path, "/program3");
  watch_.Apply({{400, ExitReport{kPid}}}, 401);
  watch_.EndInterval({.set = 0, .flip_ns = 500, .end_ns = 510});
  EXPECT_TRUE(gone_.empty());
  watch_.EndInterval({.set = 1, .flip_ns = 600, .end_ns = 610});
  EXPECT_EQ(gone_, (std::vector{Program(2), Program(3)}));
}

// After reports were lost, and of a number that is another process's by now,
// the program before tells nothing: what is in none of its mappings has no
// name.
TEST_F(ProcessWatchTest, TakesNothingForTheProgramBefore) {
  const auto is_known = [&](uint64_t time_ns) {
    return !watch_.MappingsAt(kPid, time_ns, ksym::Address{kAddress}).empty();
  };
  EXPECT_TRUE(is_known(399));
  watch_.Apply(
      {{405, ExitReport{kPid}}, {410, ForkReport{.parent = 1, .child = kPid}}},
      420);
  See({Hint(3, 415)});
  EXPECT_FALSE(is_known(415));
  EXPECT_EQ(FileOf(3), "");
}

// A loss of mappings alone is no reason to forget those that are known.
TEST_F(ProcessWatchTest, KeepsMappingsWhenOthersWereLost) {
  watch_.Apply({{405, LostReport{.of = LostReport::Of::kMappings}}}, 420);
  See({Hint(2, 430)});
  EXPECT_FALSE(watch_.MappingsAt(kPid, 430, ksym::Address{kAddress}).empty());
}

// A process that is sampled as the same program before and after reports of
// forks, execs and exits were lost keeps its names, and what it mapped
// meanwhile is known.
TEST_F(ProcessWatchTest, KeepsWhoIsConfirmed) {
  See({Hint(3, 350)});
  watch_.EndInterval({.set = 1, .flip_ns = 390, .end_ns = 399});
  ksym::Mapping more;
  more.start = {2 * kAddress};
  more.end = {3 * kAddress};
  more.path = "/more";
  more.inode = 9;
  watch_.Apply(
      {{405, LostReport{.until_ns = 410}}, {415, MapReport{kPid, more}}}, 420);
  EXPECT_TRUE(watch_.MappingsAt(kPid, 430, ksym::Address{kAddress}).empty());
  SampleHint hint = Hint(3, 430);
  hint.set = 1;
  See({hint});
  const auto mappings = watch_.MappingsAt(kPid, 430, ksym::Address{kAddress});
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_EQ(mappings[0].path, "/program3");
  EXPECT_EQ(mappings[1].path, "/more");
  EXPECT_EQ(FileOf(3), "/program3");
}

// Another program, and another process of that number, have no names of before.
TEST_F(ProcessWatchTest, KnowsNothingOfOthersAfterALoss) {
  See({Hint(3, 350)});
  for (ksym::ProcessId id : {Program(4), Program(3)}) {
    if (id.exec_count == 3) id.start_ns = 2;
    watch_.Apply({{405, LostReport{.until_ns = 410}}}, 420);
    See({{.id = id, .set = 0, .time_ns = 430}});
    EXPECT_TRUE(watch_.MappingsAt(kPid, 430, ksym::Address{kAddress}).empty());
    constexpr std::array kFrames = {kAddress + 8};
    const auto answer = watch_.Find(id, kFrames, kTaken);
    EXPECT_TRUE(watch_.MappingsOf(answer).empty());
  }
  // What was sampled before the loss has its names.
  EXPECT_EQ(FileOf(3), "/program3");
}

// The mappings that samples lead to are copied, each once. A change that was
// mapped over one of them meanwhile is marked.
TEST_F(ProcessWatchTest, GivesTheMappingsInUse) {
  std::vector<SideBandEvent> events;
  for (uint64_t i = 0; i < 100; ++i) {
    ksym::Mapping mapping;
    mapping.start = {0x10000000 + i * 0x2000};
    mapping.end = {mapping.start.value + 0x1000};
    mapping.path = "/library" + std::to_string(i);
    mapping.inode = 100 + i;
    events.push_back({400, MapReport{kPid, mapping}});
  }
  watch_.Apply(std::move(events), 400);
  See({Hint(3, 405)});
  ksym::Mapping other;
  other.start = {0x10000000 + 7 * 0x2000};
  other.end = {other.start.value + 0x1000};
  other.path = "/other";
  ksym::Mapping unused = other;
  unused.start = {0x10000000 + 9 * 0x2000};
  unused.end = {unused.start.value + 0x1000};
  watch_.Apply({{410, MapReport{kPid, other}}, {411, MapReport{kPid, unused}}},
               420);

  constexpr std::array kFrames = {kAddress + 8};
  const auto answer = watch_.Find(Program(3), kFrames, kTaken);
  EXPECT_EQ(watch_.CountMappings(answer), 101u);
  const std::vector<ksym::Address> used = {
      {kAddress + 8},        {0x10000000 + 0x1000},
      {0x10000000 + 0x2fff}, {0x10000000 + 0x2fff + 1},
      {0x10000000 + 0x6000}, {0x10000000 + 0x6008},
      {0x10000000 + 0xe010}};
  const auto mappings = watch_.MappingsOf(answer, used);
  std::vector<std::string> paths;
  for (const ksym::Mapping& mapping : mappings) {
    paths.emplace_back(mapping.path);
  }
  EXPECT_EQ(paths,
            (std::vector<std::string>{"/program3", "/library1", "/library3",
                                      std::string(ksym::kReplacedPath)}));
  EXPECT_TRUE(watch_.MappingsOf(answer, {}).empty());
  // Whole, both replaced ones are marked.
  EXPECT_EQ(std::ranges::count_if(watch_.MappingsOf(answer),
                                  [](const ksym::Mapping& mapping) {
                                    return mapping.path == ksym::kReplacedPath;
                                  }),
            2);
}

// Reading all processes, with reports of this one meanwhile, one per us.
class ReadingTest : public testing::Test {
 protected:
  void Read(const decltype(SideBandEvent::report)& report) {
    const uint64_t begin_ns = NowNs();
    watch_.ReadAll();
    end_ns_ = NowNs();
    std::vector<SideBandEvent> events;
    for (uint64_t time_ns = begin_ns; time_ns < end_ns_; time_ns += 1000) {
      events.push_back({time_ns, report});
    }
    watch_.Apply(std::move(events), end_ns_);
  }
  bool IsKnown() const {
    const ksym::Address here{reinterpret_cast<uintptr_t>(&NowNs)};
    return !watch_.MappingsAt(kSelf, end_ns_, here).empty();
  }
  static uint64_t NowNs() {
    return static_cast<uint64_t>(
        std::chrono::steady_clock::now().time_since_epoch().count());
  }

  static inline const uint32_t kSelf = static_cast<uint32_t>(::getpid());
  ProcessWatch watch_{[](const ksym::ProcessImage&) {},
                      [](const ksym::ProcessId&) {}, [] {}};
  uint64_t end_ns_ = 0;
};

// Whoever has all processes read gets a turn after each.
TEST(ProcessWatchTurnsTest, GivesItsCallerTurns) {
  size_t turns = 0;
  ProcessWatch watch([](const ksym::ProcessImage&) {},
                     [](const ksym::ProcessId&) {}, [&] { ++turns; });
  const size_t processes = ReadProcesses().size();
  watch.ReadAll();
  // Some may have ended meanwhile.
  EXPECT_GT(turns, 0u);
  EXPECT_GE(2 * turns, processes);
}

// Those that are wanted are read before the time is up, the others later.
TEST(ProcessWatchTurnsTest, ReadsSomeFirst) {
  constexpr std::chrono::milliseconds kTime(200);
  bool is_slow = true;
  ProcessWatch watch(
      [](const ksym::ProcessImage&) {}, [](const ksym::ProcessId&) {},
      [&] { std::this_thread::sleep_for(is_slow ? 2 * kTime : 0 * kTime); });
  const std::array own = {static_cast<uint32_t>(::getpid())};
  watch.ReadSome(own, SteadyClock::now() + kTime);
  const auto first = watch.AllByUse();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first.front().pid, own.front());
  is_slow = false;
  watch.ReadAll();
  EXPECT_GT(watch.AllByUse().size(), 1u);
}

// A process that became another one while it was read is not known, one that
// started a thread or ended one is.
TEST_F(ReadingTest, KnowsWhoseMappingsWereRead) {
  Read(ExecReport{.pid = kSelf});
  EXPECT_FALSE(IsKnown());
}
// Reports that would take too long to follow are left out, and the process is
// read: so is what it has by then known, and nothing that it had meanwhile.
TEST_F(ReadingTest, ReadsWhoMapsTooMuch) {
  Read(std::monostate());
  ASSERT_TRUE(IsKnown());
  constexpr uint64_t kReports = 200'000;
  const ksym::Address here{reinterpret_cast<uintptr_t>(&NowNs)};
  ksym::Mapping other;
  other.start = here;
  other.end = here + 1;
  other.path = "/other";
  std::vector<SideBandEvent> events(
      kReports, {end_ns_ + 1, MapReport{.pid = kSelf, .mapping = other}});
  watch_.Apply(std::move(events), end_ns_ + 2);
  const auto mappings = watch_.MappingsAt(kSelf, end_ns_ + 2, here);
  const ksym::Mapping* mapping = FindMapping(mappings, here);
  ASSERT_NE(mapping, nullptr);
  EXPECT_NE(mapping->path, "/other");
  // By the time of the next call it was read.
  end_ns_ = NowNs();
  watch_.Apply({}, end_ns_);
  EXPECT_TRUE(IsKnown());
}

// A child of one that was not read is read by itself.
TEST_F(ReadingTest, ReadsChildrenOfTheUnknown) {
  const uint64_t begin_ns = NowNs();
  end_ns_ = NowNs();
  watch_.Apply({{begin_ns, ForkReport{.parent = 1, .child = kSelf}}}, end_ns_);
  EXPECT_FALSE(IsKnown());
  watch_.Apply({}, NowNs());
  EXPECT_TRUE(IsKnown());
}
// The report of an end is of the first thread: while others are sampled the
// process is there.
TEST_F(ReadingTest, KnowsWhoseFirstThreadEnded) {
  Read(ExitReport{.pid = kSelf});
  SampleHint hint{.id = {.pid = kSelf}, .set = 0, .time_ns = end_ns_ + 5};
  watch_.See({&hint, 1});
  watch_.EndInterval({.set = 0, .flip_ns = end_ns_ + 1, .end_ns = end_ns_ + 1});
  watch_.EndInterval({.set = 1, .flip_ns = end_ns_ + 2, .end_ns = end_ns_ + 2});
  EXPECT_TRUE(IsKnown());
}

// After reports were lost a process that was never sampled before is read when
// it is, and its samples of before the reading are named as well.
TEST_F(ReadingTest, ReadsWhoIsSampledAfterALoss) {
  Read(std::monostate());
  const uint64_t lost_ns = end_ns_ + 1;
  watch_.Apply({{lost_ns, LostReport{.until_ns = lost_ns}}}, lost_ns);
  SampleHint hint{.id = {.pid = kSelf}, .set = 0, .time_ns = NowNs()};
  watch_.See({&hint, 1});
  end_ns_ = hint.time_ns;
  EXPECT_FALSE(IsKnown());
  watch_.Apply({}, NowNs());
  watch_.Apply({}, NowNs());
  EXPECT_TRUE(IsKnown());
  const auto answer = watch_.Find(hint.id, {}, {.set = 0, .end_ns = NowNs()});
  EXPECT_FALSE(watch_.MappingsOf(answer).empty());
}

}  // namespace
}  // namespace profd
