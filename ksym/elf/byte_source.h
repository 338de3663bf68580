// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/result.h"
#include "ksym/base/trust.h"
#include "ksym/base/unique_fd.h"

namespace ksym {

// Where an ELF image's bytes come from: a descriptor that is read with
// pread(2), or memory (the vdso, a decompressed section). A file is not mapped
// unless that is asked for: a profiled process could truncate its file and kill
// the reader with SIGBUS. Owns what it reads from. Move-only.
class ByteSource {
 public:
  // What the descriptor itself cannot tell where it is that of a copy.
  struct Origin {
    std::optional<FileOwner> owner = {};    // of the file
    std::shared_ptr<const void> room = {};  // lives as long as the source
  };
  // `size` is the file's as fstat(2) gave it; no byte past it is read.
  static ByteSource OfFile(UniqueFd fd, uint64_t size) {
    return OfFile(std::move(fd), size, Origin());
  }
  static ByteSource OfFile(UniqueFd fd, uint64_t size, Origin origin);
  static ByteSource OfMemory(std::string bytes);
  // A file of which little is needed here and there: see MappedFile for when
  // one may be mapped. Fails as mmap(2) does.
  static Result<ByteSource> OfMappedFile(UniqueFd fd, uint64_t size);

  // The file's bytes, if it is mapped, else null. They may be more or fewer
  // than size() if the file changed.
  const std::shared_ptr<const MappedFile>& mapping() const { return mapping_; }

  uint64_t size() const { return size_; }
  // The file's owner; fails where the bytes are in memory.
  Result<FileOwner> owner() const;
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
  ByteSource(UniqueFd fd, std::string memory, uint64_t size, Origin origin)
      : fd_(std::move(fd)),
        memory_(std::move(memory)),
        size_(size),
        origin_(std::move(origin)) {}

  UniqueFd fd_;
  std::string memory_;
  uint64_t size_ = 0;
  std::shared_ptr<const MappedFile> mapping_;
  Origin origin_;
};

}  // namespace ksym
