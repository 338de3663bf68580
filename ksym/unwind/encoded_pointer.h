// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "ksym/base/byte_reader.h"

namespace ksym {

// How a pointer in .eh_frame is written: a format in the low 4 bits, what it is
// relative to in the next 3, and whether it only leads to the pointer
// (Linux Standard Base Core, 10.5).
class PointerEncoding {
 public:
  PointerEncoding() = default;  // an 8-byte address
  explicit PointerEncoding(uint8_t encoding) : encoding_(encoding) {}

  bool is_omitted() const { return encoding_ == 0xff; }
  // Absolute or relative to its own place, and direct: what can be read without
  // the process's memory.
  bool IsReadable() const {
    const unsigned relative = encoding_ & kRelativeMask;
    return relative == kAbsolute || relative == kPcRelative;
  }

  // The pointer at the reader's position, whose own address is given. Nothing
  // when the encoding is not readable, or the bytes are over.
  std::optional<uint64_t> Read(ByteReader& in, uint64_t own_address) const {
    if (!IsReadable()) return std::nullopt;
    auto value = ReadValue(in);
    if (value && (encoding_ & kRelativeMask) == kPcRelative) {
      *value += own_address;
    }
    return value;
  }
  // The same, without what it is relative to: a length.
  std::optional<uint64_t> ReadValue(ByteReader& in) const {
    if ((encoding_ & kFormatMask) != kSdata4) return ReadOther(in);
    // What compilers write.
    const auto value = static_cast<int32_t>(in.Read<uint32_t>());
    if (!in.ok()) return std::nullopt;
    return static_cast<uint64_t>(int64_t{value});
  }

 private:
  // DW_EH_PE_*.
  static constexpr uint8_t kFormatMask = 0x0f;
  static constexpr uint8_t kSdata4 = 0x0b;
  static constexpr uint8_t kRelativeMask = 0xf0;  // with DW_EH_PE_indirect
  static constexpr uint8_t kAbsolute = 0x00;
  static constexpr uint8_t kPcRelative = 0x10;

  std::optional<uint64_t> ReadOther(ByteReader& in) const;

  uint8_t encoding_ = 0;
};

}  // namespace ksym
