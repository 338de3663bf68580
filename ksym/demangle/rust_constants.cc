// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/rust_constants.h"

#include <cstdint>

#include "ksym/base/text.h"
#include "ksym/base/utf8.h"

namespace ksym {
namespace {

std::string IntegerText(std::string_view digits) {
  const auto value = ParseUnsigned(digits, 16);
  return value ? std::to_string(*value) : "0x" + std::string(digits);
}

std::optional<std::string> BooleanText(std::string_view digits) {
  if (digits == "0") return "false";
  if (digits == "1") return "true";
  return std::nullopt;
}

// As Rust's own output for debugging has it, but for letters outside of ASCII.
std::optional<std::string> CharacterText(std::string_view digits) {
  const auto value = ParseUnsigned<uint32_t>(digits, 16);
  if (digits.size() > 6 || !value || !IsCharacter(*value)) return std::nullopt;
  const char c = static_cast<char>(*value);
  std::string text = "'";
  if (*value == '\t') {
    text += "\\t";
  } else if (*value == '\r') {
    text += "\\r";
  } else if (*value == '\n') {
    text += "\\n";
  } else if (*value < ' ' || *value > '~') {
    const std::string_view shortest = TrimLeft(digits, '0');
    text.append("\\u{").append(shortest.empty() ? "0" : shortest).append("}");
  } else {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  return text + "'";
}

}  // namespace

std::optional<std::string> RustConstant(char type, std::string_view digits) {
  if (type == 'b') return BooleanText(digits);
  if (type == 'c') return CharacterText(digits);
  return IntegerText(digits);
}

}  // namespace ksym
