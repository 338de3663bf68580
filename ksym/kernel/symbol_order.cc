// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/symbol_order.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace ksym {
namespace {

int Linkage(char type) {
  if (type == 'W' || type == 'w' || type == 'V' || type == 'v') return 2;
  return type >= 'A' && type <= 'Z' ? 0 : 1;
}

std::string_view WithoutPaddingPrefix(std::string_view name) {
  if (name.starts_with(kPaddingPrefix)) {
    name.remove_prefix(kPaddingPrefix.size());
  }
  return name;
}

auto Rank(const AliasKey& key) {
  const std::string_view name = WithoutPaddingPrefix(key.name);
  const size_t underscores = std::min(name.find_first_not_of('_'), name.size());
  return std::make_tuple(!IsTextType(key.type), IsSectionMark(name),
                         Linkage(key.type), underscores,
                         name.find('.') != std::string_view::npos, name.size(),
                         name, key.name.size(), key.type);
}

}  // namespace

bool IsTextEnd(std::string_view name) {
  return name == "_etext" || name == "_einittext";
}

bool IsSectionMark(std::string_view name) {
  if (!name.starts_with('_')) return false;
  if (name == "_text" || name == "_stext" || name == "_sinittext" ||
      IsTextEnd(name)) {
    return true;
  }
  return name.starts_with("__") &&
         (name.ends_with("_start") || name.ends_with("_end") ||
          name.ends_with("_begin"));
}

bool AliasBefore(const AliasKey& a, const AliasKey& b) {
  return Rank(a) < Rank(b);
}

}  // namespace ksym
