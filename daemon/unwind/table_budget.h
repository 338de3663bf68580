// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "daemon/base/steady_clock.h"

namespace profd {

// The bounds of unwind tables, and which of them goes when there are too many.
// Pure.

// Something that has room which others may need.
struct RoomHolder {
  bool can_go = false;
  SteadyClock::time_point used;  // last
};
// The one that can go, was used not after `before`, and was not used for
// longest; of equals the first. Nothing: there is none.
std::optional<size_t> LongestUnused(
    std::span<const RoomHolder> holders,
    SteadyClock::time_point before = SteadyClock::time_point::max());

// Whether the table of a file of so many bytes, begun now, is there and placed
// before the deadline, at an upper end of what that takes.
bool IsReadyBefore(SteadyClock::time_point deadline,
                   SteadyClock::time_point now, uint64_t file_bytes);

// The bounds of the tables' own administration; the tables are bounded by the
// maps.
struct TableBounds {
  // Anybody can map any number of files; some 600 bytes each. Code in those
  // beyond has no table.
  size_t files = size_t{1} << 15;
  // Rows that this process keeps for copied stacks, beside those that the
  // sampler has.
  uint64_t row_bytes = uint64_t{48} << 20;
};

// Counts the tables that are built before anybody needs them.
class ExpectedTables {
 public:
  static constexpr size_t kMaxFiles = 64;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  bool is_full() const { return files_ >= kMaxFiles; }
  bool HasRoomFor(uint64_t bytes) const {
    return !is_full() && bytes <= kMaxBytes - bytes_;
  }
  // If HasRoomFor() them.
  void Add(uint64_t bytes) {
    ++files_;
    bytes_ += bytes;
  }

 private:
  size_t files_ = 0;  // ever
  uint64_t bytes_ = 0;
};

}  // namespace profd
