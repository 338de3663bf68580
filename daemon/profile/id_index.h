// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace profd {

// Finds the number of a thing by its hash, which is a keyed one
// (ksym/base/keyed_hash.h), as others choose most things; the things themselves
// lie in the owner's array, in the order of their numbers. Open addressing, 8
// bytes per slot, at most three quarters full; one allocation, no node per
// element.
class IdIndex {
 public:
  // The number of the element with this hash for which `equal(id)` is true.
  // When there is none, `next_id` is entered and returned with `true`: the
  // caller then appends the element. next_id < 2^32 - 1.
  template <typename Equal>
  std::pair<uint32_t, bool> FindOrInsert(uint64_t hash, uint32_t next_id,
                                         const Equal& equal) {
    if (used_ + used_ / 3 >= slots_.size()) Grow();
    const uint32_t tag = TagOf(hash);
    const size_t mask = slots_.size() - 1;
    size_t at = tag & mask;
    for (; slots_[at].id_plus_one != 0; at = (at + 1) & mask) {
      const uint32_t id = slots_[at].id_plus_one - 1;
      if (slots_[at].tag == tag && equal(id)) return {id, false};
    }
    slots_[at] = {.tag = tag, .id_plus_one = next_id + 1};
    ++used_;
    return {next_id, true};
  }

  // The same without entering anything.
  template <typename Equal>
  std::optional<uint32_t> Find(uint64_t hash, const Equal& equal) const {
    if (slots_.empty()) return std::nullopt;
    const uint32_t tag = TagOf(hash);
    const size_t mask = slots_.size() - 1;
    for (size_t at = tag & mask; slots_[at].id_plus_one != 0;
         at = (at + 1) & mask) {
      const uint32_t id = slots_[at].id_plus_one - 1;
      if (slots_[at].tag == tag && equal(id)) return id;
    }
    return std::nullopt;
  }

  size_t memory_bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  // The high half of the product depends on all bits of the hash.
  static uint32_t TagOf(uint64_t hash) {
    return static_cast<uint32_t>((hash * 0xff51afd7ed558ccdu) >> 32);
  }

  struct Slot {
    uint32_t tag = 0;
    uint32_t id_plus_one = 0;  // 0: free
  };

  void Grow() {
    std::vector<Slot> old(std::max<size_t>(slots_.size() * 2, 16));
    std::swap(old, slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.id_plus_one == 0) continue;
      size_t at = slot.tag & mask;
      while (slots_[at].id_plus_one != 0) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, or none
  size_t used_ = 0;
};

}  // namespace profd
