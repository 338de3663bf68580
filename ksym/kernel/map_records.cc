// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/map_records.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "ksym/kernel/kernel_symbol.h"
#include "ksym/kernel/module_list.h"
#include "ksym/kernel/symbol_order.h"

namespace ksym {
namespace {

// Records looked at to find a padding symbol's function: aliases of one
// address are few, and a hostile table must not make this quadratic.
constexpr size_t kMaxPairSteps = 64;

// Objects rather than functions, so that sorting inlines them.
constexpr auto kAddressLess = [](const MapRecord& a, const MapRecord& b) {
  return a.address < b.address;
};

// Ties by the place in the input, which the tokens are numbered by.
constexpr auto kInputOrderLess = [](const MapRecord& a, const MapRecord& b) {
  if (a.address != b.address) return a.address < b.address;
  return a.first_token < b.first_token;
};

// The nm(1) letters of what has a place in memory and is no code.
bool IsDataType(char type) {
  return std::string_view("bBdDrR").find(type) != std::string_view::npos;
}

// The first page boundary after the address, or the largest address.
uint64_t PageEnd(uint64_t address) {
  const uint64_t page = address / kKernelPageBytes * kKernelPageBytes;
  return page > kMaxKernelAddress - kKernelPageBytes ? kMaxKernelAddress
                                                     : page + kKernelPageBytes;
}

}  // namespace

void MapRecords::Arrange() {
  SortByAddress();
  // Pairs are found by their distance, aliases are in order by the names of
  // pairs, and whether a pair is safe depends on the first alias.
  PairPadding();
  SortAliases();
  SplitUnsafePairs();
  // No name is added any more.
  spare = interner.TakeIndex();
  InsertGaps();
}

std::string MapRecords::NameOf(const MapRecord& record) const {
  std::string name;
  if (record.Has(MapRecord::kPadding)) name = kPaddingPrefix;
  interner.Render(tokens.data() + record.first_token, name);
  return name;
}

bool MapRecords::SameName(const MapRecord& a, const MapRecord& b) const {
  const uint32_t* tokens_a = tokens.data() + a.first_token;
  const uint32_t* tokens_b = tokens.data() + b.first_token;
  for (; *tokens_a == *tokens_b; ++tokens_a, ++tokens_b) {
    if ((*tokens_a & kLastToken) != 0) return true;
  }
  return false;
}

void MapRecords::SortByAddress() {
  // The kernel lists its image in order. Modules and BPF programs, which come
  // after it, are mostly not.
  const auto rest = std::ranges::is_sorted_until(records, kAddressLess);
  std::ranges::sort(rest, records.end(), kInputOrderLess);
  std::ranges::inplace_merge(records, rest, kAddressLess);
}

void MapRecords::PairPadding() {
  size_t dead = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    MapRecord& padding = records[i];
    if (!padding.Has(MapRecord::kPadding)) continue;
    for (size_t step = 1; step <= kMaxPairSteps; ++step) {
      if (i + step == records.size()) break;
      MapRecord& function = records[i + step];
      const uint64_t distance = function.address - padding.address;
      if (distance > prefix_distance) break;
      if (distance != prefix_distance || distance == 0 ||
          function.kind() != padding.kind() ||
          function.Has(MapRecord::kPrefixed | MapRecord::kPadding) ||
          !SameName(padding, function)) {
        continue;
      }
      function.Set(MapRecord::kPrefixed);
      padding.Set(MapRecord::kDead);
      ++dead;
      break;
    }
  }
  if (dead == 0) return;
  std::erase_if(records,
                [](const MapRecord& r) { return r.Has(MapRecord::kDead); });
}

size_t MapRecords::GroupEnd(size_t begin) const {
  size_t end = begin + 1;
  while (end < records.size() &&
         records[end].address == records[begin].address) {
    ++end;
  }
  return end;
}

void MapRecords::SortGroup(size_t begin, size_t end) {
  struct Named {
    std::string name;
    MapRecord record;
  };
  std::vector<Named> group;
  for (size_t i = begin; i < end; ++i) {
    group.push_back({NameOf(records[i]), records[i]});
  }
  std::ranges::sort(group, [&](const Named& a, const Named& b) {
    const AliasKey key_a = {a.name, a.record.type()};
    const AliasKey key_b = {b.name, b.record.type()};
    if (AliasBefore(key_a, key_b)) return true;
    if (AliasBefore(key_b, key_a)) return false;
    const std::string& module_a = modules[a.record.module()];
    const std::string& module_b = modules[b.record.module()];
    if (module_a != module_b) return module_a < module_b;
    return a.record.first_token < b.record.first_token;
  });
  for (size_t i = begin; i < end; ++i) records[i] = group[i - begin].record;
}

void MapRecords::SortAliases() {
  for (size_t begin = 0; begin + 1 < records.size();) {
    // Nearly all stand alone.
    if (records[begin].address != records[begin + 1].address) [[likely]] {
      ++begin;
      continue;
    }
    const size_t end = GroupEnd(begin);
    SortGroup(begin, end);
    begin = end;
  }
}

bool MapRecords::PairIsSafe(size_t begin, size_t end) const {
  // A lookup in the padding must reach this group's first name, and padding
  // that is split off elsewhere must not come to lie in this one.
  const uint64_t address = records[begin].address;
  if (!records[begin].Has(MapRecord::kPrefixed)) return false;
  if (begin > 0 && records[begin - 1].address >= address - prefix_distance) {
    return false;
  }
  return end == records.size() ||
         records[end].address - address >= prefix_distance;
}

void MapRecords::SplitUnsafePairs() {
  const size_t paired = records.size();
  std::vector<MapRecord> split;
  for (size_t begin = 0; begin < paired;) {
    const size_t end = GroupEnd(begin);
    const bool safe = PairIsSafe(begin, end);
    for (size_t i = begin; i < end && !safe; ++i) {
      MapRecord& record = records[i];
      if (!record.Has(MapRecord::kPrefixed)) continue;
      record.Clear(MapRecord::kPrefixed);
      MapRecord padding = record;
      padding.address -= prefix_distance;
      padding.Clear(MapRecord::kAllFlags);
      padding.Set(MapRecord::kPadding);
      split.push_back(padding);
    }
    begin = end;
  }
  // What stays a symbol of its own gets its whole name. Padding symbols that
  // never had a function are among the records already.
  std::ranges::sort(split, kInputOrderLess);
  records.reserve(paired + split.size());
  records.insert(records.end(), split.begin(), split.end());
  std::ranges::inplace_merge(
      records, records.begin() + static_cast<ptrdiff_t>(paired), kAddressLess);
  for (MapRecord& record : records) {
    if (!record.Has(MapRecord::kPadding)) continue;
    const std::string name = NameOf(record);
    record.Clear(MapRecord::kAllFlags);
    record.first_token = static_cast<uint32_t>(tokens.size());
    interner.Tokenize(name, tokens);
    max_name_bytes =
        std::max(max_name_bytes, static_cast<uint32_t>(name.size()));
  }
  if (!split.empty()) SortAliases();
}

bool MapRecords::EndsText(size_t begin, size_t end) const {
  bool ends = false;
  for (size_t i = begin; i < end; ++i) {
    ends = ends || records[i].Has(MapRecord::kTextEnd);
  }
  if (!ends) return false;
  return std::all_of(records.begin() + static_cast<ptrdiff_t>(begin),
                     records.begin() + static_cast<ptrdiff_t>(end),
                     [&](const MapRecord& record) {
                       return !IsTextType(record.type()) ||
                              IsSectionMark(NameOf(record));
                     });
}

uint64_t MapRecords::BoundOf(size_t last, size_t next) const {
  const MapRecord& record = records[last];
  const uint64_t address = record.address;
  uint64_t bound = kMaxKernelAddress;
  bool ends_text = false;
  const bool other_module =
      next == records.size() || records[next].module() != record.module();
  if (next < records.size()) {
    const MapRecord& after = records[next];
    bound =
        after.address - (after.Has(MapRecord::kPrefixed) ? prefix_distance : 0);
    // A module's code and data are on different pages.
    ends_text = !other_module && !modules[record.module()].empty() &&
                IsTextType(record.type()) && !IsTextType(after.type());
    if (ends_text) {
      const uint64_t page = bound / kKernelPageBytes * kKernelPageBytes;
      if (page > address) bound = page;
    }
  }
  if (!other_module && !(ends_text && modules_are_scattered)) return bound;
  return std::min(bound, AreaEnd(record));
}

// A name that is missing behind the page is better than a wrong one: other
// modules, and what is run while they are loaded, can be there.
uint64_t MapRecords::AreaEnd(const MapRecord& record) const {
  const uint64_t page_end = PageEnd(record.address);
  const auto extent = extents.Find(record.address);
  if (!extent) return page_end;
  if (!modules_are_scattered) return extents.End(*extent);
  const bool is_text =
      IsTextType(record.type()) && IsModuleName(modules[record.module()]);
  if (!is_text) return page_end;
  return std::max(page_end, extents.TextEnd(*extent).value_or(0));
}

// Modules come last. As long as they are in one piece each, no part of one ends
// outside of all.
bool MapRecords::AreModulesScattered() const {
  if (extents.empty()) return false;
  for (size_t i = records.size(); i > 0 && records[i - 1].module() != 0; --i) {
    const MapRecord& last = records[i - 1];
    const bool is_end =
        i == records.size() || records[i].module() != last.module();
    if (is_end && IsModuleName(modules[last.module()]) &&
        !extents.Find(last.address)) {
      return true;
    }
  }
  return false;
}

void MapRecords::FindModuleData() {
  struct Module {
    std::optional<size_t> extent;
    uint64_t last_page = kMaxKernelAddress;
  };
  std::vector<Module> found(modules.size());
  for (const MapRecord& record : records) {
    Module& module = found[record.module()];
    if (record.module() == 0 || module.extent || !IsTextType(record.type())) {
      continue;
    }
    module.extent = extents.Find(record.address);
  }
  for (const MapRecord& record : records) {
    Module& module = found[record.module()];
    const uint64_t page = record.address / kKernelPageBytes;
    if (!module.extent || !IsDataType(record.type()) ||
        page == module.last_page) {
      continue;
    }
    module.last_page = page;
    extents.AddElsewhere(*module.extent, kKernelPageBytes);
  }
}

bool MapRecords::IsAmidImage(size_t i) const {
  if (i + 1 == records.size()) return false;
  const MapRecord& record = records[i];
  const MapRecord& next = records[i + 1];
  return record.module() == 0 && next.module() == 0 &&
         record.address != next.address && !record.Has(MapRecord::kTextEnd);
}

void MapRecords::InsertGaps() {
  extents.Sort();
  modules_are_scattered = AreModulesScattered();
  if (modules_are_scattered) FindModuleData();
  std::vector<MapRecord> gaps;
  for (size_t begin = 0; begin < records.size();) {
    if (IsAmidImage(begin)) [[likely]] {
      ++begin;
      continue;
    }
    const size_t end = GroupEnd(begin);
    MapRecord gap;
    gap.Set(MapRecord::kGap);
    if (EndsText(begin, end)) {
      gap.address = records[begin].address;
      gaps.push_back(gap);
    } else {
      gap.address = BoundOf(begin, end);
      const bool reached =
          end < records.size() &&
          gap.address ==
              records[end].address - (records[end].Has(MapRecord::kPrefixed)
                                          ? prefix_distance
                                          : 0);
      if (!reached && gap.address != kMaxKernelAddress) gaps.push_back(gap);
    }
    begin = end;
  }
  // In front of the symbols of the same address.
  const auto symbols = static_cast<ptrdiff_t>(records.size());
  records.reserve(records.size() + gaps.size());
  records.insert(records.end(), gaps.begin(), gaps.end());
  std::ranges::inplace_merge(records, records.begin() + symbols,
                             [](const MapRecord& a, const MapRecord& b) {
                               if (a.address != b.address)
                                 return a.address < b.address;
                               return a.Has(MapRecord::kGap) &&
                                      !b.Has(MapRecord::kGap);
                             });
}

}  // namespace ksym
