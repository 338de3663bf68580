#include "daemon/capture/process_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <latch>
#include <thread>

namespace profd {
namespace {

const uint32_t kSelf = static_cast<uint32_t>(::getpid());

// This process is among those that there are.
TEST(ProcessStateTest, ListsProcesses) {
  EXPECT_THAT(ReadProcesses(), testing::Contains(kSelf));
}

// Each thread that runs is told of, and one that has ended is not.
TEST(ProcessStateTest, TellsThreads) {
  const auto before = ReadProcessState(kSelf).threads;
  EXPECT_THAT(before, testing::Contains(kSelf));
  std::latch end(1);
  std::thread thread([&] { end.wait(); });
  EXPECT_EQ(ReadProcessState(kSelf).threads.size(), before.size() + 1);
  end.count_down();
  thread.join();
}

// A process that is not there has a thread of its number, and used nothing.
TEST(ProcessStateTest, NobodyUsesNothing) {
  constexpr uint32_t kNobody = 1u << 30;
  const ProcessState state = ReadProcessState(kNobody);
  EXPECT_THAT(state.threads, testing::ElementsAre(kNobody));
  EXPECT_EQ(state.cpus, 0);
}

// Who spins is busy; nobody uses more CPUs than it has threads.
TEST(ProcessStateTest, TellsHowBusyItIs) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < end) {
  }
  const double cpus = ReadProcessState(kSelf).cpus;
  EXPECT_GT(cpus, 0);
  EXPECT_LT(cpus, 1.5);
}

}  // namespace
}  // namespace profd
