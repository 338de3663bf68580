// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "daemon/unwind/slot_space.h"
#include "daemon/unwind/unwind_maps.h"

namespace profd {

// Maps in this process: shards with so many slots, and lists. As with those of
// the kernel, what is taken back is room after Recycle() only.
class FakeMaps final : public UnwindMaps {
 public:
  uint64_t max_slots() const override {
    return uint64_t{shard_slots} * max_shards;
  }
  uint32_t max_entries() const override { return entry_limit; }

  ksym::Result<std::optional<Place>> Add(const UnwindPiece& piece) override {
    if (adds_that_work == 0)
      return ksym::Fail(ksym::ErrorCode::kIo, "no memory");
    const auto count = static_cast<uint32_t>(piece.slots());
    for (uint32_t shard = 0; shard < max_shards; ++shard) {
      if (shard == shards_.size()) shards_.emplace_back(shard_slots);
      const auto first = shards_[shard].Take(count);
      if (!first) continue;
      if (adds_that_work > 0) --adds_that_work;
      used += count;
      return Place{.shard = shard, .first = *first, .count = count};
    }
    return std::nullopt;
  }
  void FreeSlots(const Place& place) override {
    shards_.at(place.shard).Free(place.first, place.count);
    freed_ += place.count;
  }
  bool PrepareRoom(std::span<const uint32_t> pieces) override {
    prepared.assign(pieces.begin(), pieces.end());
    return room_is_ready;
  }

  ksym::Result<bool> Publish(const ksym::ProcessId& process,
                             const List& list) override {
    if (publishing_fails) return ksym::Fail(ksym::ErrorCode::kIo, "no list");
    const auto& mappings = list.mappings;
    if (mappings.size() + 1 > entry_limit) return false;
    if (!lists.contains(process) && lists.size() + withdrawn_ >= list_limit) {
      return false;
    }
    lists[process].assign(mappings.begin(), mappings.end());
    with_runtime.erase(process);
    if (list.has_runtime) with_runtime.insert(process);
    ++published;
    return true;
  }
  void Withdraw(const ksym::ProcessId& process) override {
    withdrawn_ += lists.erase(process);
  }

  void Recycle() override {
    for (SlotSpace& shard : shards_) shard.Recycle();
    used -= std::exchange(freed_, 0);
    withdrawn_ = 0;
  }

  // To be set before the first Add().
  uint32_t shard_slots = 10'000;
  uint32_t max_shards = 1;
  uint32_t entry_limit = 1000;  // of a list, with its header
  size_t list_limit = 100;

  int adds_that_work = -1;  // then the kernel refuses; negative: all
  bool publishing_fails = false;

  uint64_t used = 0;               // slots, with those that wait for Recycle()
  std::vector<uint32_t> prepared;  // slots of the last pieces
  bool room_is_ready = true;
  std::map<ksym::ProcessId, std::vector<unwind_mapping>> lists;
  std::set<ksym::ProcessId> with_runtime;
  int published = 0;

 private:
  std::vector<SlotSpace> shards_;
  uint64_t freed_ = 0;
  size_t withdrawn_ = 0;
};

}  // namespace profd
