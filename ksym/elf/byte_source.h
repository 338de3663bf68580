#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace ksym {

// Where an ELF image's bytes come from: a descriptor that is read with
// pread(2), or memory (the vdso, a decompressed section). Never a mapping: a
// profiled process could truncate its file and kill the reader with SIGBUS.
// Owns what it reads from. Move-only.
class ByteSource {
 public:
  // `size` is the file's as fstat(2) gave it; no byte past it is read.
  static ByteSource OfFile(UniqueFd fd, uint64_t size);
  static ByteSource OfMemory(std::string bytes);

  uint64_t size() const { return size_; }
  // -1 when the bytes are in memory.
  int fd() const { return fd_.get(); }
  UniqueFd TakeFd() && { return std::move(fd_); }
  // The bytes in memory; none of a file.
  std::string TakeText() && { return std::move(memory_); }
  size_t memory_bytes() const { return memory_.capacity(); }

  // Fills `out` with the bytes from `offset` on; kCorrupt when the source has
  // fewer, also when a file was truncated in the meantime.
  Status ReadAt(uint64_t offset, std::span<std::byte> out) const;
  // As many bytes as there are from `offset` on, at most out.size(): for a
  // text whose end is not known.
  Result<size_t> ReadSomeAt(uint64_t offset, std::span<std::byte> out) const;

 private:
  ByteSource(UniqueFd fd, std::string memory, uint64_t size)
      : fd_(std::move(fd)), memory_(std::move(memory)), size_(size) {}

  UniqueFd fd_;
  std::string memory_;
  uint64_t size_ = 0;
};

}  // namespace ksym
