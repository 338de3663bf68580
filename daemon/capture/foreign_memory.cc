// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/foreign_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/base/own_priority.h"
#include "daemon/base/signals_blocked.h"

namespace profd {
namespace {

// Memory may be readable up to the end of a page and not behind it.
constexpr uint64_t kPageBytes = 4096;
// A walk reads stacks one after the other, in 10 us each.
constexpr PriorityAllowance kReaderAllowance = {
    .at_once = std::chrono::milliseconds(100),
    .per_second = std::chrono::milliseconds(50)};

size_t ReadNow(uint32_t tid, uint64_t address, std::span<std::byte> out) {
  std::vector<iovec> remote;
  for (size_t done = 0; done < out.size();) {
    const uint64_t at = address + done;
    const size_t bytes =
        std::min<uint64_t>(kPageBytes - at % kPageBytes, out.size() - done);
    remote.push_back({.iov_base = reinterpret_cast<void*>(at),  // NOLINT
                      .iov_len = bytes});
    done += bytes;
  }
  const iovec local = {.iov_base = out.data(), .iov_len = out.size()};
  const ssize_t got = ::process_vm_readv(static_cast<pid_t>(tid), &local, 1,
                                         remote.data(), remote.size(), 0);
  return static_cast<size_t>(std::max<ssize_t>(got, 0));
}

}  // namespace

size_t ThreadMemory::ReadSome(ksym::Address address,
                              std::span<std::byte> out) const {
  // What a read costs besides its bytes.
  constexpr size_t kLeastBytes = 64;
  const size_t cost = std::max(out.size(), kLeastBytes);
  // From then on nothing, so that no part of something is taken for all.
  if (is_used_up_ || cost > bytes_left_) {
    is_used_up_ = true;
    return 0;
  }
  bytes_left_ -= cost;
  return ReadNow(tid_, address.value, out);
}

// Shared by the thread that reads and the one that asks. The former keeps it
// when it is left behind.
class ForeignMemory::Reader {
 public:
  // Null: there can be no more threads.
  static std::shared_ptr<Reader> Start() {
    auto reader = std::make_shared<Reader>();
    const SignalsBlocked blocked;
    try {
      std::thread([reader] { reader->Run(); }).detach();
    } catch (const std::system_error&) {
      return nullptr;
    }
    return reader;
  }

  // False: it is not done in time, and this is of no use any more; it counts in
  // `left_behind` for as long as it is at it.
  bool Do(std::function<void()> work,
          const std::shared_ptr<LeftBehind>& left_behind) {
    std::unique_lock lock(mutex_);
    work_ = std::move(work);
    changed_.notify_all();
    if (changed_.wait_for(lock, kPatience, [this] { return !work_; })) {
      return true;
    }
    ++*left_behind;
    left_behind_ = left_behind;
    stops_ = true;
    return false;
  }

  void Stop() {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
    changed_.notify_all();
  }

 private:
  void Run() {
    PriorityShare share(kReaderAllowance);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stops_ || work_; });
      if (!work_) return;
      // Nobody else touches the work meanwhile: the thread that asks waits
      // until there is none, or stops this.
      lock.unlock();
      share.Renew();
      work_();
      lock.lock();
      work_ = nullptr;
      changed_.notify_all();
      if (left_behind_) --*left_behind_;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, but for the call.
  bool stops_ = false;
  std::function<void()> work_;
  std::shared_ptr<LeftBehind> left_behind_;  // null: it is in time
};

ForeignMemory::ForeignMemory() : left_behind_(std::make_shared<LeftBehind>()) {}

ForeignMemory::~ForeignMemory() {
  if (reader_) reader_->Stop();
}

bool ForeignMemory::Run(std::function<void()> work) {
  if (*left_behind_ >= kMaxLeftBehind) return false;
  if (!reader_) reader_ = Reader::Start();
  if (!reader_) return false;
  if (reader_->Do(std::move(work), left_behind_)) return true;
  reader_ = nullptr;
  return false;
}

size_t ForeignMemory::Read(uint32_t tid, uint64_t address,
                           std::span<std::byte> out) {
  // The caller's buffer may be gone by the time that a late answer comes.
  struct Answer {
    std::vector<std::byte> bytes;
    size_t got = 0;
  };
  auto answer = std::make_shared<Answer>();
  answer->bytes.resize(out.size());
  if (!Run([=] { answer->got = ReadNow(tid, address, answer->bytes); })) {
    return 0;
  }
  std::copy_n(answer->bytes.begin(), answer->got, out.begin());
  return answer->got;
}

}  // namespace profd
