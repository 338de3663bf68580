#include "daemon/profile/read_ahead.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

namespace profd {
namespace {

// Blocks all signals of the calling thread for as long as it lives; a thread
// started meanwhile has them blocked for good.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_ = {};
};

}  // namespace

std::unique_ptr<ksym::ByteStream> ReadAhead::Start(int fd) {
  const SignalsBlocked blocked;
  try {
    return std::unique_ptr<ksym::ByteStream>(new ReadAhead(fd));
  } catch (const std::system_error&) {
    return std::make_unique<ksym::FdStream>(fd);
  }
}

ReadAhead::ReadAhead(int fd) : source_(fd) {
  for (Chunk& chunk : chunks_) chunk.bytes.resize(kChunkBytes);
  thread_ = std::thread([this] { Run(); });
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool ReadAhead::stopping() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void ReadAhead::Fill(Chunk& chunk) {
  chunk.used = 0;
  // One read of /proc/kallsyms gives a page at most.
  while (chunk.used < chunk.bytes.size() && !stopping()) {
    const auto n = source_.Read(std::span(chunk.bytes).subspan(chunk.used));
    if (!n) chunk.status = ksym::Fail(n.error());
    chunk.is_last = !n || *n == 0;
    if (chunk.is_last) return;
    chunk.used += *n;
  }
}

void ReadAhead::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || filled_ - taken_ < kChunks; });
    if (stop_) return;
    Chunk& chunk = chunks_[filled_ % kChunks];
    lock.unlock();
    Fill(chunk);
    const bool is_last = chunk.is_last;
    lock.lock();
    ++filled_;
    changed_.notify_all();
    if (is_last) return;
  }
}

ksym::Result<size_t> ReadAhead::Read(std::span<char> out) {
  if (out.empty()) return 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return filled_ > taken_; });
    Chunk& chunk = chunks_[taken_ % kChunks];
    const size_t size = std::min(out.size(), chunk.used - read_);
    if (size > 0) {
      lock.unlock();
      std::memcpy(out.data(), chunk.bytes.data() + read_, size);
      read_ += size;
      return size;
    }
    if (chunk.is_last) {
      if (!chunk.status) return ksym::Fail(chunk.status.error());
      return 0;
    }
    read_ = 0;
    ++taken_;
    changed_.notify_all();
  }
}

}  // namespace profd
