// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/rust_constants.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace ksym {
namespace {

constexpr std::string_view kPrefix = "0x";
constexpr std::string_view kHexDigits = "0123456789abcdef";
// Shorter constants are written in decimal digits.
constexpr size_t kMinDigits = 16;
// No program's name has as many; hostile ones are looked at no longer.
constexpr size_t kMaxConstants = 16;

bool IsHexDigit(char c) { return kHexDigits.find(c) != kHexDigits.npos; }

bool IsWordByte(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// The constant's digits and its "_", if one is at `at` of the text.
std::string_view ConstantAt(std::string_view text, size_t at) {
  if (at > 0 && IsWordByte(text[at - 1])) return {};
  const std::string_view rest = text.substr(at + kPrefix.size());
  const size_t digits = rest.find_first_not_of(kHexDigits);
  if (digits == rest.npos || digits < kMinDigits || rest[digits] != '_') {
    return {};
  }
  return rest.substr(0, digits + 1);
}

// Where such constants are in the text.
std::vector<size_t> FindConstants(std::string_view text) {
  std::vector<size_t> found;
  for (size_t at = text.find(kPrefix); at != text.npos;
       at = text.find(kPrefix, at + 1)) {
    if (!ConstantAt(text, at).empty()) found.push_back(at);
  }
  return found;
}

// The digits that are in front of `tail` in constants that end so, in order.
std::string FirstDigits(std::string_view mangled, std::string_view tail) {
  std::string digits;
  for (size_t at = mangled.find(tail, 2); at < mangled.npos;
       at = mangled.find(tail, at + 1)) {
    // No type of an integer of that size is a hexadecimal digit.
    if (IsHexDigit(mangled[at - 1]) && !IsHexDigit(mangled[at - 2])) {
      digits += mangled[at - 1];
    }
  }
  return digits;
}

}  // namespace

bool RestoreLongConstants(std::string_view mangled, std::string& text) {
  const std::vector<size_t> places = FindConstants(text);
  if (places.size() > kMaxConstants) return false;
  std::vector<char> missing;
  for (size_t i = 0; i < places.size(); ++i) {
    const std::string_view tail = ConstantAt(text, places[i]);
    const std::string digits = FirstDigits(mangled, tail);
    const auto is_same = [&](size_t at) {
      return ConstantAt(text, at) == tail;
    };
    // A back reference shows a constant again, so that it is not known which.
    const bool in_order =
        std::cmp_equal(std::ranges::count_if(places, is_same), digits.size());
    const bool is_one =
        !digits.empty() && digits.find_first_not_of(digits[0]) == digits.npos;
    if (!is_one && !in_order) return false;
    const auto before = std::count_if(
        places.begin(), places.begin() + static_cast<ptrdiff_t>(i), is_same);
    missing.push_back(is_one ? digits[0] : digits[static_cast<size_t>(before)]);
  }
  for (size_t i = places.size(); i > 0; --i) {
    const size_t digits_at = places[i - 1] + kPrefix.size();
    const size_t size = ConstantAt(text, places[i - 1]).size();
    text.erase(digits_at + size - 1, 1);
    text.insert(digits_at, 1, missing[i - 1]);
  }
  return true;
}

}  // namespace ksym
