// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/unit_index.h"

#include <algorithm>
#include <utility>

namespace ksym {

UnitIndex::UnitIndex(const DwarfFunctionReader& reader) {
  std::vector<AddressRange> ranges;
  for (uint32_t i = 0; i < reader.unit_count(); ++i) {
    ranges.clear();
    reader.ReadUnitCode(i, ranges);
    const bool says_all = !ranges.empty() && reader.CanListCode(i);
    if (!says_all && !reader.HasNoCode(i)) silent_.push_back(i);
    for (const AddressRange& range : ranges) claims_.push_back({range, i});
    // UnitsIn() then knows nothing and says so.
    if (claims_.size() > kMaxClaims) break;
  }
  Finish();
}

UnitIndex::UnitIndex(std::vector<Claim> claims, std::vector<uint32_t> silent)
    : claims_(std::move(claims)), silent_(std::move(silent)) {
  Finish();
}

void UnitIndex::Finish() {
  std::ranges::sort(claims_, {},
                    [](const Claim& claim) { return claim.code.start; });
  ends_.reserve(claims_.size());
  uint64_t end = 0;
  for (const Claim& claim : claims_) {
    ends_.push_back(end = std::max(end, claim.code.end));
  }
}

std::optional<std::vector<uint32_t>> UnitIndex::UnitsIn(
    std::span<const AddressRange> ranges) const {
  if (claims_.size() > kMaxClaims) return std::nullopt;
  std::vector<uint32_t> units = silent_;
  for (const AddressRange& range : ranges) {
    if (!AddUnits(range, units)) return std::nullopt;
  }
  std::ranges::sort(units);
  const auto rest = std::ranges::unique(units);
  units.erase(rest.begin(), rest.end());
  return units;
}

bool UnitIndex::AddUnits(const AddressRange& range,
                         std::vector<uint32_t>& units) const {
  const auto next = std::ranges::lower_bound(
      claims_, range.end, {}, [](const Claim& c) { return c.code.start; });
  auto at = static_cast<size_t>(next - claims_.begin());
  const size_t last = at > kMaxSearched ? at - kMaxSearched : 0;
  for (; at > last && ends_[at - 1] > range.start; --at) {
    const Claim& claim = claims_[at - 1];
    if (claim.code.end > range.start) units.push_back(claim.unit);
  }
  // False where the bound ended the search before all claims that could reach
  // here were seen.
  return at == 0 || ends_[at - 1] <= range.start;
}

}  // namespace ksym
