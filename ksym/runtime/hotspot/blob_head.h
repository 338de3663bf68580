// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "ksym/base/address.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// The begin of a CodeBlob, as it is at one time.
class HotspotBlobHead {
 public:
  // Nothing: it cannot be read.
  static std::optional<HotspotBlobHead> Read(const Memory& memory,
                                             Address blob) {
    HotspotBlobHead head;
    // It may be at the end of what is mapped.
    head.size_ = memory.ReadSome(blob, head.bytes_);
    if (head.size_ == 0) return std::nullopt;
    return head;
  }
  // A member; 0: it would be behind what could be read.
  template <typename T>
  T At(uint16_t offset) const {
    T value = {};
    if (size_t{offset} + sizeof(value) <= size_) {
      std::memcpy(&value, &bytes_[offset], sizeof(value));
    }
    return value;
  }

 private:
  std::array<std::byte, HotspotLayout::kBlobBytes> bytes_ = {};
  size_t size_ = 0;
};

}  // namespace ksym
