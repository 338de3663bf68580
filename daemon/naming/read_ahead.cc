// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/read_ahead.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "daemon/base/own_priority.h"
#include "daemon/base/signals_blocked.h"

namespace profd {
namespace {

// The kernel's whole listing is 30 to 50 ms of work.
constexpr PriorityAllowance kAllowance = {
    .at_once = std::chrono::milliseconds(200),
    .per_second = std::chrono::milliseconds(20)};

// Within it the kernel lists some 100 KiB.
constexpr std::chrono::microseconds kLookAgainAfter(700);

}  // namespace

std::unique_ptr<ksym::ByteStream> ReadAhead::Start(int fd) {
  const SignalsBlocked blocked;
  try {
    return std::unique_ptr<ksym::ByteStream>(new ReadAhead(fd));
  } catch (const std::system_error&) {
    return std::make_unique<ksym::FdStream>(fd);
  }
}

ReadAhead::ReadAhead(int fd) : source_(fd), bytes_(kBytes) {
  thread_ = std::thread([this] { Run(); });
}

ReadAhead::~ReadAhead() {
  stop_ = true;
  {
    const std::lock_guard lock(mutex_);
  }
  changed_.notify_all();
  thread_.join();
}

// False: nobody wants more.
bool ReadAhead::WaitForRoom(size_t written) {
  std::unique_lock lock(mutex_);
  changed_.wait(
      lock, [&] { return stop_ || kBytes - (written - taken_) >= kMinRoom; });
  return !stop_;
}

void ReadAhead::End(ksym::Status status) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    status_ = std::move(status);
  }
  changed_.notify_all();
}

void ReadAhead::Run() {
  const PriorityShare share(kAllowance);
  for (size_t written = 0; WaitForRoom(written);) {
    // One read of /proc/kallsyms gives a page at most.
    for (const size_t full = written + kMinRoom; written < full && !stop_;) {
      const size_t at = written % kBytes;
      const auto n = source_.Read(
          std::span(bytes_).subspan(at, std::min(full - written, kBytes - at)));
      if (!n || *n == 0) return End(n ? ksym::Status() : ksym::Fail(n.error()));
      written += *n;
      written_.store(written, std::memory_order_release);
    }
  }
}

ksym::Result<size_t> ReadAhead::Read(std::span<char> out) {
  if (out.empty()) return 0;
  std::unique_lock lock(mutex_);
  // Looks again and again rather than be woken: that would take the thread
  // some 50 us each time, on a virtual CPU.
  while (written_.load(std::memory_order_acquire) == taken_) {
    if (!ended_) {
      changed_.wait_for(lock, kLookAgainAfter, [&] { return ended_; });
    } else if (written_.load(std::memory_order_acquire) == taken_) {
      if (!status_) return ksym::Fail(status_.error());
      return 0;
    }
  }
  const size_t at = taken_ % kBytes;
  const size_t size =
      std::min({out.size(), written_.load() - taken_, kBytes - at});
  lock.unlock();
  std::memcpy(out.data(), bytes_.data() + at, size);
  lock.lock();
  taken_ += size;
  lock.unlock();
  changed_.notify_all();
  return size;
}

}  // namespace profd
