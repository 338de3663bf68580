// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ksym {

// How the JVM writes numbers where they should be small: of one to five bytes,
// the lowest first; of each but the fifth the least 192, or 191, values end the
// number. (UNSIGNED5 of OpenJDK, src/hotspot/share/utilities/unsigned5.hpp.)
enum class HotspotNumbers : uint8_t {
  kAnyByte,  // up to JDK 19
  kNoZero,   // from JDK 20 on: each byte is one more
};

// Reads such numbers one after the other. Borrows the bytes.
class HotspotNumberReader {
 public:
  HotspotNumberReader(std::span<const std::byte> bytes, HotspotNumbers form)
      : rest_(bytes), form_(form) {}

  // Nothing: the bytes end, or there is none in that form.
  std::optional<uint32_t> Next();
  // The same with the lowest bit as the sign.
  std::optional<int32_t> NextSigned();
  std::optional<uint8_t> NextByte();
  size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  HotspotNumbers form_;
};

}  // namespace ksym
