// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/kernel/map_entry.h"
#include "ksym/kernel/map_format.h"
#include "ksym/kernel/map_sections.h"
#include "ksym/kernel/prefix_code.h"

namespace ksym {

// The names of a compact map's entries: tokens into text. A value, which does
// not keep the map: each call gets it.
class MapNames {
 public:
  // For a map without entries: nothing may be rendered.
  MapNames() = default;
  // Checks the token code and all classes of tokens; kCorrupt. O(tokens).
  static Result<MapNames> Make(const MapSections& map);

  // Allocated.
  size_t memory_bytes() const { return items_.size() * sizeof(items_[0]); }
  // Room for Render: it writes whole words past the name's end.
  static size_t Room(const MapSections& map) {
    return size_t{map.header().max_name_bytes} + kMaxTokenText + 8;
  }
  // Writes the entry's name to `out`, which has Room() bytes. An empty view for
  // a damaged name.
  std::string_view Render(const MapSections& map, const MapEntry& entry,
                          char* out) const;

 private:
  class TokenPlaces;
  // The tokens of one rank of the token code, in eight bytes.
  struct TokenItem {
    uint32_t first_bit;  // of the first one's text
    uint16_t text_bits;  // of each
    uint8_t length_and_width;
    uint8_t end_and_index_bits;

    TokenItem(const TokenClass& own, uint32_t rank_in_class);
    uint32_t text_length() const { return length_and_width & 63; }
    CharWidth width() const { return CharWidth(length_and_width >> 6); }
    TokenEnd end() const { return TokenEnd(end_and_index_bits & 7); }
    uint32_t index_bits() const { return end_and_index_bits >> 3; }
  };
  static_assert(sizeof(TokenItem) == 8 && kMaxTokenText < 64 &&
                kTokenEndCount <= 8 && kMaxIndexBits < 32);

  void MakeItems(const MapSections& map);

  // A word is as long as with the bits that follow it.
  PrefixDecoder code_;
  std::vector<TokenItem> items_;  // by rank of the code
};

}  // namespace ksym
