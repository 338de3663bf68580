// SPDX-License-Identifier: Apache-2.0
#include "tests/ksym/kernel/kernel_tables.h"

#include <lzma.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/kernel/symbol_order.h"

namespace ksym_test {
namespace {

constexpr size_t kMaxTableBytes = size_t{64} << 20;

bool IsText(const TableSymbol& symbol) { return ksym::IsTextType(symbol.type); }

// Where the symbols [begin, end) of one address must end at the latest.
uint64_t EndOf(const std::vector<TableSymbol>& symbols, size_t begin,
               size_t end) {
  const TableSymbol& symbol = symbols[begin];
  const uint64_t page = symbol.address / 4096 * 4096 + 4096;
  if (end == symbols.size()) return page;
  const TableSymbol& next = symbols[end];
  if (next.module != symbol.module) return std::min(next.address, page);
  const uint64_t next_page = next.address / 4096 * 4096;
  if (!symbol.module.empty() && IsText(symbol) && !IsText(next) &&
      next_page > symbol.address) {
    return next_page;
  }
  return next.address;
}

bool EndsText(const std::vector<TableSymbol>& symbols, size_t begin,
              size_t end) {
  bool ends = false;
  for (size_t i = begin; i < end; ++i) {
    if (IsText(symbols[i]) && !ksym::IsSectionMark(symbols[i].name)) {
      return false;
    }
    ends = ends || ksym::IsTextEnd(symbols[i].name);
  }
  return ends;
}

}  // namespace

ksym::UniqueFd FdOf(std::string_view text) {
  ksym::UniqueFd fd(::memfd_create("listing", MFD_CLOEXEC));
  if (!fd.valid() || !ksym::WriteAll(fd.get(), text)) std::abort();
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

ksym::KernelSymbolSource TableOf(std::string_view listing) {
  auto map = ksym::LoadKallsyms(FdOf(listing).get());
  if (!map) std::abort();
  return ksym::KernelSymbolSource(std::move(*map));
}

std::string DebianTable() {
  const auto packed = ksym::ReadFile(
      KSYM_TEST_DATA_DIR "/kallsyms-debian-6.1.txt.xz", kMaxTableBytes);
  if (!packed) std::abort();
  std::string text(kMaxTableBytes, '\0');
  uint64_t memory_limit = UINT64_MAX;
  size_t in = 0;
  size_t out = 0;
  const lzma_ret result = ::lzma_stream_buffer_decode(
      &memory_limit, 0, nullptr,
      reinterpret_cast<const uint8_t*>(packed->data()), &in, packed->size(),
      reinterpret_cast<uint8_t*>(text.data()), &out, text.size());
  if (result != LZMA_OK) std::abort();
  text.resize(out);
  text.shrink_to_fit();
  return text;
}

ksym::Result<std::string> RunningTable() {
  auto text = ksym::ReadFile("/proc/kallsyms", kMaxTableBytes);
  if (!text) return text;
  if (text->find_first_not_of("0") == text->find(' ')) {
    return ksym::Fail(ksym::ErrorCode::kPermission,
                      "/proc/kallsyms hides its addresses: needs CAP_SYSLOG "
                      "and kernel.kptr_restrict < 2");
  }
  return text;
}

std::vector<TableSymbol> SortedSymbols(std::string_view text) {
  std::vector<TableSymbol> symbols;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ksym::KallsymsLine parsed;
    std::string_view reason;
    if (ksym::ParseKallsymsLine(line, &parsed, &reason) !=
        ksym::KallsymsLineKind::kSymbol) {
      continue;
    }
    symbols.push_back({parsed.address.value, parsed.type,
                       std::string(ksym::StripCfiSuffix(parsed.name)),
                       std::string(parsed.module)});
  }
  std::ranges::sort(symbols, [](const TableSymbol& a, const TableSymbol& b) {
    if (a.address != b.address) return a.address < b.address;
    if (ksym::AliasBefore({a.name, a.type}, {b.name, b.type})) return true;
    if (ksym::AliasBefore({b.name, b.type}, {a.name, a.type})) return false;
    return a.module < b.module;
  });
  return symbols;
}

std::vector<ReferenceRange> ReferenceRanges(
    const std::vector<TableSymbol>& symbols) {
  std::vector<ReferenceRange> ranges;
  for (size_t begin = 0; begin < symbols.size();) {
    size_t end = begin;
    while (end < symbols.size() &&
           symbols[end].address == symbols[begin].address) {
      ++end;
    }
    ReferenceRange range;
    range.start = symbols[begin].address;
    range.end = EndOf(symbols, begin, end);
    range.symbol = symbols[begin];
    range.answers = IsText(range.symbol) && !EndsText(symbols, begin, end);
    if (range.symbol.name.starts_with(ksym::kPaddingPrefix)) {
      range.in_prefix = true;
      range.symbol.name.erase(0, ksym::kPaddingPrefix.size());
    }
    ranges.push_back(range);
    const uint64_t next =
        end < symbols.size() ? symbols[end].address : UINT64_MAX;
    if (range.end < next) {
      ranges.push_back({.start = range.end, .end = next, .symbol = {}});
    }
    begin = end;
  }
  return ranges;
}

}  // namespace ksym_test
