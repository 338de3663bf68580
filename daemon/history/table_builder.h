// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "daemon/history/tables.h"
#include "daemon/profile/id_index.h"
#include "ksym/base/keyed_hash.h"

namespace profd::history {

// Tables that are being made: each different element once. Bounds are the
// caller's. Not thread-safe.
class TableBuilder {
 public:
  // Texts beyond ksym::kMaxShownBytes are cut as names are.
  uint32_t InternText(std::string_view text);
  uint32_t InternFunction(const Function& function);
  // Its parent is there, or 0.
  uint32_t InternNode(const Node& node);
  uint32_t InternSeries(const Series& series);
  // The one that is there where all is equal. The kinds are the setting's;
  // first_kind and kinds are set here. O(settings).
  uint32_t InternSetting(Setting setting, std::span<const Kind> kinds);
  // Adds the names if they are not those that the cgroup has already. Beyond
  // kMaxCgroupNames it keeps what it has.
  void NameCgroup(const CgroupName& name);

  Tables& tables() { return tables_; }
  const Tables& tables() const { return tables_; }
  // Nothing may be interned any more.
  Tables Finish() && { return std::move(tables_); }
  // About what it takes.
  size_t memory_bytes() const;

 private:
  Tables tables_;
  IdIndex function_ids_;
  IdIndex node_ids_;
  IdIndex series_ids_;
  std::unordered_map<uint32_t, uint32_t, ksym::NumberHash>
      names_;  // places, by cgroup
};

}  // namespace profd::history
