// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/table_builder.h"

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/history/limits.h"
#include "ksym/base/bounded_name.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/base/number_hash.h"

namespace profd::history {
namespace {

using ksym::HashWords;
using ksym::WordOf;

uint64_t HashOf(const Function& function) {
  return HashWords(WordOf(function.name, function.object),
                   WordOf(function.build_id, function.function),
                   WordOf(function.file, function.first_line),
                   WordOf(function.kind, function.reason), function.flags);
}

uint64_t HashOf(const Node& node) {
  return ksym::HashNumber(WordOf(node.parent, node.function));
}

uint64_t HashOf(const Series& series) {
  return HashWords(WordOf(series.comm, series.cgroup),
                   WordOf(series.pid, series.tid),
                   uint64_t{series.kind} << 32 | uint64_t{series.parked} << 16 |
                       uint64_t{series.user_state} << 8 | series.kernel_state);
}

template <typename Element>
uint32_t InternIn(std::vector<Element>& table, IdIndex& ids,
                  const Element& element) {
  const auto [id, is_new] =
      ids.FindOrInsert(HashOf(element), static_cast<uint32_t>(table.size()),
                       [&](uint32_t other) { return table[other] == element; });
  if (is_new) table.push_back(element);
  return id;
}

}  // namespace

uint32_t TableBuilder::InternText(std::string_view text) {
  std::string room;
  const std::string_view bounded = ksym::BoundName(text, room);
  const size_t before = tables_.strings.size();
  const StringId id = tables_.strings.Intern(bounded);
  if (tables_.strings.size() != before) tables_.text_bytes += bounded.size();
  return id;
}

uint32_t TableBuilder::InternFunction(const Function& function) {
  return InternIn(tables_.functions, function_ids_, function);
}

uint32_t TableBuilder::InternNode(const Node& node) {
  return InternIn(tables_.nodes, node_ids_, node);
}

uint32_t TableBuilder::InternSeries(const Series& series) {
  return InternIn(tables_.series, series_ids_, series);
}

// Settings stay for hours, so the newest is asked first.
uint32_t TableBuilder::InternSetting(Setting setting,
                                     std::span<const Kind> kinds) {
  setting.kinds = static_cast<uint32_t>(kinds.size());
  for (size_t i = tables_.settings.size(); i-- > 0;) {
    const Setting& known = tables_.settings[i];
    // Where the kinds lie makes no setting another one.
    setting.first_kind = known.first_kind;
    if (setting == known &&
        std::ranges::equal(
            kinds,
            std::span(tables_.kinds).subspan(known.first_kind, known.kinds))) {
      return static_cast<uint32_t>(i);
    }
  }
  setting.first_kind = static_cast<uint32_t>(tables_.kinds.size());
  tables_.kinds.insert(tables_.kinds.end(), kinds.begin(), kinds.end());
  tables_.settings.push_back(setting);
  return static_cast<uint32_t>(tables_.settings.size() - 1);
}

void TableBuilder::NameCgroup(const CgroupName& name) {
  std::vector<CgroupName>& names = tables_.cgroup_names;
  const auto known = names_.find(name.cgroup);
  if (known != names_.end() && names[known->second] == name) return;
  if (names.size() == kMaxCgroupNames) return;
  names_[name.cgroup] = static_cast<uint32_t>(names.size());
  names.push_back(name);
}

size_t TableBuilder::memory_bytes() const {
  constexpr size_t kEntryBytes = 40;  // of names_, with what it is found by
  return tables_.memory_bytes() + function_ids_.memory_bytes() +
         node_ids_.memory_bytes() + series_ids_.memory_bytes() +
         names_.size() * kEntryBytes;
}

}  // namespace profd::history
