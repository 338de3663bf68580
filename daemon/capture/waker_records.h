// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "bpf/profile_abi.h"
#include "bpf/waiting_abi.h"

namespace profd {

// The wakers of threads, from the sampler's records. A thread may go on in an
// interval after the one in which it was woken, so those of an interval stay
// for the next one. Not thread-safe.
class WakerRecords {
 public:
  // Ignores a record that is too short. Its set is below PROFILE_SETS.
  void Add(const waker_record& record, size_t bytes) {
    if (bytes < sizeof(record)) return;
    Add(record.header.set, record.id, record.key);
  }
  // One whose stack was walked in user space.
  void Add(uint32_t set, uint64_t id, const profile_key& key) {
    wakers_[set].try_emplace(id, key);
  }
  // The waker that a sample of that set names; null: it is not known.
  const profile_key* Find(uint32_t set, uint64_t id) const {
    for (const auto* wakers : {&wakers_[set], &earlier_}) {
      const auto found = wakers->find(id);
      if (found != wakers->end()) return &found->second;
    }
    return nullptr;
  }
  bool HasAny(uint32_t set) const { return !wakers_[set].empty(); }
  // The set was drained.
  void EndInterval(uint32_t set) { earlier_ = std::exchange(wakers_[set], {}); }

 private:
  using Wakers = std::unordered_map<uint64_t, profile_key>;
  std::array<Wakers, PROFILE_SETS> wakers_;
  Wakers earlier_;
};

}  // namespace profd
