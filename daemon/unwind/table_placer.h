// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "daemon/unwind/table_file.h"
#include "daemon/unwind/unwind_maps.h"

namespace profd {

// Puts files' tables into the sampler's maps, whole where there is a shard with
// room and in pieces otherwise, and takes them out.
class TablePlacer {
 public:
  // `meanwhile` is called before each piece. Both outlive this.
  TablePlacer(UnwindMaps& maps, const std::function<void()>& meanwhile)
      : maps_(maps), meanwhile_(meanwhile) {}

  // Whether Place() waits for nothing now; see UnwindMaps::PrepareRoom().
  bool PrepareRoom(TableFile& file);
  // All of the file's rows, or nothing: false, there is no room.
  bool Place(TableFile& file);
  // The slots that it had.
  uint64_t Drop(TableFile& file);

  // Bytes that all tables have in the maps now.
  uint64_t bytes() const { return bytes_; }
  // Why the kernel refused something last; empty: it did not.
  const std::string& refusal() const { return refusal_; }

 private:
  bool PlacePieces(TableFile& file, size_t max_slots, uint64_t begin);

  UnwindMaps& maps_;
  const std::function<void()>& meanwhile_;
  uint64_t bytes_ = 0;
  std::string refusal_;
};

}  // namespace profd
