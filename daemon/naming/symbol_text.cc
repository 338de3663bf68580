// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/symbol_text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace profd {

// Names of Linux 5.8 and later (arch/x86/include/asm/idtentry.h,
// arch/x86/entry/entry_64_fred.S).
bool IsInterruptEntry(std::string_view symbol) {
  constexpr std::string_view kPrefixes[] = {
      "asm_sysvec_", "asm_exc_", "asm_common_interrupt",
      "asm_spurious_interrupt", "asm_fred_entrypoint_kernel"};
  return symbol.starts_with("asm_") &&
         std::ranges::any_of(kPrefixes, [symbol](std::string_view prefix) {
           return symbol.starts_with(prefix);
         });
}

std::string InBrackets(std::string_view path) {
  if (path.starts_with('[')) return std::string(path);
  const std::string_view base = path.substr(path.rfind('/') + 1);
  std::string name = "[";
  name += base;
  name += ']';
  return name;
}

std::string FunctionAt(std::string_view path, ksym::ElfAddress start) {
  std::array<char, 16> digits = {};
  const auto [end, error] = std::to_chars(
      digits.data(), digits.data() + digits.size(), start.value, 16);
  std::string name(path.substr(path.rfind('/') + 1));
  name += "+0x";
  name.append(digits.data(), end);
  return name;
}

std::optional<BpfProgramName> SplitBpfProgramName(std::string_view symbol) {
  constexpr std::string_view kPrefix = "bpf_prog_";
  constexpr size_t kTagDigits = 16;
  if (!symbol.starts_with(kPrefix)) return std::nullopt;
  const std::string_view tag = symbol.substr(kPrefix.size(), kTagDigits);
  const std::string_view rest =
      symbol.substr(std::min(symbol.size(), kPrefix.size() + kTagDigits));
  if (tag.size() != kTagDigits || !rest.starts_with('_') || rest.size() < 2 ||
      tag.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  return BpfProgramName{std::string(kPrefix) + std::string(rest.substr(1)),
                        tag};
}

}  // namespace profd
