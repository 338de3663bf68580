// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/dump_text.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "daemon/dump/thread_groups.h"
#include "daemon/dump/thread_list.h"

namespace profd {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// A profile with stacks of one user frame each, and the threads that have them.
class Maker {
 public:
  DumpedThread& Add(uint32_t pid, uint32_t tid, const char* comm,
                    const char* function) {
    DumpedThread& thread = threads_.emplace_back();
    thread.pid = pid;
    thread.tid = tid;
    thread.own_tid = tid;
    thread.comm = comm;
    thread.has_user_code = true;
    thread.waited_ns = kSecond;
    // In nanosleep.
    thread.reason = {.calls = WaitCalls::kX8664, .call = 35, .state = 1};
    AddSample(thread, function, 1, 1);
    return thread;
  }

  void AddSample(const DumpedThread& thread, const char* function,
                 SampleKindId kind, uint64_t count,
                 StackState state = StackState::kWhole) {
    const FrameId frame =
        builder_.AddFrame({.name = builder_.Intern(function),
                           .object = builder_.Intern("/lib/libc.so.6")});
    builder_.AddSample({.comm = builder_.Intern(thread.comm),
                        .pid = thread.pid,
                        .tid = thread.tid,
                        .user_state = state,
                        .kind = kind,
                        .user = builder_.AddStack({{frame}}),
                        .count = count});
  }

  // Waits for a mutex.
  static void SetLock(DumpedThread& thread, uint32_t owner) {
    thread.reason.call = 202;
    thread.arguments = {0x1000, 0x80, 2};
    thread.lock_words = LockWords{2, 0, owner, 1, 0};
  }

  Profile MakeProfile() {
    CaptureMetadata metadata;
    metadata.kinds = {EventKind("cpu-clock", 499, 0), ThreadKind()};
    return std::move(builder_).Finish(std::move(metadata));
  }
  std::vector<DumpedThread> threads() const {
    return {threads_.begin(), threads_.end()};
  }

 private:
  std::deque<DumpedThread> threads_;
  ProfileBuilder builder_;
};

ThreadList ListOf(const Maker& maker, const Profile& profile) {
  return MakeThreadList(maker.threads(), profile,
                        [](uint32_t, uint32_t, uint64_t) { return false; });
}

std::string TextOf(const ThreadList& list, const Profile& profile) {
  std::string text;
  OutputBuffer out([&](std::string_view piece) -> ksym::Status {
    text += piece;
    return {};
  });
  WriteDumpText(list, profile, out);
  EXPECT_TRUE(out.Finish());
  return text;
}

// Threads that do the same are one group, whatever their names and ids; what
// runs comes first.
TEST(DumpText, GroupsThreads) {
  Maker maker;
  maker.Add(10, 10, "a", "Sleep");
  maker.Add(10, 11, "b", "Sleep").waited_ns = 3 * kSecond;
  maker.Add(20, 21, "c", "Sleep").waited_ns.reset();
  maker.Add(20, 20, "c", "Other");
  DumpedThread& running = maker.Add(30, 30, "r", "Gone");
  running.is_running = true;
  running.waited_ns.reset();
  maker.AddSample(running, "Spin", 0, 5);
  maker.AddSample(running, "Rare", 0, 2);
  const Profile profile = maker.MakeProfile();
  const ThreadList list = ListOf(maker, profile);
  EXPECT_EQ(list.processes, 3u);
  EXPECT_EQ(TextOf(list, profile),
            "5 threads of 3 processes: 1 running, 0 runnable, 4 blocked\n"
            "\n"
            "1 thread, running\n"
            "  r (30)\n"
            "    Spin [libc.so.6]\n"
            "\n"
            "3 threads, blocked: nanosleep, for 1.0 s to 3.0 s\n"
            "  a (10)\n"
            "  b (10): 11\n"
            "  c (20): 21\n"
            "    Sleep [libc.so.6]\n"
            "\n"
            "1 thread, blocked: nanosleep, for 1.0 s\n"
            "  c (20)\n"
            "    Other [libc.so.6]\n");
}

// What its first samples lacked came while it was sampled.
TEST(DumpText, PrefersWholeStacksOfWhatRuns) {
  Maker maker;
  DumpedThread& running = maker.Add(30, 30, "r", "Gone");
  running.is_running = true;
  maker.AddSample(running, "Cut", 0, 9, StackState::kNoTable);
  maker.AddSample(running, "Whole", 0, 2);
  maker.AddSample(running, "More", 0, 3, StackState::kNoTable);
  const Profile profile = maker.MakeProfile();
  const std::string text = TextOf(ListOf(maker, profile), profile);
  EXPECT_NE(text.find("    Whole [libc.so.6]\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("Cut"), std::string::npos) << text;
}

// Threads that were not caught and stacks that were lost are counted and said.
TEST(DumpText, TellsWhatIsMissing) {
  Maker maker;
  maker.Add(30, 30, "r", "Gone").is_running = true;
  const Profile profile = maker.MakeProfile();
  auto threads = maker.threads();
  DumpedThread lost = threads.front();
  lost.is_running = false;
  lost.tid = 31;
  const ThreadList list =
      MakeThreadList({threads.front(), lost}, profile,
                     [](uint32_t, uint32_t, uint64_t) { return false; });
  EXPECT_EQ(list.running_without_stack, 1u);
  EXPECT_EQ(list.lost, 1u);
  const std::string text = TextOf(list, profile);
  EXPECT_NE(text.find("1 thread that ran was not caught: without a stack\n"),
            std::string::npos);
  EXPECT_NE(text.find("the stacks of 1 thread were lost\n"), std::string::npos);
  EXPECT_NE(text.find("    [running: not caught]\n"), std::string::npos);
  EXPECT_NE(text.find("    [lost]\n"), std::string::npos);
}

// A holder is named with its waiter; a cycle comes first, and its threads are
// in no group.
TEST(DumpText, NamesHoldersAndDeadlocks) {
  Maker maker;
  maker.Add(10, 10, "main", "Sleep");
  Maker::SetLock(maker.Add(10, 11, "w", "pthread_mutex_lock"), 10);
  Maker::SetLock(maker.Add(10, 12, "x", "pthread_mutex_lock"), 13);
  Maker::SetLock(maker.Add(10, 13, "y", "pthread_mutex_lock"), 12);
  // Not by a function of the C library.
  Maker::SetLock(maker.Add(10, 14, "z", "my_lock"), 10);
  const Profile profile = maker.MakeProfile();
  const ThreadList list = ListOf(maker, profile);
  EXPECT_EQ(list.deadlocks, (std::vector<std::vector<size_t>>{{2, 3}}));
  EXPECT_EQ(TextOf(list, profile),
            "5 threads of 1 process: 0 running, 0 runnable, 5 blocked\n"
            "1 deadlock\n"
            "\n"
            "DEADLOCK: 2 threads, each of which waits for the next one\n"
            "\n"
            "12 'x' (10), blocked: futex, for 1.0 s\n"
            "  for the mutex at 0x1000, which 13 'y' has (blocked)\n"
            "    pthread_mutex_lock [libc.so.6]\n"
            "\n"
            "13 'y' (10), blocked: futex, for 1.0 s\n"
            "  for the mutex at 0x1000, which 12 'x' has (blocked)\n"
            "    pthread_mutex_lock [libc.so.6]\n"
            "\n"
            "1 thread, blocked: futex, for 1.0 s\n"
            "  w (10): 11\n"
            "  for the mutex at 0x1000, which 10 'main' has (blocked)\n"
            "    pthread_mutex_lock [libc.so.6]\n"
            "\n"
            "1 thread, blocked: nanosleep, for 1.0 s\n"
            "  main (10)\n"
            "    Sleep [libc.so.6]\n"
            "\n"
            "1 thread, blocked: futex, for 1.0 s\n"
            "  z (10): 14\n"
            "  at 0x1000\n"
            "    my_lock [libc.so.6]\n");
}

// A large group is listed in part and its rest counted. Names of programs can
// say nothing to a terminal, and be taken for no frame.
TEST(DumpText, BoundsListsAndNames) {
  Maker maker;
  for (uint32_t i = 0; i < 20; ++i) maker.Add(10, 10 + i, "w", "Sleep");
  for (uint32_t i = 0; i < 10; ++i) {
    maker.Add(100 + i, 100 + i, "\x1b[2J", "Sleep");
  }
  maker.Add(200, 200, "  main [a]", "  Other");
  const Profile profile = maker.MakeProfile();
  const std::string text = TextOf(ListOf(maker, profile), profile);
  EXPECT_NE(text.find("  w (10): 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 "
                      "25 and 4 more\n"),
            std::string::npos);
  EXPECT_NE(text.find("  ?[2J (106)\n  and 3 more\n"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("\n  __main [a] (200)\n    __Other [libc.so.6]\n"),
            std::string::npos);
}

// The profile of the threads has each once, and its time where that is known.
TEST(ThreadProfile, HasThreadsAndTimes) {
  Maker maker;
  maker.Add(10, 10, "a", "Sleep");
  maker.Add(10, 11, "b", "Sleep").waited_ns.reset();
  const Profile profile = maker.MakeProfile();
  const Profile threads = MakeThreadProfile(ListOf(maker, profile), profile);
  ASSERT_EQ(threads.samples.size(), 3u);
  EXPECT_EQ(threads.metadata.kinds,
            (std::vector<SampleKind>{ThreadKind(), WaitedKind()}));
  EXPECT_EQ(threads.samples[0].count, 1u);
  EXPECT_EQ(threads.samples[1].kind, 1u);
  EXPECT_EQ(threads.samples[1].value, kSecond);
  EXPECT_EQ(threads.samples[2].tid, 11u);
}

// A time has two units at the most.
TEST(TimeText, FitsItsLength) {
  EXPECT_EQ(TimeText(0), "less than 1 ms");
  EXPECT_EQ(TimeText(999'999), "less than 1 ms");
  EXPECT_EQ(TimeText(1'000'000), "1 ms");
  EXPECT_EQ(TimeText(kSecond - 1), "999 ms");
  EXPECT_EQ(TimeText(kSecond), "1.0 s");
  EXPECT_EQ(TimeText(60 * kSecond), "1 min 0 s");
  EXPECT_EQ(TimeText(3599 * kSecond), "59 min 59 s");
  EXPECT_EQ(TimeText(3600 * kSecond), "1 h 0 min");
  EXPECT_EQ(TimeText(25 * 3600 * kSecond), "1 d 1 h");
}

}  // namespace
}  // namespace profd
