// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ksym/kernel/map_format.h"

namespace ksym {

// What one entry says.
struct MapEntryHead {
  uint32_t index = 0;  // of this entry in the map
  uint64_t address = 0;
  uint8_t explicit_type = 0;  // 0: the run's letter, with `upper`
  bool upper = false;
  bool prefixed = false;  // has a padding symbol prefix_distance before it
  bool gap = false;       // not a symbol: nothing lives from here on
};

// A block, decoded but for the names' tokens. By the entry's position in it.
struct MapBlock {
  // Case and padding as in the entry's value; what only an escape can say.
  static constexpr uint8_t kGap = 4;
  static_assert((kGap & (kEntryUpper | kEntryPrefixed)) == 0);

  uint32_t count = 0;  // entries
  // The first entry has the address of the entry before it.
  bool continues = false;
  std::array<uint64_t, kBlockEntries> addresses;
  // Where the entry's group begins to answer: its first entry's address, or
  // that of the entry's padding.
  std::array<uint64_t, kBlockEntries + 1> starts;  // then the next block's
  std::array<uint8_t, kBlockEntries> leaders;  // the group's first in the block
  std::array<uint8_t, kBlockEntries> flags;
  std::array<uint8_t, kBlockEntries> explicit_types;
  // Where the name's own tokens start.
  std::array<uint64_t, kBlockEntries> name_bits;
  // How many leading ones it shares with the name before: a byte for each
  // position, the lowest one first.
  uint64_t shared;
  static_assert(kBlockEntries <= sizeof shared);
};

// Where a reader of the entries stands: an entry and its block. A value; copy
// it to come back to the entry.
struct MapEntry : MapEntryHead {
  MapBlock block;

  // The block's first entry has the address of the entry before it.
  bool continues() const {
    return block.continues && index % kBlockEntries == 0;
  }
};

}  // namespace ksym
