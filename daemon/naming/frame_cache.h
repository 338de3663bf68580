// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/naming/recent_slot.h"
#include "daemon/profile/id_index.h"
#include "daemon/profile/profile.h"
#include "ksym/base/keyed_hash.h"

namespace profd {

// The frames of addresses that were named before: in a profile of 100,000
// stacks some hundred addresses come two million times.
class FrameCache {
 public:
  // Where a frame stands on its stack decides what is looked up for it.
  enum class Place : uint8_t { kNone, kLeaf, kCaller };
  struct Key {
    uint64_t address = 0;
    uint64_t where = 0;

    // In the address space of that number, from 1 on: no key is the empty one.
    static Key Of(uint64_t address, uint32_t space, Place place) {
      return {address, uint64_t{space} << 2 | static_cast<uint64_t>(place)};
    }
    friend bool operator==(const Key&, const Key&) = default;
  };

  // The frame of `key`, which `name()` makes when it is not known yet.
  template <typename Name>
  FrameId Find(const Key& key, const Name& name) {
    Entry& recent = recent_[RecentSlot(key.where ^ key.address, kRecent)];
    if (recent.key != key) recent = FindAmongAll(key, name);
    return recent.frame;
  }

 private:
  struct Entry {
    Key key;
    FrameId frame = 0;
  };

  // Apart, so that the callers' loops have but the common case in them.
  template <typename Name>
  [[gnu::noinline]] Entry FindAmongAll(const Key& key, const Name& name) {
    const auto [id, is_new] = ids_.FindOrInsert(
        ksym::HashWords(key.where, key.address),
        static_cast<uint32_t>(entries_.size()),
        [&](uint32_t other) { return entries_[other].key == key; });
    if (is_new) entries_.push_back({key, name()});
    return entries_[id];
  }

  static constexpr size_t kRecent = 1024;

  // The frames that are looked for most, found without a search.
  std::array<Entry, kRecent> recent_;
  std::vector<Entry> entries_;
  IdIndex ids_;
};

}  // namespace profd
