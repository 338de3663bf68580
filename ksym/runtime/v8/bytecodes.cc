// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/bytecodes.h"

#include "ksym/base/byte_cursor.h"

namespace ksym {
namespace {

// For each length of operands the sizes of all byte codes: a table that
// programs have with the name
// v8::internal::interpreter::Bytecodes::kBytecodeSizes.

// 10.2.
constexpr std::string_view kFixedNode18 =
    "1111111113311111111111111111111121111111111121111111111211111111"
    "1111111111111111111111111111111111111332211111111111111122112121"
    "2111111111111111111111111111111111111111111111111111111111111111"
    "111111";
constexpr std::string_view kScaledNode18 =
    "0000012342310100000133111211100002223113313313322233333312222222"
    "2222222222222222211110001114434542344232244222222221111022012022"
    "2122220002111111111111111111111131224100001001343301100000000000"
    "000000";

// 11.3.
constexpr std::string_view kFixedNode20 =
    "1111111113311111111111111111111121111111111121111111121211111111"
    "1111111111111111111111111111111111111332211111111111111132112121"
    "2111111111111111111111111111111111111111111111111111111111111111"
    "111111";
constexpr std::string_view kScaledNode20 =
    "0000012342310100000133111211100002223113313313322233333322222222"
    "2222222222222222111100011134434542344232244222222221111022012022"
    "2122220003111111111111111111111131224100001001343301100000000000"
    "000000";

// 12.4.
constexpr std::string_view kFixedNode22 =
    "1111111113311111111111111111111121111111111111211111111121211111"
    "1111111111111111111111111111111111111111332211111111111111111321"
    "1212121111111111111111111111111111111111111111111111111111111111"
    "11111111111";
constexpr std::string_view kScaledNode22 =
    "0000012342310100000133111211100002223131133133133242233333322222"
    "2222222222222222222111100011134434542344232244222222222011100220"
    "1202221222200031111111111111111111111312241000010013433011000000"
    "00000000000";

// 13.6.
constexpr std::string_view kFixedNode24 =
    "1111111113311111111111111111111111211111111111111121111111112121"
    "1111111111111111111111111111111111111111111133221111111111111111"
    "1321121212111111111111111111111111111111111111111111111111111111"
    "1111111111111111";
constexpr std::string_view kScaledNode24 =
    "0000012342310100000133311112111000022231311333133313324223333332"
    "2222222222222222222222211110011113443454234423224422222222201110"
    "0220120222122220003111111111131111111111113312410000100134330110"
    "0000000000000000";

// 14.6.
constexpr std::string_view kFixedNode26 =
    "1111111113311111111111111111111111211111111111111121111111112121"
    "1111111111112111111111111111111111111111111111332211133333311111"
    "1113211212121111111111111111111111111111111111111111111111111111"
    "11211111111111111111";
constexpr std::string_view kScaledNode26 =
    "0000012342310100000133311112111000022231311333133313324223333332"
    "2222222222222222222222222111100111134434542344232244211111122011"
    "1002201202221222220003111111111131111111111113312414000010013433"
    "01000000000000000000";

// Prefixes: operands that have a length to choose have that many bytes.
constexpr uint8_t kWide = 0;
constexpr uint8_t kExtraWide = 1;
// The same where a breakpoint was.
constexpr uint8_t kDebugBreakWide = 2;
constexpr uint8_t kDebugBreakExtraWide = 3;

// 0: it is no prefix.
size_t ScaleOf(uint8_t bytecode) {
  switch (bytecode) {
    case kWide:
    case kDebugBreakWide:
      return 2;
    case kExtraWide:
    case kDebugBreakExtraWide:
      return 4;
    default:
      return 0;
  }
}

size_t DigitAt(std::string_view digits, size_t place) {
  return static_cast<size_t>(digits[place] - '0');
}

}  // namespace

std::optional<size_t> V8Bytecodes::SizeAt(std::span<const std::byte> code,
                                          size_t offset) const {
  if (offset >= code.size()) return std::nullopt;
  const size_t scale = ScaleOf(std::to_integer<uint8_t>(code[offset]));
  const size_t prefix = scale == 0 ? 0 : 1;
  if (offset + prefix >= code.size()) return std::nullopt;
  const auto bytecode = std::to_integer<uint8_t>(code[offset + prefix]);
  if (bytecode >= fixed.size() || bytecode >= scaled.size()) {
    return std::nullopt;
  }
  return prefix + DigitAt(fixed, bytecode) +
         (scale == 0 ? 1 : scale) * DigitAt(scaled, bytecode);
}

V8Bytecodes V8BytecodesOf(std::string_view version) {
  if (version == "10.2") return {kFixedNode18, kScaledNode18};
  if (version == "11.3") return {kFixedNode20, kScaledNode20};
  if (version == "12.4") return {kFixedNode22, kScaledNode22};
  if (version == "13.6") return {kFixedNode24, kScaledNode24};
  if (version == "14.6") return {kFixedNode26, kScaledNode26};
  return {};
}

std::optional<uint32_t> FindV8BaselineOffset(
    std::span<const std::byte> table, std::span<const std::byte> bytecode,
    const V8Bytecodes& bytecodes, uint64_t offset) {
  ByteCursor in(table);
  uint64_t end = 0;   // of what the instruction became
  size_t at = 0;      // where that is in the byte code
  size_t behind = 0;  // the first number is of what is in front
  while (!in.AtEnd()) {
    end += in.ReadUleb128();
    if (!in.ok()) return std::nullopt;
    if (offset < end) return static_cast<uint32_t>(at);
    const auto size = bytecodes.SizeAt(bytecode, behind);
    if (!size) return std::nullopt;
    at = behind;
    behind += *size;
  }
  return std::nullopt;
}

}  // namespace ksym
