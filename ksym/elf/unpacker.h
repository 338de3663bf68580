// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ksym {

// The decoder of one format of compressed sections. Holds the library's state:
// tens of kilobytes for zlib; for Zstandard the frame's window, of at most
// 128 MiB, of which only what is written takes memory.
class Unpacker {
 public:
  // By ch_type in Elf32_Chdr and Elf64_Chdr: zlib's format (ELFCOMPRESS_ZLIB)
  // or Zstandard's (ELFCOMPRESS_ZSTD). Null for another one, or without memory.
  static std::unique_ptr<Unpacker> OfType(uint32_t type);
  static bool Knows(uint32_t type);

  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  virtual ~Unpacker() = default;

  // Appends what the next `packed` bytes hold to `text`, which stays within
  // max_bytes. False when they are malformed or hold more.
  virtual bool Append(std::span<const std::byte> packed, size_t max_bytes,
                      std::string& text) = 0;
  // Whether what was appended is whole.
  virtual bool at_end() const = 0;
};

}  // namespace ksym
