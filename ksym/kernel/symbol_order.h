// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ksym {

// The prefix the kernel gives to the padding before a function (objtool,
// CONFIG_PREFIX_SYMBOLS).
inline constexpr std::string_view kPaddingPrefix = "__pfx_";

// True for the nm(1) letters of code: T, t, W, w.
constexpr bool IsTextType(char type) {
  return type == 'T' || type == 't' || type == 'W' || type == 'w';
}

// True for names that linker scripts put at the edges of sections: `_text`,
// `_stext`, `_etext`, `_sinittext`, `_einittext`, `__*_start`, `__*_end`,
// `__*_begin`. They name a place, not a function.
bool IsSectionMark(std::string_view name);

// True for `_etext` and `_einittext`: no code follows.
bool IsTextEnd(std::string_view name);

// What Clang's old control-flow integrity appended (`.cfi`, `.cfi_jt`) goes;
// every other suffix (`.cold`, `.isra.0`, `.llvm.123`) says something true
// about the code and stays.
inline std::string_view StripCfiSuffix(std::string_view name) {
  for (const std::string_view suffix : {".cfi_jt", ".cfi"}) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) {
      name.remove_suffix(suffix.size());
      return name;
    }
  }
  return name;
}

// A symbol among those that share its address.
struct AliasKey {
  std::string_view name;
  char type = 0;
};

// The alias rule: which of the names at one address is the answer, for its
// first byte and for every other. True when `a` goes before `b`:
//   1. code before anything else
//   2. functions before section marks
//   3. global before local before weak, which is the name of a fallback
//   4. fewer leading underscores
//   5. no `.suffix` before one
//   6. the shorter name
//   7. byte order of the names, then of the types
// `__pfx_X` stands where X would. A strict weak order, total for distinct
// (name, type).
bool AliasBefore(const AliasKey& a, const AliasKey& b);

}  // namespace ksym
