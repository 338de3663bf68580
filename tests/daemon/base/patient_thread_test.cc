// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/patient_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace profd {
namespace {

constexpr PatientThread::Options kShort = {
    .patience = std::chrono::milliseconds(50), .max_left_behind = 2};

// What a test lets go on when it likes.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = false;

  void Open() {
    const std::scoped_lock lock(mutex);
    is_open = true;
    changed.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return is_open; });
  }
};

// Work is done in another thread, one piece after the other in the same.
TEST(PatientThreadTest, DoesWork) {
  PatientThread thread(
      {.patience = std::chrono::seconds(20), .max_left_behind = 1});
  auto first = std::make_shared<std::thread::id>();
  auto second = std::make_shared<std::thread::id>();
  EXPECT_TRUE(thread.Run([=] { *first = std::this_thread::get_id(); }));
  EXPECT_TRUE(thread.Run([=] { *second = std::this_thread::get_id(); }));
  EXPECT_EQ(*first, *second);
  EXPECT_NE(*first, std::this_thread::get_id());
}

// So many threads that hang are left behind; then nothing is begun until one
// has come back.
TEST(PatientThreadTest, LeavesThreadsBehind) {
  auto gate = std::make_shared<Gate>();
  PatientThread thread(kShort);
  for (int i = 0; i < kShort.max_left_behind; ++i) {
    EXPECT_FALSE(thread.Run([=] { gate->Wait(); }));
  }
  auto begun = std::make_shared<bool>(false);
  EXPECT_FALSE(thread.Run([=] { *begun = true; }));
  EXPECT_FALSE(*begun);
  gate->Open();
  bool is_done = false;
  for (int i = 0; i < 2000 && !is_done; ++i) {
    is_done = thread.Run([] {});
    if (!is_done) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace profd
