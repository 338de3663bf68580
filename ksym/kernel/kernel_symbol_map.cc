// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kernel_symbol_map.h"

#include <algorithm>
#include <cstring>

#include "ksym/kernel/symbol_order.h"

namespace ksym {
namespace {

std::unexpected<Error> Damaged(const char* what) {
  return Fail(ErrorCode::kCorrupt, std::string("compact symbol map: ") + what);
}

}  // namespace

Result<KernelSymbolMap> KernelSymbolMap::Parse(
    std::span<const std::byte> bytes) {
  auto tables = MapTables::Parse(bytes);
  if (!tables) return Fail(std::move(tables.error()));
  return KernelSymbolMap(std::move(*tables), bytes);
}

Result<KernelSymbolMap> KernelSymbolMap::Borrow(
    std::span<const std::byte> bytes) {
  auto map = Parse(bytes);
  if (!map) return map;
  if (auto ok = map->CheckEntries(); !ok) return Fail(std::move(ok.error()));
  return map;
}

Result<KernelSymbolMap> KernelSymbolMap::FromBytes(
    std::span<const std::byte> bytes) {
  HeapBytes own(bytes);
  auto map = Borrow(own);
  if (map) map->owned_ = std::move(own);
  return map;
}

Result<KernelSymbolMap> KernelSymbolMap::Adopt(HeapBytes bytes) {
  auto map = Parse(bytes);
  if (map) map->owned_ = std::move(bytes);
  return map;
}

Result<KernelSymbolMap> KernelSymbolMap::MapFile(const std::string& path) {
  auto file = MappedFile::Open(path);
  if (!file) return Fail(std::move(file.error()));
  auto map = Borrow(file->bytes());
  if (!map) return Fail(std::move(map.error()).WithContext(path));
  map->mapped_ = std::move(*file);
  return map;
}

Status KernelSymbolMap::CheckOrder(const MapEntry& entry, uint64_t previous,
                                   uint64_t& group_start) const {
  if (entry.address < previous) return Damaged("addresses not in order");
  const bool first = entry.index == 0;
  const bool first_of_group = first || entry.address != previous;
  const uint64_t padding = tables_.PaddingOf(entry);
  if (first_of_group) {
    if (entry.address < padding ||
        (!first && entry.address - padding <= previous)) {
      return Damaged("padding overlaps a symbol");
    }
    group_start = entry.address - padding;
  }
  // What is true of a group's first entry holds for the group.
  if ((entry.gap && (entry.prefixed || !first_of_group)) ||
      (padding != 0 && group_start == entry.address)) {
    return Damaged("a gap or padding in the middle of aliases");
  }
  if (entry.index % kBlockEntries != 0) return {};
  if (tables_.BlockStart(entry.index / kBlockEntries) != group_start) {
    return Damaged("a block does not start with its first entry");
  }
  if (entry.continues() == first_of_group) {
    return Damaged("a block with a wrong continuation mark");
  }
  return {};
}

Status KernelSymbolMap::CheckEntries() const {
  SymbolNameBuffer buffer;
  char* name = buffer.Prepare(tables_.name_room());
  const uint32_t count = tables_.header().entry_count;
  uint64_t symbols = 0;
  uint64_t previous = 0;     // address of the entry before
  uint64_t group_start = 0;  // from which the entry's group answers
  MapEntry entry;
  for (uint32_t index = 0; index < count; ++index) {
    const bool ok =
        index == 0 ? tables_.ReadFirst(0, entry) : tables_.ReadNext(entry);
    if (!ok) return Damaged("an entry cannot be decoded");
    auto in_order = CheckOrder(entry, previous, group_start);
    if (!in_order) return in_order;
    previous = entry.address;
    if (entry.gap) continue;
    symbols += entry.prefixed ? 2 : 1;
    const auto text = tables_.RenderName(entry, name);
    if (text.empty()) return Damaged("a name cannot be decoded");
  }
  if (symbols != tables_.header().symbol_count) {
    return Damaged("another number of symbols than its header says");
  }
  return {};
}

bool KernelSymbolMap::RewindGroup(uint32_t block, Group& group) const {
  block = tables_.FirstBlockOfStart(block);
  // The group's first entry starts the block, unless the block before ends
  // with the same address.
  if (!tables_.ReadFirst(block, group.first)) return false;
  if (block == 0) return true;
  MapEntry entry;
  if (!tables_.ReadFirst(block - 1, entry)) return false;
  MapEntry first = entry;
  while (!tables_.LastOfBlock(entry)) {
    if (!tables_.ReadNext(entry)) return false;
    if (entry.address != first.address) first = entry;
  }
  if (first.address == group.first.address) group.first = first;
  return true;
}

bool KernelSymbolMap::FindGroup(uint64_t address, Group& group) const {
  const auto block = tables_.FindBlock(address);
  if (block.index == tables_.block_count()) return false;
  if (!tables_.FindInBlock(block, address, group.first, group.end))
    return false;
  if (group.first.continues() && !RewindGroup(block.index, group)) return false;
  group.start = group.first.address - tables_.PaddingOf(group.first);
  return address >= group.start && address < group.end;
}

KernelSymbol KernelSymbolMap::MakeSymbol(const Group& group,
                                         const MapEntry& entry, Wanted wanted,
                                         SymbolNameBuffer& buffer) const {
  constexpr size_t kPrefix = kPaddingPrefix.size();
  char* room = buffer.Prepare(tables_.name_room() + kPrefix);
  KernelSymbol symbol;
  symbol.name = tables_.RenderName(entry, room + kPrefix);
  const auto kind = tables_.KindOf(entry);
  symbol.module = kind.module;
  symbol.type = kind.type;
  symbol.start = Address{entry.address};
  symbol.size = group.first.gap ? 0 : group.end - entry.address;
  if (wanted.part == Part::kPadding) {
    symbol.start = symbol.start - tables_.PaddingOf(entry);
    symbol.size = tables_.PaddingOf(entry);
    symbol.in_prefix = true;
    if (wanted.query.prefix_names == PrefixNames::kKeep) {
      std::memcpy(room, kPaddingPrefix.data(), kPrefix);
      symbol.name = {room, kPrefix + symbol.name.size()};
    }
  } else if (symbol.name.starts_with(kPaddingPrefix) &&
             symbol.name.size() > kPrefix) {
    symbol.in_prefix = true;
    if (wanted.query.prefix_names == PrefixNames::kFold)
      symbol.name.remove_prefix(kPrefix);
  }
  return symbol;
}

std::optional<KernelSymbol> KernelSymbolMap::Find(Address address,
                                                  SymbolNameBuffer& buffer,
                                                  SymbolQuery query) const {
  Group group;
  if (!FindGroup(address.value, group) || group.first.gap) return std::nullopt;
  KernelSymbol symbol =
      MakeSymbol(group, group.first, {PartAt(group, address), query}, buffer);
  if (query.kinds == SymbolKinds::kText && !IsTextType(symbol.type)) {
    return std::nullopt;
  }
  if (symbol.name.empty()) return std::nullopt;
  symbol.offset = address - symbol.start;
  return symbol;
}

bool KernelSymbolMap::VisitGroup(const Group& group, Wanted wanted,
                                 SymbolNameBuffer& buffer,
                                 const Visitor& visit) const {
  const bool text_only = wanted.query.kinds == SymbolKinds::kText;
  MapEntry entry = group.first;
  do {
    if (entry.gap || (wanted.part == Part::kPadding && !entry.prefixed)) {
      continue;
    }
    const KernelSymbol symbol = MakeSymbol(group, entry, wanted, buffer);
    if (text_only && !IsTextType(symbol.type)) continue;
    if (!visit(symbol)) return false;
  } while (tables_.ReadNext(entry) && entry.address == group.first.address);
  return true;
}

void KernelSymbolMap::FindAliases(Address address, SymbolNameBuffer& buffer,
                                  const Visitor& visit,
                                  SymbolQuery query) const {
  Group group;
  if (!FindGroup(address.value, group) || group.first.gap) return;
  VisitGroup(group, {PartAt(group, address), query}, buffer,
             [&](const KernelSymbol& symbol) {
               KernelSymbol answer = symbol;
               answer.offset = address - symbol.start;
               return visit(answer);
             });
}

void KernelSymbolMap::VisitAt(Address address, SymbolNameBuffer& buffer,
                              const Visitor& visit) const {
  constexpr SymbolQuery kEverything = {SymbolKinds::kAll, PrefixNames::kKeep};
  Group group;
  if (!FindGroup(address.value, group)) return;
  if (address.value == group.first.address) {
    VisitGroup(group, {Part::kBody, kEverything}, buffer, visit);
  } else if (address.value == group.start) {
    VisitGroup(group, {Part::kPadding, kEverything}, buffer, visit);
  }
}

void KernelSymbolMap::ForEach(SymbolNameBuffer& buffer,
                              const Visitor& visit) const {
  constexpr SymbolQuery kEverything = {SymbolKinds::kAll, PrefixNames::kKeep};
  Group group;
  MapEntry entry;
  bool more = tables_.block_count() > 0 && tables_.ReadFirst(0, entry);
  while (more) {
    group.first = entry;
    group.start = entry.address - tables_.PaddingOf(entry);
    do {
      more = tables_.ReadNext(entry);
    } while (more && entry.address == group.first.address);
    group.end =
        more ? entry.address - tables_.PaddingOf(entry) : kMaxKernelAddress;
    if (!VisitGroup(group, {Part::kPadding, kEverything}, buffer, visit) ||
        !VisitGroup(group, {Part::kBody, kEverything}, buffer, visit)) {
      return;
    }
  }
}

std::vector<Address> KernelSymbolMap::FindByName(std::string_view name) const {
  std::vector<Address> found;
  SymbolNameBuffer buffer;
  ForEach(buffer, [&](const KernelSymbol& symbol) {
    if (symbol.name == name) found.push_back(symbol.start);
    return true;
  });
  return found;
}

}  // namespace ksym
