// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/entry_scopes.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>

#include "ksym/base/byte_cursor.h"

namespace ksym {
namespace {

// As UnitReader has it.
constexpr size_t kMaxDepth = 4096;
constexpr size_t kMaxScopes = size_t{1} << 30;

bool IsType(uint16_t tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
         tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

}  // namespace

class EntryScopes::Reader {
 public:
  Reader(std::vector<Scope>& scopes, const DwarfUnit& unit)
      : scopes_(scopes), unit_(unit) {}

  void Run(ByteCursor in) {
    while (!in.AtEnd() && scopes_.size() < kMaxScopes) {
      const uint64_t offset = in.offset();
      const uint64_t code = in.ReadUleb128();
      if (code == 0) {
        if (!open_.empty()) Close(offset);
        continue;
      }
      const Abbreviation* abbreviation = unit_.abbreviations->Find(code);
      if (abbreviation == nullptr ||
          !SkipEntry(*unit_.abbreviations, *abbreviation, unit_.format, in) ||
          !in.ok()) {
        break;
      }
      if (!abbreviation->has_children) continue;
      if (open_.size() >= kMaxDepth) break;
      open_.push_back({offset, abbreviation->tag});
      if (IsType(abbreviation->tag)) Record();
    }
    // Also after a fault: what was open there holds all that may follow.
    while (!open_.empty()) Close(unit_.end);
  }

 private:
  struct Open {
    uint64_t entry = 0;
    uint16_t tag = 0;
    uint32_t scope = 0;  // index + 1; 0: not recorded
  };

  // The last open entry, and the functions around it, which come before it.
  void Record() {
    uint32_t parent = 0;
    for (Open& open : open_) {
      const bool is_function = open.tag == DW_TAG_subprogram;
      if (open.scope == 0 && (is_function || &open == &open_.back())) {
        scopes_.push_back({.entry = Distance(open.entry),
                           .parent = parent & kParentMask,
                           .is_function = is_function ? 1u : 0u});
        open.scope = static_cast<uint32_t>(scopes_.size());
      }
      if (open.scope != 0) parent = open.scope;
    }
  }

  void Close(uint64_t end) {
    const uint32_t scope = open_.back().scope;
    if (scope != 0) scopes_[scope - 1].end = Distance(end);
    open_.pop_back();
  }

  uint32_t Distance(uint64_t offset) const {
    return static_cast<uint32_t>(offset - unit_.offset);
  }

  static constexpr uint32_t kParentMask = (uint32_t{1} << 31) - 1;

  std::vector<Scope>& scopes_;
  const DwarfUnit& unit_;
  std::vector<Open> open_;
};

EntryScopes::EntryScopes(std::span<const std::byte> info, const DwarfUnit& unit)
    : unit_offset_(unit.offset) {
  // Distances have 32 bits.
  if (unit.end - unit.offset > std::numeric_limits<uint32_t>::max()) return;
  ByteCursor in(info.first(static_cast<size_t>(unit.end)));
  in.Seek(unit.first_entry);
  Reader(scopes_, unit).Run(in);
  scopes_.shrink_to_fit();
}

std::optional<uint64_t> EntryScopes::Find(uint64_t offset, Of of) const {
  const uint64_t distance = offset - unit_offset_;
  const auto next =
      std::ranges::lower_bound(scopes_, distance, {}, &Scope::entry);
  auto at = static_cast<uint32_t>(next - scopes_.begin());
  while (at > 0) {
    const Scope& scope = scopes_[at - 1];
    const bool is_passed = of == Of::kFunction && scope.is_function != 0;
    if (distance < scope.end && !is_passed) return unit_offset_ + scope.entry;
    // Always a lower number than its own, so the walk ends.
    at = scope.parent;
  }
  return std::nullopt;
}

}  // namespace ksym
