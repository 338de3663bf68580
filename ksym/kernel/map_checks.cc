// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/map_checks.h"

#include <cstddef>
#include <cstdint>

namespace ksym {
namespace {

Status CheckBlocks(const MapSections& map) {
  const size_t fine_bytes = map.header().fine_offset_bytes;
  if (fine_bytes != sizeof(uint16_t) && fine_bytes != sizeof(uint32_t)) {
    return DamagedMap("size of the block offsets");
  }
  const size_t count = map.block_count();
  const size_t whole_count = (count + kBlocksPerOffset - 1) / kBlocksPerOffset;
  if (map.CountOf<uint32_t>(MapSectionId::kBlockStarts) < count ||
      map.CountOf<uint32_t>(MapSectionId::kWholeOffsets) < whole_count ||
      map.section(MapSectionId::kFineOffsets).size() / fine_bytes < count) {
    return DamagedMap("a section of the blocks is too short");
  }
  for (uint32_t block = 0; block < count; ++block) {
    const uint64_t bit = map.BlockBit(block);
    if (bit < kHeadBytes * 8 || bit >= map.entry_bits()) {
      return DamagedMap("a block out of bounds");
    }
  }
  return {};
}

Status CheckSegments(const MapSections& map) {
  const size_t count = map.CountOf<MapSegment>(MapSectionId::kSegments);
  if (count == 0 || count > map.block_count())
    return DamagedMap("segment count");
  for (size_t i = 0; i < count; ++i) {
    const auto segment = map.Load<MapSegment>(MapSectionId::kSegments, i);
    if (segment.first_block >= map.block_count() ||
        map.Load<uint32_t>(MapSectionId::kBlockStarts, segment.first_block) !=
            0) {
      return DamagedMap("a segment does not start with its first block");
    }
    if (i == 0) {
      if (segment.first_block != 0) return DamagedMap("first segment");
      continue;
    }
    const auto before = map.Load<MapSegment>(MapSectionId::kSegments, i - 1);
    if (segment.first_block <= before.first_block ||
        segment.base <= before.base) {
      return DamagedMap("segments not in order");
    }
  }
  return {};
}

Status CheckRuns(const MapSections& map) {
  const size_t count = map.CountOf<MapRun>(MapSectionId::kRuns);
  const auto modules =
      map.section(MapSectionId::kModules).size() < sizeof(uint32_t)
          ? 0
          : map.Load<uint32_t>(MapSectionId::kModules, 0);
  if (count == 0) return DamagedMap("no runs");
  uint32_t previous = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto run = map.Load<MapRun>(MapSectionId::kRuns, i);
    if (i == 0 ? run.first_entry != 0 : run.first_entry <= previous) {
      return DamagedMap("runs not in order");
    }
    if (run.module_and_letter >> 8 >= modules) {
      return DamagedMap("a run with an unknown module");
    }
    previous = run.first_entry;
  }
  return {};
}

Status CheckModules(const MapSections& map) {
  const size_t size = map.section(MapSectionId::kModules).size();
  if (size < sizeof(uint32_t)) return DamagedMap("module section too short");
  const auto count = map.Load<uint32_t>(MapSectionId::kModules, 0);
  const uint64_t table = (uint64_t{count} + 1) * sizeof(uint32_t);
  if (table > size) return DamagedMap("module section too short");
  uint32_t previous = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const auto end = map.Load<uint32_t>(MapSectionId::kModules, 1 + size_t{i});
    if (end < previous || end > size - table) {
      return DamagedMap("a module name out of bounds");
    }
    previous = end;
  }
  return {};
}

}  // namespace

Status CheckMapIndexes(const MapSections& map) {
  // What leads to blocks, once these are there.
  for (const auto check :
       {&CheckBlocks, &CheckSegments, &CheckRuns, &CheckModules}) {
    if (auto ok = check(map); !ok) return ok;
  }
  return {};
}

}  // namespace ksym
