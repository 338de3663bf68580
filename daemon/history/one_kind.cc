// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/one_kind.h"

#include "daemon/history/table_check.h"

namespace profd::history {

void OneKind::Enter(const Tables& tables, const FileFilter& filter) {
  kinds_.clear();
  is_it_.clear();
  for (const Kind& kind : tables.kinds) {
    kinds_.push_back(SampleKindOf(tables, kind));
  }
  for (uint32_t part = 0; part < tables.parts.size() && name_.empty(); ++part) {
    const Setting& setting = tables.settings[tables.parts[part].setting];
    if (!filter.HasPart(part) || setting.kinds == 0) continue;
    name_ = kinds_[setting.first_kind].name;
  }
  for (const SampleKind& kind : kinds_) {
    is_it_.push_back(!name_.empty() && kind.name == name_);
    if (is_it_.back() && unit_.empty()) unit_ = kind.unit;
    // Numbers of another unit cannot be added to these.
    if (kind.unit != unit_) is_it_.back() = false;
  }
}

}  // namespace profd::history
