// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/foreign_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
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

  // Nothing: it did not come in time, and this is of no use any more.
  std::optional<size_t> Read(uint32_t tid, uint64_t address,
                             std::span<std::byte> out) {
    std::unique_lock lock(mutex_);
    // The caller's buffer may be gone by the time that a late answer comes.
    bytes_.resize(out.size());
    tid_ = tid;
    address_ = address;
    is_asked_ = true;
    changed_.notify_all();
    if (!changed_.wait_for(lock, kPatience, [this] { return !is_asked_; })) {
      return std::nullopt;
    }
    std::copy_n(bytes_.begin(), got_, out.begin());
    return got_;
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
      changed_.wait(lock, [this] { return stops_ || is_asked_; });
      if (stops_) return;
      // Nobody else touches the buffer meanwhile: the thread that asks waits
      // until is_asked_ is false, or stops this.
      lock.unlock();
      share.Renew();
      const size_t got = ReadNow(tid_, address_, bytes_);
      lock.lock();
      got_ = got;
      is_asked_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, but for what is read and written while is_asked_.
  bool stops_ = false;
  bool is_asked_ = false;
  uint32_t tid_ = 0;
  uint64_t address_ = 0;
  std::vector<std::byte> bytes_;
  size_t got_ = 0;
};

ForeignMemory::ForeignMemory() = default;

ForeignMemory::~ForeignMemory() {
  if (reader_) reader_->Stop();
}

size_t ForeignMemory::Read(uint32_t tid, uint64_t address,
                           std::span<std::byte> out) {
  if (given_up_ == kMaxGivenUp) return 0;
  if (!reader_) reader_ = Reader::Start();
  if (!reader_) return 0;
  const auto got = reader_->Read(tid, address, out);
  if (got) return *got;
  reader_->Stop();
  reader_ = nullptr;
  ++given_up_;
  return 0;
}

}  // namespace profd
