// SPDX-License-Identifier: Apache-2.0
// Conversion of what matters for some addresses, and no more.

#include <algorithm>
#include <utility>

#include "ksym/gsym/gsym_file.h"
#include "ksym/gsym/gsym_lookup.h"
#include "ksym/gsym_convert.h"

namespace ksym {
namespace {

// Wider windows can only have functions that start later, so the second attempt
// lacks nothing.
constexpr int kMaxAttempts = 2;

// No code ends behind the last address.
AddressRange Alone(uint64_t address) {
  const uint64_t end = address + 1;
  return {address, end == 0 ? address : end};
}

// What has been made of an excerpt, and the windows that it does not have.
struct Attempt {
  std::vector<std::byte> bytes;
  std::vector<AddressRange> missing;
};

Result<Attempt> Convert(ElfFunctions& functions,
                        const ElfFunctions::Excerpt& excerpt) {
  GsymWriter writer;
  functions.ForEachBatchOf(
      excerpt, {}, [&](const FunctionBatch& batch) { writer.Add(batch); });
  auto bytes = std::move(writer).Finish(
      functions.build_id().substr(0, kGsymMaxUuidBytes));
  if (!bytes) return Fail(std::move(bytes.error()));
  return Attempt{std::move(*bytes), {}};
}

// A lookup takes the function that starts last. It was seen among the functions
// that touch the window; one that starts and ends before the window was not, so
// the window has to begin where the answer does.
Status FindMissing(std::span<const uint64_t> addresses,
                   const ElfFunctions::Excerpt& excerpt, Attempt& attempt) {
  const auto file = GsymFile::Parse(attempt.bytes);
  if (!file) return Fail(file.error());
  GsymAnswer answer;
  for (const uint64_t address : addresses) {
    const auto found = LookupGsym(*file, {address}, answer);
    if (!found) return Fail(found.error());
    if (!*found) continue;
    const auto window = std::ranges::upper_bound(excerpt.windows, address, {},
                                                 &AddressRange::end);
    if (answer.start.value < window->start) {
      attempt.missing.push_back({answer.start.value, Alone(address).end});
    }
  }
  return {};
}

std::vector<AddressRange> Merged(std::vector<AddressRange> windows) {
  std::ranges::sort(windows, {}, &AddressRange::start);
  std::vector<AddressRange> merged;
  for (const AddressRange& window : windows) {
    if (merged.empty() || merged.back().end < window.start) {
      merged.push_back(window);
    } else {
      merged.back().end = std::max(merged.back().end, window.end);
    }
  }
  return merged;
}

}  // namespace

uint64_t ElfFunctions::entry_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; has_dwarf() && i < dwarf_->unit_count(); ++i) {
    bytes += dwarf_->EntryBytes(i);
  }
  return bytes;
}

AddressRange ElfFunctions::WindowOf(uint64_t address) const {
  const auto& symbols = symbols_.symbols();
  auto symbol = std::ranges::upper_bound(symbols, address, {},
                                         &FunctionSymbols::Symbol::start);
  const AddressRange alone = Alone(address);
  if (symbol == symbols.begin()) return alone;
  const uint64_t start = (symbol - 1)->start;
  for (; symbol != symbols.begin() && (symbol - 1)->start == start; --symbol) {
    if ((symbol - 1)->end > address) return {start, alone.end};
  }
  return alone;
}

std::optional<ElfFunctions::Excerpt> ElfFunctions::ExcerptOf(
    std::vector<AddressRange> windows) {
  Excerpt excerpt;
  excerpt.windows = Merged(std::move(windows));
  if (!has_dwarf()) return excerpt;
  if (!unit_index_) unit_index_.emplace(*dwarf_);
  auto units = unit_index_->UnitsIn(excerpt.windows);
  if (!units) return std::nullopt;
  excerpt.units = std::move(*units);
  for (const uint32_t unit : excerpt.units) {
    excerpt.entry_bytes += dwarf_->EntryBytes(unit);
  }
  return excerpt;
}

Result<GsymExcerpt> ConvertExcerptToGsym(ElfFunctions& functions,
                                         std::span<const uint64_t> addresses,
                                         uint64_t max_entry_bytes) {
  std::vector<AddressRange> windows;
  for (const uint64_t address : addresses) {
    windows.push_back(functions.WindowOf(address));
  }
  uint64_t entry_bytes = 0;
  for (int i = 0; i < kMaxAttempts; ++i) {
    const auto excerpt = functions.ExcerptOf(windows);
    if (!excerpt) return Fail(ErrorCode::kLimit, "too many ranges of units");
    entry_bytes += excerpt->entry_bytes;
    if (entry_bytes > max_entry_bytes) {
      return Fail(ErrorCode::kLimit, "too many units");
    }
    auto attempt = Convert(functions, *excerpt);
    if (!attempt) return Fail(std::move(attempt.error()));
    const auto looked = FindMissing(addresses, *excerpt, *attempt);
    if (!looked) return Fail(looked.error());
    if (attempt->missing.empty()) {
      return GsymExcerpt{std::move(attempt->bytes), entry_bytes};
    }
    windows.insert(windows.end(), attempt->missing.begin(),
                   attempt->missing.end());
  }
  return Fail(ErrorCode::kLimit, "functions within functions");
}

}  // namespace ksym
