// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "ksym/base/result.h"

namespace profd {

// The reading end of a BPF ring buffer, as libbpf's ring_buffer is one. That
// maps the whole ring twice in a row, and all of it counts as this process's
// memory, twice; here 128 KiB around what is read are mapped, until the records
// leave them: mapping them for each call would cost more than reading. Not
// thread-safe.
class RingReader {
 public:
  // Opens a ring of that many bytes, a power of two and of pages. Consume()
  // borrows `map`; a reader that only skips may outlive the descriptor.
  static ksym::Result<RingReader> Open(int map, size_t bytes);
  RingReader(RingReader&& other) noexcept;
  RingReader& operator=(RingReader&& other) noexcept;
  ~RingReader();

  // A record's bytes; valid during the call only.
  using Handler = std::function<void(std::span<const std::byte> record)>;
  // Calls the handler with each record that is complete, in order, and frees
  // its space. Ends after a ring's worth, however fast others come. 2 us per
  // 128 KiB, beside what the handler takes. A record that there is no memory to
  // map for stays in the ring for the next call.
  void Consume(const Handler& handler);
  // Frees the space of all records that there are, complete or not, without
  // reading them. Some nanoseconds.
  void Skip();

 private:
  // The part of the ring that is mapped, by positions as the ring counts them.
  struct Window {
    std::byte* memory = nullptr;
    uint64_t begin = 0;
    size_t size = 0;
  };

  RingReader(int map, size_t bytes) : map_(map), bytes_(bytes) {}

  const std::byte* At(uint64_t position, uint64_t size);
  void CloseWindow();

  int map_ = -1;
  size_t bytes_ = 0;
  // Where the next record begins, ours to write; and where the last one ends.
  uint64_t* consumed_ = nullptr;
  const uint64_t* produced_ = nullptr;
  Window window_;
};

}  // namespace profd
