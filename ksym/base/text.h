// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace ksym {

// The whole of `text` as an unsigned number; nothing when it is empty, has
// other characters (also a sign or "0x") or does not fit T.
template <std::unsigned_integral T = uint64_t>
std::optional<T> ParseUnsigned(std::string_view text, int base) {
  T value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// The digits behind a decimal point, one to three of them, as thousandths;
// nothing for anything else.
inline std::optional<uint32_t> ParseThousandths(std::string_view digits) {
  constexpr uint32_t kOfLastDigit[] = {100, 10, 1};
  if (digits.empty() || digits.size() > 3) return std::nullopt;
  auto number = ParseUnsigned<uint32_t>(digits, 10);
  if (number) *number *= kOfLastDigit[digits.size() - 1];
  return number;
}

// Takes the part of `text` before the first `separator` off its front, with
// the separator; all of it when there is none.
inline std::string_view TakeField(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view field = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return field;
}

inline std::string_view TrimLeft(std::string_view text, char c = ' ') {
  const size_t at = text.find_first_not_of(c);
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

}  // namespace ksym
