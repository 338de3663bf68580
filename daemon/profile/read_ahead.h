#pragma once

#include <array>
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

// Reads a descriptor in a thread of its own, some 500 KiB ahead of who wants
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
  // To wake a thread takes some 50 us on a virtual CPU: not too often.
  static constexpr size_t kChunkBytes = size_t{256} * 1024;
  static constexpr size_t kChunks = 3;

  struct Chunk {
    std::vector<char> bytes;
    size_t used = 0;
    // Nothing comes after this chunk: its end is the file's, or the error's.
    bool is_last = false;
    ksym::Status status;
  };

  explicit ReadAhead(int fd);
  void Run();
  void Fill(Chunk& chunk);
  bool stopping();

  ksym::FdStream source_;  // the thread's
  // Chunk i % kChunks is the thread's until filled_ is above i, then the
  // reader's until taken_ is.
  std::array<Chunk, kChunks> chunks_;
  size_t read_ = 0;  // bytes that the reader has of chunk taken_

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  size_t filled_ = 0;
  size_t taken_ = 0;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace profd
