// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace ksym {

// Appends numbers to bytes that it owns, in either byte order.
class ByteWriter {
 public:
  explicit ByteWriter(std::endian order = std::endian::little)
      : order_(order) {}

  size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> Take() && { return std::move(bytes_); }
  void Clear() { bytes_.clear(); }
  void Reserve(size_t size) { bytes_.reserve(size); }

  template <std::unsigned_integral T>
  void Write(T value) {
    WriteSized(value, sizeof(T));
  }

  // The low `size` bytes, at most 8.
  void WriteSized(uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      const size_t byte = order_ == std::endian::little ? i : size - 1 - i;
      bytes_.push_back(static_cast<std::byte>(value >> (8 * byte)));
    }
  }

  void WriteUleb128(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<std::byte>(value | 0x80u));
      value >>= 7;
    }
    bytes_.push_back(static_cast<std::byte>(value));
  }

  void WriteSleb128(int64_t value) {
    while (value < -0x40 || value >= 0x40) {
      bytes_.push_back(static_cast<std::byte>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<std::byte>(value & 0x7f));
  }

  void WriteBytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void WriteText(std::string_view text) {
    WriteBytes(std::as_bytes(std::span(text)));
  }

  // Zeros up to the next multiple.
  void Align(size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }

  // Overwrites four bytes that are there.
  void SetWord(size_t offset, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) {
      const size_t byte = order_ == std::endian::little ? i : 3 - i;
      bytes_[offset + i] = static_cast<std::byte>(value >> (8 * byte));
    }
  }

 private:
  std::vector<std::byte> bytes_;
  std::endian order_;
};

}  // namespace ksym
