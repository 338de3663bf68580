// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/base/result.h"

namespace profd {

// Reads a descriptor in a thread of its own, up to kBytes ahead of who wants
// the bytes: reading /proc/kallsyms is work of the kernel, which another CPU
// can do while this one parses. The thread takes no signals. For files whose
// reads end soon: the destructor waits for the one that is under way.
//
// Read and the destructor are called on one thread.
class ReadAhead final : public ksym::ByteStream {
 public:
  // Borrows the descriptor. Where no thread can be had, reads without one.
  static std::unique_ptr<ksym::ByteStream> Start(int fd);

  ~ReadAhead() override;
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // The file's bytes, then its end or the error that ended it, once more at
  // each call.
  ksym::Result<size_t> Read(std::span<char> out) override;

 private:
  static constexpr size_t kBytes = size_t{128} * 1024;
  // The thread goes on only where it has so much room, so that it does not
  // wait after every read.
  static constexpr size_t kMinRoom = kBytes / 4;

  explicit ReadAhead(int fd);
  void Run();
  bool WaitForRoom(size_t written);
  void End(ksym::Status status);

  ksym::FdStream source_;  // the thread's
  // A ring: byte i of the file is at i % kBytes. Those from taken_ up to
  // written_ are the reader's, the others the thread's.
  std::vector<char> bytes_;
  std::atomic<size_t> written_ = 0;  // by the thread alone
  std::atomic<bool> stop_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  size_t taken_ = 0;
  bool ended_ = false;
  ksym::Status status_;  // how it ended

  std::thread thread_;
};

}  // namespace profd
