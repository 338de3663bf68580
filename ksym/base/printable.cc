// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/printable.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ksym/base/utf8.h"

namespace ksym {
namespace {

constexpr char kReplacement = '?';

struct Decoded {
  uint32_t code_point = 0;
  size_t size = 0;  // 0: not valid UTF-8
};

// The character at the start of `text`, which is not ASCII (RFC 3629: no
// overlong forms, no surrogates, nothing above U+10FFFF).
Decoded DecodeMultibyte(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  size_t size = 0;
  uint32_t smallest = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    size = 2;
    smallest = 0x80;
  } else if ((lead & 0xf0u) == 0xe0) {
    size = 3;
    smallest = 0x800;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    size = 4;
    smallest = 0x10000;
  }
  if (size == 0 || text.size() < size) return {};
  uint32_t code_point = lead & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return {};
    code_point = code_point << 6 | (byte(i) & 0x3fu);
  }
  if (code_point < smallest || !IsCharacter(code_point)) return {};
  return {.code_point = code_point, .size = size};
}

bool IsHarmful(uint32_t code_point) {
  return code_point <= 0x9f ||                              // C1 controls
         code_point == 0x2028 || code_point == 0x2029 ||    // line separators
         (code_point >= 0x202a && code_point <= 0x202e) ||  // bidi overrides
         (code_point >= 0x2066 && code_point <= 0x2069);    // bidi isolates
}

bool IsPlainAscii(char c) { return c >= 0x20 && c < 0x7f; }

// How many characters at the start are plain ASCII. Eight at a time: names of
// a report are many megabytes, and hardly one has anything else.
size_t CountPlain(std::string_view text) {
  constexpr uint64_t kEach = 0x0101010101010101;
  constexpr uint64_t kHighBits = 0x80 * kEach;
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= text.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, sizeof(word));
    // The high bit of a byte, or of one of two sums without carries, tells
    // that it is not ASCII, is 0x7f, or is not at least 0x20.
    const uint64_t low = word & ~kHighBits;
    const uint64_t is_printing = low + 0x60 * kEach;
    const uint64_t is_delete = low + kEach;
    if (((word | is_delete | ~is_printing) & kHighBits) != 0) break;
  }
  while (i < text.size() && IsPlainAscii(text[i])) ++i;
  return i;
}

}  // namespace

std::string Printable(std::string_view name) {
  std::string out;
  AppendPrintable(name, out);
  return out;
}

bool IsPrintableAscii(std::string_view text) {
  return CountPlain(text) == text.size();
}

void AppendPrintable(std::string_view name, std::string& out) {
  while (!name.empty()) {
    const size_t plain = CountPlain(name);
    out.append(name.substr(0, plain));
    name.remove_prefix(plain);
    if (name.empty()) return;
    const bool is_ascii = static_cast<uint8_t>(name[0]) < 0x80;
    const Decoded decoded = is_ascii ? Decoded{} : DecodeMultibyte(name);
    const size_t size = std::max<size_t>(decoded.size, 1);
    if (decoded.size == 0 || IsHarmful(decoded.code_point)) {
      out.append(size, kReplacement);
    } else {
      out.append(name.substr(0, size));
    }
    name.remove_prefix(size);
  }
}

}  // namespace ksym
