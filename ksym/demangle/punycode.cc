// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/punycode.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "ksym/base/utf8.h"

namespace ksym {
namespace {

// The parameters of RFC 3492, section 5.
constexpr uint64_t kBase = 36;
constexpr uint64_t kMinThreshold = 1;
constexpr uint64_t kMaxThreshold = 26;
constexpr uint64_t kSkew = 38;
constexpr uint64_t kDamp = 700;
constexpr uint64_t kInitialBias = 72;
constexpr uint64_t kInitialCharacter = 0x80;

// A larger one has no place in any text of the allowed length.
constexpr uint64_t kMaxDelta =
    (uint64_t{kLastCharacter} + 1) * (kMaxPunycodeCharacters + 1);

std::optional<uint64_t> DigitOf(char c) {
  if (c >= 'a' && c <= 'z') return c - 'a';
  if (c >= '0' && c <= '9') return c - '0' + 26;
  return std::nullopt;
}

// One number of variable length from the front of `text`.
std::optional<uint64_t> TakeDelta(std::string_view& text, uint64_t bias) {
  uint64_t delta = 0;
  uint64_t weight = 1;
  for (uint64_t k = kBase;; k += kBase) {
    if (text.empty()) return std::nullopt;
    const std::optional<uint64_t> digit = DigitOf(text.front());
    text.remove_prefix(1);
    if (!digit) return std::nullopt;
    delta += *digit * weight;
    if (delta > kMaxDelta) return std::nullopt;
    const uint64_t threshold =
        std::clamp(k < bias ? 0 : k - bias, kMinThreshold, kMaxThreshold);
    if (*digit < threshold) return delta;
    weight *= kBase - threshold;
  }
}

uint64_t NextBias(uint64_t delta, uint64_t characters, bool is_first) {
  delta /= is_first ? kDamp : 2;
  delta += delta / characters;
  uint64_t bias = 0;
  while (delta > (kBase - kMinThreshold) * kMaxThreshold / 2) {
    delta /= kBase - kMinThreshold;
    bias += kBase;
  }
  return bias + (kBase - kMinThreshold + 1) * delta / (delta + kSkew);
}

}  // namespace

std::optional<std::string> DecodePunycode(std::string_view mangled) {
  const size_t separator = mangled.rfind('_');
  std::string_view deltas = mangled;
  std::array<uint32_t, kMaxPunycodeCharacters> text;
  size_t size = 0;
  if (separator != mangled.npos) {
    if (separator > text.size()) return std::nullopt;
    std::ranges::copy(mangled.substr(0, separator), text.begin());
    size = separator;
    deltas.remove_prefix(separator + 1);
  }
  if (deltas.empty()) return std::nullopt;
  uint64_t character = kInitialCharacter;
  uint64_t at = 0;
  uint64_t bias = kInitialBias;
  for (bool is_first = true; !deltas.empty(); is_first = false) {
    const std::optional<uint64_t> delta = TakeDelta(deltas, bias);
    if (!delta || size == text.size()) return std::nullopt;
    at += *delta;
    ++size;
    character += at / size;
    at %= size;
    if (!IsCharacter(character)) return std::nullopt;
    std::move_backward(text.begin() + at, text.begin() + size - 1,
                       text.begin() + size);
    text[at++] = static_cast<uint32_t>(character);
    bias = NextBias(*delta, size, is_first);
  }
  std::string out;
  for (size_t i = 0; i < size; ++i) AppendUtf8(text[i], out);
  return out;
}

}  // namespace ksym
