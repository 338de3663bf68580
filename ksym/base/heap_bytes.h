// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <utility>

namespace ksym {

// Bytes on the heap whose number changes without a copy: the allocator moves
// large blocks by their pages. Room that is not written to is no memory yet.
// Running out of memory throws std::bad_alloc.
class HeapBytes {
 public:
  HeapBytes() = default;
  explicit HeapBytes(std::span<const std::byte> bytes) {
    Resize(bytes.size());
    if (!bytes.empty()) std::memcpy(data_, bytes.data(), bytes.size());
  }
  HeapBytes(HeapBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  HeapBytes& operator=(HeapBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~HeapBytes() { std::free(data_); }

  // New elements have no values yet. Gives memory back, too; pointers into the
  // bytes are no longer valid.
  void Resize(size_t size) {
    // Asked for zero bytes realloc would free the block and return null.
    void* moved = std::realloc(data_, size > 0 ? size : 1);
    if (moved == nullptr) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(moved);
    size_ = size;
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::byte* begin() { return data_; }
  std::byte* end() { return data_ + size_; }
  const std::byte* begin() const { return data_; }
  const std::byte* end() const { return data_ + size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ksym
