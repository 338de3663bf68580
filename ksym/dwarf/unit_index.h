// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ksym/base/function_batch.h"
#include "ksym/dwarf/function_reader.h"

namespace ksym {

// Which units of a file may have code where, by what the units themselves say.
// One that does not say, or cannot say all, may have code anywhere, unless it
// cannot have any. 24 bytes for each range. Immutable.
class UnitIndex {
 public:
  // Code that a unit says it has.
  struct Claim {
    AddressRange code;
    uint32_t unit = 0;
  };
  // For all units together; hostile ones can all refer to one long list.
  static constexpr size_t kMaxClaims = size_t{1} << 22;
  // Claims that one search looks at. Those of programs hardly overlap.
  static constexpr size_t kMaxSearched = size_t{1} << 16;

  // Looks at each unit's first entry and its ranges.
  explicit UnitIndex(const DwarfFunctionReader& reader);
  // The units of `silent` may have code anywhere.
  UnitIndex(std::vector<Claim> claims, std::vector<uint32_t> silent);

  // The units that may have code in one of the ranges, rising. Nothing: there
  // are too many claims to tell.
  std::optional<std::vector<uint32_t>> UnitsIn(
      std::span<const AddressRange> ranges) const;

 private:
  void Finish();
  bool AddUnits(const AddressRange& range, std::vector<uint32_t>& units) const;

  std::vector<Claim> claims_;   // by start
  std::vector<uint64_t> ends_;  // the largest of the claims up to here
  std::vector<uint32_t> silent_;
};

}  // namespace ksym
