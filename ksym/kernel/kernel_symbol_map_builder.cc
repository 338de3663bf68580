// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kernel_symbol_map_builder.h"

#include <algorithm>
#include <utility>

#include "ksym/kernel/map_encoder.h"
#include "ksym/kernel/symbol_order.h"

namespace ksym {
namespace {

// Largest distance that is taken for padding before a function.
constexpr uint64_t kMaxPrefixDistance = 64;
constexpr size_t kMaxNameBytes = size_t{1} << 31;
// Keeps the bits of a name, 20 per token, in 32.
constexpr size_t kLongestName = size_t{1} << 27;
constexpr size_t kMaxSymbols = size_t{1} << 31;

// Enough for a kernel with few modules. Memory that is never touched costs
// nothing, copying a table that grows costs a tenth of a load.
constexpr size_t kUsualRecords = size_t{72} << 10;
constexpr size_t kUsualTokens = size_t{304} << 10;

// Doubling would hold three times the table while it is copied.
template <typename T>
void GrowSparingly(std::vector<T>& items, size_t more) {
  if (items.capacity() - items.size() >= more) [[likely]]
    return;
  items.reserve(items.size() + items.size() / 4 + more + 1024);
}

}  // namespace

KernelSymbolMapBuilder::KernelSymbolMapBuilder() {
  records_.records.reserve(kUsualRecords);
  records_.tokens.reserve(kUsualTokens);
  records_.modules.emplace_back();  // the kernel image
  module_ids_.emplace("", 0);
}

uint32_t KernelSymbolMapBuilder::ModuleId(std::string_view module) {
  if (module.empty()) return 0;
  if (records_.modules[last_module_] == module) return last_module_;
  const auto next = static_cast<uint32_t>(records_.modules.size());
  const auto [at, added] = module_ids_.emplace(module, next);
  if (added) records_.modules.emplace_back(module);
  last_module_ = at->second;
  return last_module_;
}

void KernelSymbolMapBuilder::AddRecord(uint64_t address, uint32_t kind,
                                       uint32_t flags, std::string_view name) {
  GrowSparingly(records_.records, 1);
  GrowSparingly(records_.tokens, name.size() + 1);
  MapRecord record;
  record.address = address;
  record.packed = kind << 5 | flags;
  record.first_token = static_cast<uint32_t>(records_.tokens.size());
  records_.interner.Tokenize(name, records_.tokens);
  records_.records.push_back(record);
  records_.max_name_bytes =
      std::max(records_.max_name_bytes, static_cast<uint32_t>(name.size()));
}

// Makes one record of a padding symbol and of its function, which nearly
// always comes next.
bool KernelSymbolMapBuilder::JoinPadding(uint64_t address, uint32_t kind,
                                         std::string_view name) {
  MapRecord& padding = records_.records.back();
  if (padding.kind() != kind || records_.interner.last_name() != name) {
    return false;
  }
  const uint64_t distance = address - padding.address;
  if (records_.prefix_distance == 0 && distance <= kMaxPrefixDistance) {
    records_.prefix_distance = static_cast<uint32_t>(distance);
  }
  if (distance == 0 || distance != records_.prefix_distance) return false;
  padding.address = address;
  padding.Clear(MapRecord::kAllFlags);
  padding.Set(MapRecord::kPrefixed);
  if (IsTextEnd(name)) padding.Set(MapRecord::kTextEnd);
  return true;
}

Status KernelSymbolMapBuilder::Add(const Symbol& symbol) {
  if (symbol.name.empty()) return Fail(ErrorCode::kInvalid, "no name");
  if (symbol.type <= ' ' || symbol.type > '~') {
    return Fail(ErrorCode::kInvalid, "type is not a printable character");
  }
  if (symbol.name.size() > kLongestName) {
    return Fail(ErrorCode::kLimit, "a name of more than 128 MiB");
  }
  name_bytes_ += symbol.name.size();
  if (name_bytes_ > kMaxNameBytes || symbol_count_ == kMaxSymbols ||
      records_.modules.size() == MapRecord::kMaxModules) {
    return Fail(ErrorCode::kLimit, "more symbols than a map can hold");
  }
  ++symbol_count_;
  const std::string_view name = StripCfiSuffix(symbol.name);
  const uint64_t address = symbol.address.value;
  const uint32_t kind = MapRecord::Kind(ModuleId(symbol.module), symbol.type);
  if (name.starts_with(kPaddingPrefix) && name.size() > kPaddingPrefix.size()) {
    AddRecord(address, kind, MapRecord::kPadding,
              name.substr(kPaddingPrefix.size()));
    after_padding_ = true;
    return {};
  }
  if (std::exchange(after_padding_, false) &&
      JoinPadding(address, kind, name)) {
    return {};
  }
  AddRecord(address, kind, IsTextEnd(name) ? uint32_t{MapRecord::kTextEnd} : 0u,
            name);
  return {};
}

void KernelSymbolMapBuilder::AddModuleExtent(Address start, Address end) {
  records_.extents.Add(start.value, end.value);
}

Result<KernelSymbolMap> KernelSymbolMapBuilder::Build() && {
  records_.Arrange();
  auto bytes = EncodeMap(std::move(records_), symbol_count_);
  if (!bytes) return Fail(std::move(bytes.error()));
  return KernelSymbolMap::Adopt(std::move(*bytes));
}

}  // namespace ksym
