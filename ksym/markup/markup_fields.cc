// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_fields.h"

#include "ksym/base/text.h"

namespace ksym {
namespace {

char ToLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (ToLower(c) >= 'a' && ToLower(c) <= 'f');
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<Address> ParseMarkupAddress(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text.find_first_not_of('0') == std::string_view::npos) return Address{};
  if (!text.starts_with("0x")) return std::nullopt;
  const auto value = ParseUnsigned(text.substr(2), 16);
  if (!value) return std::nullopt;
  return Address{*value};
}

std::optional<uint64_t> ParseMarkupInteger(std::string_view text) {
  const auto starts = [text](char letter) {
    return text.size() > 1 && text[0] == '0' && ToLower(text[1]) == letter;
  };
  if (starts('x')) return ParseUnsigned(text.substr(2), 16);
  if (starts('b')) return ParseUnsigned(text.substr(2), 2);
  if (text.starts_with("0o")) return ParseUnsigned(text.substr(2), 8);
  if (text.size() > 1 && text[0] == '0' && IsDigit(text[1])) {
    return ParseUnsigned(text.substr(1), 8);
  }
  return ParseUnsigned(text, 10);
}

std::optional<std::string> ParseMarkupBytes(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::string hex(text.size() % 2, '0');
  for (const char c : text) {
    if (!IsHexDigit(c)) return std::nullopt;
    hex += ToLower(c);
  }
  return hex;
}

std::optional<std::string> ParseMarkupMode(std::string_view text) {
  std::string mode;
  for (const char c : std::string_view("rwx")) {
    if (mode.size() < text.size() && ToLower(text[mode.size()]) == c) mode += c;
  }
  if (mode.empty() || mode.size() != text.size()) return std::nullopt;
  return mode;
}

}  // namespace ksym
