// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/hotspot/numbers.h"

namespace ksym {

std::optional<uint8_t> HotspotNumberReader::NextByte() {
  if (rest_.empty()) return std::nullopt;
  const auto byte = std::to_integer<uint8_t>(rest_.front());
  rest_ = rest_.subspan(1);
  return byte;
}

std::optional<uint32_t> HotspotNumberReader::Next() {
  constexpr uint32_t kDigitBits = 6;
  constexpr uint32_t kMaxDigits = 5;
  constexpr uint32_t kHigh = 1u << kDigitBits;  // values of a digit that go on
  const uint32_t excluded = form_ == HotspotNumbers::kNoZero ? 1 : 0;
  const uint32_t low = 256 - excluded - kHigh;
  uint32_t number = 0;
  for (uint32_t i = 0; i < kMaxDigits; ++i) {
    const auto byte = NextByte();
    if (!byte || *byte < excluded) return std::nullopt;
    const uint32_t digit = *byte - excluded;
    number += digit << i * kDigitBits;
    if (digit < low) break;
  }
  return number;
}

std::optional<int32_t> HotspotNumberReader::NextSigned() {
  const auto number = Next();
  if (!number) return std::nullopt;
  const uint32_t sign = 0 - (*number & 1);
  return static_cast<int32_t>(*number >> 1 ^ sign);
}

}  // namespace ksym
