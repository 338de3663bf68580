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
  bool IsReadable() const;

  // The pointer at the reader's position, whose own address is given. Nothing
  // when the encoding is not readable, or the bytes are over.
  std::optional<uint64_t> Read(ByteReader& in, uint64_t own_address) const;
  // The same, without what it is relative to: a length.
  std::optional<uint64_t> ReadValue(ByteReader& in) const;

 private:
  uint8_t encoding_ = 0;
};

}  // namespace ksym
