// SPDX-License-Identifier: Apache-2.0
// Runs the real sampler in this kernel. Needs root, or CAP_BPF and
// CAP_PERFMON; skips otherwise.

#include "daemon/capture/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "daemon/perf/privileges.h"

namespace profd {
namespace {

using std::chrono::milliseconds;

// Burns time in a thread while it exists.
class Spinner {
 public:
  Spinner()
      : thread_([this] {
          while (!stop_) ++turns_;
        }) {}
  ~Spinner() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> turns_ = 0;
  std::thread thread_;
};

class CaptureTest : public testing::TestWithParam<StackStore> {
 protected:
  void SetUp() override {
    const auto allowed = CheckCapturePrivileges();
    if (!allowed) GTEST_SKIP() << allowed.error().message();
    options_.store = GetParam();
    options_.rate.frequency_hz = 999;
    options_.event = "cpu-clock";
  }

  static void ExpectBalanced(const Accounting& a) {
    EXPECT_EQ(a.taken, a.emitted + a.lost());
  }

  CaptureOptions options_;
};

// Over many drains every sample taken is emitted or counted as lost, and this
// process's own mappings come along.
TEST_P(CaptureTest, AccountsForEverySampleOfEachInterval) {
  auto capture = Capture::Start(options_);
  ASSERT_TRUE(capture) << capture.error().message();
  const Spinner spinner;
  ASSERT_TRUE(capture->Enable());
  uint64_t emitted = 0;
  bool saw_own_image = false;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(milliseconds(20));
    capture->Poll();
    const auto raw =
        i == 19 ? capture->Stop() : capture->Drain(Capture::kTablesPatience);
    ASSERT_TRUE(raw) << raw.error().message();
    ExpectBalanced(raw->accounting);
    uint64_t sum = 0;
    for (const RawSample& sample : raw->samples) sum += sample.count;
    EXPECT_EQ(sum, raw->accounting.emitted);
    emitted += sum;
    for (const auto& [id, image] : raw->images) {
      saw_own_image |= id.pid == static_cast<uint32_t>(::getpid()) &&
                       !image.mappings.empty();
    }
  }
  EXPECT_GT(emitted, 100u);
  EXPECT_TRUE(saw_own_image);
}

// With room for four counts nearly everything is lost, and all of it counted.
TEST_P(CaptureTest, CountsLossWhenTheCountsAreFull) {
  options_.bpf.count_entries = 4;
  options_.unwind = Unwind::kFramePointers;  // copied stacks count elsewhere
  options_.rate.frequency_hz = 10000;
  auto capture = Capture::Start(options_);
  ASSERT_TRUE(capture) << capture.error().message();
  const Spinner spinner;
  ASSERT_TRUE(capture->Enable());
  std::this_thread::sleep_for(milliseconds(300));
  const auto raw = capture->Stop();
  ASSERT_TRUE(raw) << raw.error().message();
  ExpectBalanced(raw->accounting);
  EXPECT_GT(raw->accounting
                .lost_by_cause[static_cast<size_t>(LossCause::kCountsFull)],
            0u);
  EXPECT_LE(raw->samples.size(), 4u);
}

// A depth limit cuts stacks off, and the samples that had one are counted.
TEST_P(CaptureTest, CountsTruncatedStacks) {
  options_.bpf.max_stack_depth = 1;
  // A walk of other programs may end sooner, in code that nothing describes.
  options_.bpf.pids = {static_cast<uint32_t>(::getpid())};
  auto capture = Capture::Start(options_);
  ASSERT_TRUE(capture) << capture.error().message();
  const Spinner spinner;
  ASSERT_TRUE(capture->Enable());
  std::this_thread::sleep_for(milliseconds(200));
  const auto raw = capture->Stop();
  ASSERT_TRUE(raw) << raw.error().message();
  ExpectBalanced(raw->accounting);
  EXPECT_GT(raw->accounting
                .damaged_by_cause[static_cast<size_t>(DamageCause::kTruncated)],
            0u);
  // The first instructions of a thread are in its outermost frame: that stack
  // of one frame is whole.
  for (const StackId id : raw->stacks.ids()) {
    const RawStack stack = raw->stacks.Get(id);
    EXPECT_EQ(stack.frames.size(), 1u);
    EXPECT_THAT(stack.end,
                testing::AnyOf(StackEnd::kDepthLimit, StackEnd::kOutermost));
  }
}

// Only the selected process is sampled.
TEST_P(CaptureTest, FiltersByProcess) {
  options_.bpf.pids = {static_cast<uint32_t>(::getpid())};
  auto capture = Capture::Start(options_);
  ASSERT_TRUE(capture) << capture.error().message();
  const Spinner spinner;
  ASSERT_TRUE(capture->Enable());
  std::this_thread::sleep_for(milliseconds(200));
  const auto raw = capture->Stop();
  ASSERT_TRUE(raw) << raw.error().message();
  EXPECT_FALSE(raw->samples.empty());
  for (const RawSample& sample : raw->samples) {
    EXPECT_EQ(sample.process.pid, static_cast<uint32_t>(::getpid()));
  }
}

std::string StoreName(const testing::TestParamInfo<StackStore>& store) {
  return store.param == StackStore::kExact ? "Exact" : "StackId";
}

INSTANTIATE_TEST_SUITE_P(Stores, CaptureTest,
                         testing::Values(StackStore::kExact,
                                         StackStore::kStackId),
                         StoreName);

// The kernel's whole BTF is not needed, which is what keeps memory small.
TEST(BpfObjectTest, LoadsWithAMinimalBtf) {
  const auto allowed = CheckCapturePrivileges();
  if (!allowed) GTEST_SKIP() << allowed.error().message();
  BpfConfig config;
  config.count_entries = 16;
  config.stack_entries = 16;
  config.ring_bytes = 4096;
  const auto sampler = BpfObject::Load(config);
  ASSERT_TRUE(sampler) << sampler.error().message();
  EXPECT_TRUE(sampler->used_minimal_btf());
}

// A ring buffer that is too small for the stacks loses samples, counted.
TEST(CaptureRingTest, CountsLossWhenTheRingIsFull) {
  const auto allowed = CheckCapturePrivileges();
  if (!allowed) GTEST_SKIP() << allowed.error().message();
  CaptureOptions options;
  options.store = StackStore::kExact;
  options.event = "cpu-clock";
  options.rate.frequency_hz = 20000;
  options.bpf.ring_bytes = 4096;
  options.bpf.stack_entries = 1;  // so that stacks are sent again
  auto capture = Capture::Start(options);
  ASSERT_TRUE(capture) << capture.error().message();
  const Spinner spinner;
  ASSERT_TRUE(capture->Enable());
  std::this_thread::sleep_for(milliseconds(300));
  const auto raw = capture->Stop();
  ASSERT_TRUE(raw) << raw.error().message();
  const Accounting& a = raw->accounting;
  EXPECT_EQ(a.taken, a.emitted + a.lost());
  EXPECT_GT(a.lost_by_cause[static_cast<size_t>(LossCause::kRingFull)], 0u);
}

bool IsReadable(int fd, milliseconds within) {
  pollfd entry = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(within.count())) == 1;
}

// A process that burns time while this exists.
class SpinningChild {
 public:
  SpinningChild() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile uint64_t turns = 0;;) turns = turns + 1;
  }
  ~SpinningChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

// While only what is known runs the bell is silent, though there are records in
// the ring. It rings for a process that has no tables yet.
TEST(CaptureBellTest, RingsForAProcessThatIsNew) {
  const auto allowed = CheckCapturePrivileges();
  if (!allowed) GTEST_SKIP() << allowed.error().message();
  CaptureOptions options;
  options.store = StackStore::kExact;
  options.event = "cpu-clock";
  options.rate.frequency_hz = 999;
  options.bpf.pids = {static_cast<uint32_t>(::getpid())};
  options.bpf.follow_children = true;
  auto capture = Capture::Start(options);
  ASSERT_TRUE(capture) << capture.error().message();
  if (capture->bell() < 0) GTEST_SKIP() << "stacks are not walked by tables";
  const Spinner spinner;
  ASSERT_TRUE(capture->Enable());
  const auto poll = [&] {
    capture->Poll();
    capture->BuildTables(milliseconds(12), SteadyClock::time_point::max());
  };
  // Until its own tables are there.
  const auto deadline = SteadyClock::now() + std::chrono::seconds(60);
  do {
    ASSERT_LT(SteadyClock::now(), deadline);
    std::this_thread::sleep_for(milliseconds(50));
    poll();
  } while (!capture->IsQuiet() || capture->IsBuildingTables());
  EXPECT_FALSE(IsReadable(capture->bell(), milliseconds(200)));
  const SpinningChild child;
  EXPECT_TRUE(IsReadable(capture->bell(), std::chrono::seconds(60)));
  poll();
  EXPECT_FALSE(capture->IsQuiet());
  ASSERT_TRUE(capture->Stop());
}

}  // namespace
}  // namespace profd
