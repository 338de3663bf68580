// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/kind_lanes.h"

#include <algorithm>
#include <string_view>

namespace profd::history {

void KindLanes::Enter(const Tables& tables, const FileFilter& filter) {
  // The first lane finds its name, so that no other one takes it.
  lanes_.front().Enter(tables, filter);
  if (lanes_.front().name().empty()) return;
  std::vector<bool> is_seen(tables.settings.size());
  for (uint32_t part = 0; part < tables.parts.size(); ++part) {
    const uint32_t setting = tables.parts[part].setting;
    if (is_seen[setting] || !filter.HasPart(part)) continue;
    is_seen[setting] = true;
    AddKindsOf(tables, tables.settings[setting]);
  }
  for (size_t i = 1; i < lanes_.size(); ++i) lanes_[i].Enter(tables, filter);
}

void KindLanes::AddKindsOf(const Tables& tables, const Setting& setting) {
  for (uint32_t i = 0; i < setting.kinds; ++i) {
    const Kind& kind = tables.kinds[setting.first_kind + i];
    const std::string_view name = tables.strings.Get(kind.name);
    if (lanes_.size() == most_ || name.empty()) return;
    if (std::ranges::find(lanes_, name, &OneKind::name) == lanes_.end()) {
      lanes_.emplace_back(std::string(name));
    }
  }
}

std::optional<size_t> KindLanes::LaneOf(const Series& series) const {
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].Has(series)) return lane;
  }
  return std::nullopt;
}

bool KindLanes::IsSampled(const Tables& tables, const Setting& setting,
                          size_t lane) const {
  for (uint32_t i = 0; i < setting.kinds; ++i) {
    const Kind& kind = tables.kinds[setting.first_kind + i];
    if (tables.strings.Get(kind.name) == lanes_[lane].name()) return true;
  }
  return false;
}

}  // namespace profd::history
