// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/profile/id_index.h"
#include "daemon/profile/profile.h"

namespace profd {

// The frames of addresses that were named before, of one address space: in a
// profile of 100,000 stacks some hundred addresses come two million times.
class FrameCache {
 public:
  // Where a frame stands on its stack decides what is looked up for it.
  enum class Place : uint8_t { kNone, kLeaf, kCaller };

  // The frame of `address`, which `name()` makes when it is not known yet.
  template <typename Name>
  FrameId Find(uint64_t address, Place place, const Name& name) {
    const uint64_t hash = MixHash(static_cast<uint64_t>(place), address);
    Entry& recent = recent_[hash % kRecent];
    if (!recent.Is(address, place)) {
      recent = FindAmongAll(hash, address, place, name);
    }
    return recent.frame;
  }

 private:
  struct Entry {
    uint64_t address = 0;
    FrameId frame = 0;
    Place place = Place::kNone;

    bool Is(uint64_t other, Place other_place) const {
      return address == other && place == other_place;
    }
  };

  template <typename Name>
  Entry FindAmongAll(uint64_t hash, uint64_t address, Place place,
                     const Name& name) {
    const auto [id, is_new] = ids_.FindOrInsert(
        hash, static_cast<uint32_t>(entries_.size()),
        [&](uint32_t other) { return entries_[other].Is(address, place); });
    if (is_new) entries_.push_back({address, name(), place});
    return entries_[id];
  }

  static constexpr size_t kRecent = 64;

  // By hash: what is looked for most is found without a search.
  std::array<Entry, kRecent> recent_;
  std::vector<Entry> entries_;
  IdIndex ids_;
};

}  // namespace profd
