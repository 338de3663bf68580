// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kallsyms_reader.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/text.h"
#include "ksym/kernel/kernel_symbol_map_builder.h"
#include "ksym/kernel/module_list.h"

namespace ksym {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kMaxAddressDigits = 16;

// The value of each character as a hexadecimal digit, or kNoDigit.
constexpr uint8_t kNoDigit = 0xff;
constexpr auto kHexDigits = [] {
  std::array<uint8_t, 256> digits = {};
  digits.fill(kNoDigit);
  for (uint8_t i = 0; i < 10; ++i) digits[size_t{'0'} + i] = i;
  for (uint8_t i = 0; i < 6; ++i) {
    digits[size_t{'a'} + i] = digits[size_t{'A'} + i] = uint8_t(10 + i);
  }
  return digits;
}();

// The value of the first eight characters, if they are hexadecimal digits in
// lower case.
[[gnu::always_inline]] inline bool ParseEightHex(std::string_view text,
                                                 uint64_t& value) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  uint64_t word = 0;
  std::memcpy(&word, text.data(), sizeof word);
  // Letters, 0x61 to 0x66, have this bit, digits, 0x30 to 0x39, do not.
  const uint64_t letters = word >> 6 & kOnes;
  const uint64_t nibbles = (word & 15 * kOnes) + 9 * letters;
  const uint64_t above_9 = (nibbles + 6 * kOnes) >> 4 & kOnes;
  const uint64_t digits = nibbles + '0' * kOnes + ('a' - '0' - 10) * letters;
  if ((nibbles & 0xf0 * kOnes) != 0 || above_9 != letters || digits != word) {
    return false;
  }
  uint64_t packed = __builtin_bswap64(nibbles);
  packed = (packed | packed >> 4) & 0x00ff00ff00ff00ff;
  packed = (packed | packed >> 8) & 0x0000ffff0000ffff;
  value = (packed | packed >> 16) & 0xffffffff;
  return true;
}

// Takes the digits off the front; returns how many there were.
size_t TakeHex(std::string_view& text, uint64_t& value) {
  uint64_t high = 0;
  uint64_t low = 0;
  if (text.size() > kMaxAddressDigits && text[kMaxAddressDigits] == ' ' &&
      ParseEightHex(text, high) && ParseEightHex(text.substr(8), low)) {
    value = high << 32 | low;
    text.remove_prefix(kMaxAddressDigits);
    return kMaxAddressDigits;
  }
  size_t digits = 0;
  for (; digits < text.size() && digits <= kMaxAddressDigits; ++digits) {
    const uint8_t digit = kHexDigits[static_cast<uint8_t>(text[digits])];
    if (digit == kNoDigit) break;
    value = value << 4 | digit;
  }
  text.remove_prefix(digits);
  return digits;
}

bool IsPrintable(char c) { return c > ' ' && c <= '~'; }

// `nm` pads the place of the address of an undefined symbol with spaces.
bool IsUndefined(std::string_view text) {
  const std::string_view rest = TrimLeft(text);
  return rest.size() > 2 && rest.size() < text.size() && IsPrintable(rest[0]) &&
         rest[1] == ' ';
}

}  // namespace

KallsymsLineKind ParseKallsymsLine(std::string_view text, KallsymsLine* line,
                                   std::string_view* reason) {
  std::string_view rest = text;
  uint64_t address = 0;
  const size_t digits = TakeHex(rest, address);
  const auto malformed = [&](std::string_view why) {
    *reason = why;
    return KallsymsLineKind::kMalformed;
  };
  if (digits == 0) {
    if (IsUndefined(text)) return KallsymsLineKind::kUndefined;
    return malformed("no hexadecimal address");
  }
  if (digits > kMaxAddressDigits) return malformed("address too long");
  if (rest.size() < 3 || rest[0] != ' ' || !IsPrintable(rest[1]) ||
      rest[2] != ' ') {
    return malformed("no symbol type");
  }
  line->type = rest[1];
  rest.remove_prefix(3);
  line->module = {};
  if (rest.ends_with(']')) {
    const size_t tab = rest.rfind("\t[");
    if (tab != std::string_view::npos) {
      line->module = rest.substr(tab + 2, rest.size() - tab - 3);
      rest = rest.substr(0, tab);
    }
  }
  if (rest.empty()) return malformed("no symbol name");
  line->address = Address{address};
  line->name = rest;
  return KallsymsLineKind::kSymbol;
}

namespace {

// What the whole listing says about itself.
Status CheckReport(const KallsymsReport& report) {
  if (report.symbols > 0 && report.zero_addresses == report.symbols) {
    return Fail(ErrorCode::kPermission,
                "kernel addresses are hidden: needs CAP_SYSLOG and "
                "kernel.kptr_restrict < 2");
  }
  if (report.symbols == 0 && report.malformed > 0) {
    return Fail(ErrorCode::kCorrupt,
                "not a symbol listing: line " +
                    std::to_string(report.first_malformed_line) + ": " +
                    report.first_malformed_reason);
  }
  return {};
}

// Counts a line that is no symbol.
void CountOther(KallsymsLineKind kind, std::string_view reason,
                KallsymsReport& report) {
  if (kind == KallsymsLineKind::kUndefined) {
    ++report.undefined;
  } else if (report.malformed++ == 0) {
    report.first_malformed_line = report.lines;
    report.first_malformed_reason = reason;
  }
}

// ReadKallsyms for any callable, so that a call per line can be inlined.
template <typename Callback>
Status ReadListing(ByteStream& source, KallsymsReport& report,
                   const Callback& symbol) {
  Status status;
  const auto read = ForEachBlockOfLines(source, [&](std::string_view lines) {
    while (status && !lines.empty()) {
      ++report.lines;
      KallsymsLine line;
      std::string_view reason;
      const auto kind =
          ParseKallsymsLine(TakeField(lines, '\n'), &line, &reason);
      if (kind != KallsymsLineKind::kSymbol) [[unlikely]] {
        CountOther(kind, reason, report);
        continue;
      }
      ++report.symbols;
      if (line.address.value == 0) ++report.zero_addresses;
      if (Status taken = symbol(line); !taken) [[unlikely]] {
        status = std::move(taken);
      }
    }
    return status.has_value();
  });
  if (!status) return status;
  if (!read) return read;
  return CheckReport(report);
}

}  // namespace

Status ReadKallsyms(int fd, KallsymsReport& report,
                    const std::function<Status(const KallsymsLine&)>& symbol) {
  FdStream source(fd);
  return ReadListing(source, report, symbol);
}

Result<KernelSymbolMap> LoadKallsyms(int fd, KallsymsReport* report) {
  FdStream source(fd);
  return LoadKallsyms(source, {}, report);
}

Result<KernelSymbolMap> LoadKallsyms(ByteStream& source,
                                     std::string_view modules,
                                     KallsymsReport* report) {
  KernelSymbolMapBuilder builder;
  for (const KernelModule& module : ParseModules(modules)) {
    builder.AddModuleExtent(module.memory.start,
                            module.memory.start + module.bytes);
  }
  KallsymsReport own_report;
  const auto read = ReadListing(
      source, report != nullptr ? *report : own_report,
      [&](const KallsymsLine& line) {
        return builder.Add({line.address, line.type, line.name, line.module});
      });
  if (!read) return Fail(read.error());
  return std::move(builder).Build();
}

}  // namespace ksym
