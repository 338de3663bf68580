// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/keyed_hash.h"

namespace ksym {

// Memory of a process that is looked into. What is there may be anything, and
// may be something else at the next call.
class Memory {
 public:
  virtual ~Memory() = default;
  // Fills `out` with the bytes from the address on, as far as they can be read
  // without a gap; returns how many.
  virtual size_t ReadSome(Address address, std::span<std::byte> out) const = 0;
  // All of them, or false.
  bool Read(Address address, std::span<std::byte> out) const {
    return ReadSome(address, out) == out.size();
  }
  // A number, or an array of some.
  template <typename T>
  bool ReadValue(Address address, T& value) const {
    return Read(address, std::as_writable_bytes(std::span(&value, 1)));
  }
};

// Keeps pages of another memory, for tables that are read word by word. What is
// there must not change meanwhile. Borrows the other one. Not thread-safe.
class CachedMemory final : public Memory {
 public:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kMaxPages = 2048;  // then nothing more is read

  explicit CachedMemory(const Memory& memory) : memory_(memory) {}
  size_t ReadSome(Address address, std::span<std::byte> out) const override;

 private:
  const std::vector<std::byte>* PageAt(uint64_t number) const;

  const Memory& memory_;
  // The bytes of a page that could be read, by its number.
  mutable std::unordered_map<uint64_t, std::vector<std::byte>, NumberHash>
      pages_;
};

// Pieces that were copied out of a process. Borrows the bytes.
class PieceMemory final : public Memory {
 public:
  void Add(Address address, std::span<const std::byte> bytes) {
    if (!bytes.empty()) pieces_.push_back({address, bytes});
  }
  size_t ReadSome(Address address, std::span<std::byte> out) const override;

 private:
  struct Piece {
    Address address;
    std::span<const std::byte> bytes;
  };
  std::vector<Piece> pieces_;
};

}  // namespace ksym
