// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/encoded_pointer.h"

#include <type_traits>

namespace ksym {
namespace {

// DW_EH_PE_*.
constexpr uint8_t kUleb128 = 0x01;
constexpr uint8_t kUdata2 = 0x02;
constexpr uint8_t kUdata4 = 0x03;
constexpr uint8_t kUdata8 = 0x04;
constexpr uint8_t kSleb128 = 0x09;
constexpr uint8_t kSdata2 = 0x0a;
constexpr uint8_t kSdata8 = 0x0c;

template <typename Signed>
uint64_t Extend(std::make_unsigned_t<Signed> value) {
  return static_cast<uint64_t>(int64_t{static_cast<Signed>(value)});
}

}  // namespace

std::optional<uint64_t> PointerEncoding::ReadOther(ByteReader& in) const {
  uint64_t value = 0;
  switch (encoding_ & kFormatMask) {
    case kUdata4:
      value = in.Read<uint32_t>();
      break;
    case kAbsolute:
    case kUdata8:
    case kSdata8:
      value = in.Read<uint64_t>();
      break;
    case kUdata2:
      value = in.Read<uint16_t>();
      break;
    case kSdata2:
      value = Extend<int16_t>(in.Read<uint16_t>());
      break;
    case kUleb128:
      value = in.ReadUleb128();
      break;
    case kSleb128:
      value = static_cast<uint64_t>(in.ReadSleb128());
      break;
    default:
      return std::nullopt;
  }
  if (!in.ok()) return std::nullopt;
  return value;
}

}  // namespace ksym
