// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace profd {

// The slot of a key among so many that hold the keys of last time, in front of
// a table. It has no secret: somebody who makes keys share a slot has each of
// them looked up in the table, once and not longer than others.
constexpr size_t RecentSlot(uint64_t key, size_t slots) {
  uint64_t hash = key * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
  return hash % slots;
}

}  // namespace profd
