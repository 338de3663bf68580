// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace profd {

// Hands out runs of slots of a fixed number of them. A run that is freed can be
// handed out again after the next Recycle(): until then a program that is
// running may still read it. Not thread-safe. O(free runs).
class SlotSpace {
 public:
  explicit SlotSpace(uint32_t slots) {
    if (slots > 0) free_[0] = slots;
  }

  // The longest run that there is.
  uint32_t Longest() const;
  // The first slot of the run; nothing when no run is that long. count > 0.
  std::optional<uint32_t> Take(uint32_t count);
  void Free(uint32_t first, uint32_t count);
  // Slots that were taken and never used can be handed out at once.
  void Return(uint32_t first, uint32_t count) { Insert(first, count); }
  // No program can still read what was freed before.
  void Recycle();

 private:
  void Insert(uint32_t first, uint32_t count);

  std::map<uint32_t, uint32_t> free_;  // first -> count; never adjacent
  std::vector<std::pair<uint32_t, uint32_t>> waiting_;
};

}  // namespace profd
