// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/symbol_table.h"

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

namespace ksym {
namespace {

size_t LeadingUnderscores(std::string_view name) {
  const size_t at = name.find_first_not_of('_');
  return at == std::string_view::npos ? name.size() : at;
}

// Outer symbols before the inner ones that start at the same place, so that
// the last one opened is the innermost.
bool OpensBefore(const SymbolCandidate& a, const SymbolCandidate& b) {
  return std::tuple(a.start, a.sized, b.end, a.table, a.name) <
         std::tuple(b.start, b.sized, a.end, b.table, b.name);
}

bool SameBytes(const SymbolCandidate& a, const SymbolCandidate& b) {
  return a.start == b.start && a.end == b.end && a.sized == b.sized;
}

// Needs sorted input.
void DropCoveredLabels(std::vector<SymbolCandidate>& candidates) {
  uint64_t covered_to = 0;
  auto out = candidates.begin();
  for (auto first = candidates.begin(); first != candidates.end();) {
    auto last = first;
    bool has_function = false;
    for (; last != candidates.end() && last->start == first->start; ++last) {
      has_function = has_function || !last->label;
      if (last->sized) covered_to = std::max(covered_to, last->end.value);
    }
    const bool drop = has_function || covered_to > first->start.value;
    for (; first != last; ++first) {
      if (!drop || !first->label) *out++ = *first;
    }
  }
  candidates.erase(out, candidates.end());
}

// Ends each unsized symbol at the next higher start. Needs sorted input.
void BoundUnsized(std::vector<SymbolCandidate>& candidates) {
  uint64_t next_start = std::numeric_limits<uint64_t>::max();
  for (size_t i = candidates.size(); i-- > 0;) {
    SymbolCandidate& c = candidates[i];
    if (i + 1 < candidates.size() && candidates[i + 1].start != c.start) {
      next_start = candidates[i + 1].start.value;
    }
    if (!c.sized) c.end.value = std::min(c.end.value, next_start);
  }
}

// Linkers write every dynamic symbol to .symtab as well. Where a group of
// equal extent holds at least as many symbols of .symtab as of .dynsym, the
// dynamic ones are taken to be those copies and dropped, which halves the
// table of a file like node without reading any name.
void DropDynamicCopies(std::vector<SymbolCandidate>& candidates) {
  auto out = candidates.begin();
  for (auto first = candidates.begin(); first != candidates.end();) {
    auto last = first;
    ptrdiff_t dynamic = 0;
    while (last != candidates.end() && SameBytes(*first, *last)) {
      dynamic += last->table == NameTable::kDynamic ? 1 : 0;
      ++last;
    }
    const bool drop = dynamic > 0 && (last - first) - dynamic >= dynamic;
    size_t kept = 0;
    for (; first != last; ++first) {
      if (drop && first->table == NameTable::kDynamic) continue;
      if (kept++ == SymbolTable::kMaxAliases) {
        first = last;
        break;
      }
      *out++ = *first;
    }
  }
  candidates.erase(out, candidates.end());
}

}  // namespace

std::string_view WithoutVersion(std::string_view name) {
  const size_t at = name.find('@');
  if (at == 0 || at == std::string_view::npos) return name;
  std::string_view version = name.substr(at + 1);
  if (version.starts_with('@')) version.remove_prefix(1);
  const bool is_version = !version.empty() && version != "plt" &&
                          version.find_first_of("@ ") == version.npos;
  return is_version ? name.substr(0, at) : name;
}

bool IsPreferredAlias(const SymbolAlias& a, const SymbolAlias& b) {
  const bool a_is_local = a.binding == SymbolBinding::kLocal;
  const bool b_is_local = b.binding == SymbolBinding::kLocal;
  const std::string_view a_plain = WithoutVersion(a.name);
  const std::string_view b_plain = WithoutVersion(b.name);
  // "f@@V2" sorts before "f@V1".
  return std::tuple(a_is_local, LeadingUnderscores(a.name), b.binding,
                    a_plain.size(), a_plain, a.name) <
         std::tuple(b_is_local, LeadingUnderscores(b.name), a.binding,
                    b_plain.size(), b_plain, b.name);
}

// Sweeps over the sorted candidates with a stack of those that are open at the
// current position; the top owns it. Each group of aliases is pushed and
// popped once, so there are at most two pieces per group.
class SymbolTable::Cutter {
 public:
  Cutter(std::span<const SymbolCandidate> candidates, SymbolTable& table)
      : candidates_(candidates), table_(table) {}

  void Run() {
    for (size_t i = 0; i < candidates_.size();) {
      size_t last = i + 1;
      while (last < candidates_.size() &&
             SameBytes(candidates_[i], candidates_[last])) {
        ++last;
      }
      AdvanceTo(candidates_[i].start.value);
      open_.push_back({i, last});
      i = last;
    }
    AdvanceTo(std::numeric_limits<uint64_t>::max());
  }

 private:
  struct Group {
    size_t first = 0;
    size_t last = 0;
  };

  // Gives [position_, target) to its owners and closes those that end.
  void AdvanceTo(uint64_t target) {
    while (!open_.empty()) {
      const Group group = open_.back();
      const uint64_t end = candidates_[group.first].end.value;
      if (end > position_) {
        const uint64_t stop = std::min(end, target);
        if (stop > position_) Emit(group, position_, stop);
        position_ = std::max(position_, stop);
      }
      if (end > target) break;
      open_.pop_back();
    }
    position_ = target;
  }

  void Emit(Group group, uint64_t begin, uint64_t end) {
    const uint64_t base = table_.base_.value;
    const auto piece_start = static_cast<uint32_t>(begin - base);
    const uint64_t symbol_start = candidates_[group.first].start.value;
    if (symbol_start != begin) {
      table_.continuations_.push_back(
          {piece_start, static_cast<uint32_t>(symbol_start - base)});
    }
    const uint64_t size = std::min(end - begin, kMaxSymbolSize - 1);
    for (size_t i = group.first; i < group.last; ++i) {
      const SymbolCandidate& c = candidates_[i];
      Entry& entry = table_.entries_.emplace_back();
      entry.start = piece_start;
      entry.size = static_cast<uint32_t>(size) & (kMaxSymbolSize - 1);
      entry.binding = static_cast<uint32_t>(c.binding) & 3u;
      entry.name = c.name & kMaxNameOffset;
      entry.table = static_cast<uint32_t>(c.table) & 3u;
    }
  }

  std::span<const SymbolCandidate> candidates_;
  SymbolTable& table_;
  std::vector<Group> open_;
  uint64_t position_ = 0;
};

SymbolTable SymbolTable::Build(std::vector<SymbolCandidate> candidates) {
  SymbolTable table;
  std::erase_if(candidates, [](const SymbolCandidate& c) {
    return c.end <= c.start || c.name > kMaxNameOffset;
  });
  if (candidates.empty()) return table;
  std::sort(candidates.begin(), candidates.end(), OpensBefore);
  table.base_ = candidates.front().start;
  const ElfAddress base = table.base_;
  std::erase_if(candidates, [base](const SymbolCandidate& c) {
    // Only now, as the lowest start is known; entries count from it in 32 bits.
    return c.end - base > kMaxSpan;
  });
  // Labels go first, as one that is dropped must not end a symbol without a
  // size.
  DropCoveredLabels(candidates);
  BoundUnsized(candidates);
  DropDynamicCopies(candidates);
  table.entries_.reserve(candidates.size());
  Cutter(candidates, table).Run();
  table.entries_.shrink_to_fit();
  table.continuations_.shrink_to_fit();
  return table;
}

std::optional<SymbolTable::Match> SymbolTable::Find(ElfAddress address) const {
  if (address < base_ || address - base_ >= kMaxSpan) return std::nullopt;
  const auto distance = static_cast<uint32_t>(address - base_);
  const auto next = std::upper_bound(
      entries_.begin(), entries_.end(), distance,
      [](uint32_t value, const Entry& e) { return value < e.start; });
  if (next == entries_.begin()) return std::nullopt;
  const Entry& entry = *(next - 1);
  if (distance - entry.start >= entry.size) return std::nullopt;
  Match match;
  match.index = static_cast<uint32_t>(next - 1 - entries_.begin());
  match.address = address;
  match.start = base_ + entry.start;
  if (!continuations_.empty()) {
    const auto found = std::lower_bound(
        continuations_.begin(), continuations_.end(), entry.start,
        [](const Continuation& c, uint32_t v) { return c.piece_start < v; });
    if (found != continuations_.end() && found->piece_start == entry.start) {
      match.start = base_ + found->symbol_start;
    }
  }
  return match;
}

size_t SymbolTable::AliasCount(const Match& match) const {
  size_t count = 1;
  while (count <= match.index &&
         entries_[match.index - count].start == entries_[match.index].start) {
    ++count;
  }
  return count;
}

SymbolTable::Name SymbolTable::alias(const Match& match, size_t i) const {
  const Entry& entry = entries_[match.index - i];
  return {entry.name, static_cast<NameTable>(entry.table),
          static_cast<SymbolBinding>(entry.binding)};
}

size_t SymbolTable::memory_bytes() const {
  return entries_.capacity() * sizeof(Entry) +
         continuations_.capacity() * sizeof(Continuation);
}

}  // namespace ksym
