// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/x86_64/instruction_fields.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace ksym {
namespace {

// What follows an opcode, by the opcode, sixteen a line (Intel SDM 2, appendix
// A). "." nothing, "m" ModRM, "b" one byte, "M" ModRM and a byte, "z" four
// bytes or two, "Z" ModRM and that, "v" the same, but eight with REX.W, "j"
// four bytes of a jump, "w" two bytes, "e" three, "o" an address, "3" the third
// group, "c" ModRM without memory, "x" no such instruction, "p" a prefix.
constexpr std::string_view kOneByteMap =
    "mmmmbzxxmmmmbzxp"
    "mmmmbzxxmmmmbzxx"
    "mmmmbzpxmmmmbzpx"
    "mmmmbzpxmmmmbzpx"
    "pppppppppppppppp"
    "................"
    "xxpmppppzZbM...."
    "bbbbbbbbbbbbbbbb"
    "MZxMmmmmmmmmmmmm"
    "..........x....."
    "oooo....bz......"
    "bbbbbbbbvvvvvvvv"
    "MMw.ppMZe.w..bx."
    "mmmmxxx.mmmmmmmm"
    "bbbbbbbbjjxb...."
    "p.pp..33......mm";
constexpr std::string_view k0fMap =
    "mmmmx.....x.xm.M"
    "mmmmmmmmmmmmmmmm"
    "ccccxxxxmmmmmmmm"
    "......x.pxpxxxxx"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "MMMMmmm.mmxxmmmm"
    "jjjjjjjjjjjjjjjj"
    "mmmmmmmmmmmmmmmm"
    "...mMmmm...mMmmm"
    "mmmmmmmmmmMmmmmm"
    "mmMmMMMm........"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm";
constexpr std::string_view k0f38Map =
    "mmmmmmmmmmmmxxxx"
    "mxxxmmxmxxxxmmmx"
    "mmmmmmxxmmmmxxxx"
    "mmmmmmmmmmmmmmmm"
    "mmxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "mmmxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "xxxxxxxxmmmmmmxm"
    "xxxxxxxxmxxmmmmm"
    "xxxxxxxxxxxxxxxx"
    "mmxxxmmxmmmmxxxx";
constexpr std::string_view k0f3aMap =
    "xxxxxxxxMMMMMMMM"
    "xxxxMMMMxxxxxxxx"
    "MMMxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "MMMxMxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "MMMMxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxMxMM"
    "xxxxxxxxxxxxxxxM"
    "xxxxxxxxxxxxxxxx"
    "Mxxxxxxxxxxxxxxx";
static_assert(kOneByteMap.size() == 256 && k0fMap.size() == 256);
static_assert(k0f38Map.size() == 256 && k0f3aMap.size() == 256);

class Parser {
 public:
  explicit Parser(std::span<const std::byte> code)
      : code_(code.first(std::min(code.size(), kMaxInstructionBytes))) {}

  InstructionFields Parse() {
    ParsePrefixes();
    ParseOpcode();
    const char form = ok_ ? FormOf() : 'x';
    if (form == 'x' || form == 'p') return {};
    if (std::string_view("mMZ3c").find(form) != std::string_view::npos) {
      ParseModRm(form == 'c');
    }
    ParseImmediate(form);
    if (!ok_) return {};
    fields_.size = at_;
    return fields_;
  }

 private:
  uint8_t Byte() {
    if (at_ >= code_.size()) {
      ok_ = false;
      return 0;
    }
    return std::to_integer<uint8_t>(code_[at_++]);
  }

  uint8_t Peek() const {
    return at_ < code_.size() ? std::to_integer<uint8_t>(code_[at_]) : 0;
  }

  int64_t Number(size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= uint64_t{Byte()} << (8 * i);
    const size_t unused = 64 - 8 * bytes;
    return bytes == 0 ? 0 : static_cast<int64_t>(value << unused) >> unused;
  }

  bool TakePrefix(uint8_t byte) {
    if (byte == 0x66) {
      fields_.has_66 = true;
    } else if (byte == 0x67) {
      fields_.has_67 = true;
    } else if (byte == 0xf2) {
      fields_.has_f2 = true;
    } else if (byte == 0xf3) {
      fields_.has_f3 = true;
    } else if (byte == 0xf0) {
      has_lock_ = true;
    } else if (byte == 0x26 || byte == 0x2e || byte == 0x36 || byte == 0x3e ||
               byte == 0x64 || byte == 0x65) {
      fields_.has_segment = fields_.has_segment || byte >= 0x64;
    } else {
      return false;
    }
    return true;
  }

  void ParsePrefixes() {
    while (at_ < code_.size() && TakePrefix(Peek())) ++at_;
    if ((Peek() & 0xf0) != 0x40) return;
    const uint8_t rex = Byte();
    fields_.has_rex = true;
    fields_.is_wide = (rex & 8) != 0;
    SetExtensions((rex & 4) != 0, (rex & 2) != 0, (rex & 1) != 0);
  }

  void SetExtensions(bool reg, bool index, bool base) {
    reg_extension_ = reg ? 8 : 0;
    index_extension_ = index ? 8 : 0;
    base_extension_ = base ? 8 : 0;
  }

  void ParseOpcode() {
    const uint8_t first = Byte();
    const bool is_xop = first == 0x8f && (Peek() & 0x1f) >= 8;
    if (first == 0xc4 || first == 0xc5 || first == 0x62 || is_xop) {
      ParseVector(first);
    } else if (first == 0x0f) {
      fields_.map = OpcodeMap::k0f;
      fields_.opcode = Byte();
      if (fields_.opcode == 0x38 || fields_.opcode == 0x3a) {
        fields_.map =
            fields_.opcode == 0x38 ? OpcodeMap::k0f38 : OpcodeMap::k0f3a;
        fields_.opcode = Byte();
      }
    } else {
      fields_.opcode = first;
    }
    fields_.low = static_cast<uint8_t>((fields_.opcode & 7) | base_extension_);
  }

  // VEX, EVEX and XOP: no REX and no prefix that they stand for may be in front
  // of them.
  void ParseVector(uint8_t first) {
    if (fields_.has_rex || fields_.has_66 || fields_.has_f2 || fields_.has_f3 ||
        has_lock_) {
      ok_ = false;
      return;
    }
    const uint8_t one = Byte();
    if (first == 0xc5) {
      fields_.encoding = Encoding::kVex;
      SetExtensions((one & 0x80) == 0, false, false);
      fields_.map = OpcodeMap::k0f;
      SetVector(one);
    } else {
      SetExtensions((one & 0x80) == 0, (one & 0x40) == 0, (one & 0x20) == 0);
      const uint8_t two = Byte();
      fields_.is_wide = (two & 0x80) != 0;
      SetVector(two);
      if (first == 0x62) {
        ParseEvex(one, two);
      } else {
        fields_.encoding = first == 0xc4 ? Encoding::kVex : Encoding::kXop;
        SetMap(one & 0x1f);
      }
    }
    fields_.opcode = Byte();
  }

  void ParseEvex(uint8_t one, uint8_t two) {
    fields_.encoding = Encoding::kEvex;
    // Bits that are fixed, without APX.
    if ((one & 8) != 0 || (two & 4) == 0) ok_ = false;
    SetMap(one & 7);
    Byte();
  }

  void SetVector(uint8_t byte) {
    fields_.vector = static_cast<uint8_t>((~byte >> 3) & 15);
    fields_.has_66 = (byte & 3) == 1;
    fields_.has_f3 = (byte & 3) == 2;
    fields_.has_f2 = (byte & 3) == 3;
  }

  void SetMap(int number) {
    constexpr std::array<OpcodeMap, 11> kMaps = {
        OpcodeMap::kOne,  OpcodeMap::k0f,   OpcodeMap::k0f38, OpcodeMap::k0f3a,
        OpcodeMap::kOne,  OpcodeMap::k5,    OpcodeMap::k6,    OpcodeMap::kOne,
        OpcodeMap::kXop8, OpcodeMap::kXop9, OpcodeMap::kXopA};
    const bool is_xop = fields_.encoding == Encoding::kXop;
    const int last = is_xop ? 10 : fields_.encoding == Encoding::kEvex ? 6 : 3;
    if (number < (is_xop ? 8 : 1) || number > last || number == 4) {
      ok_ = false;
      return;
    }
    fields_.map = kMaps[static_cast<size_t>(number)];
  }

  char FormOf() const {
    if (fields_.encoding != Encoding::kLegacy) return FormOfVector();
    if (fields_.map == OpcodeMap::k0f38) return k0f38Map[fields_.opcode];
    if (fields_.map == OpcodeMap::k0f3a) return k0f3aMap[fields_.opcode];
    if (fields_.map == OpcodeMap::kOne) return kOneByteMap[fields_.opcode];
    // SSE4a's extrq and insertq, with two numbers.
    if (fields_.opcode == 0x78 && (fields_.has_66 || fields_.has_f2)) {
      return 'W';
    }
    return k0fMap[fields_.opcode];
  }

  char FormOfVector() const {
    switch (fields_.map) {
      case OpcodeMap::k0f: {
        const char form = k0fMap[fields_.opcode];
        if (fields_.opcode == 0x77) {
          return fields_.encoding == Encoding::kVex ? '.' : 'x';
        }
        return form == 'm' || form == 'M' ? form : VectorOnly();
      }
      case OpcodeMap::k0f3a:
      case OpcodeMap::kXop8:
        return 'M';
      case OpcodeMap::kXopA:
        return 'D';
      default:
        return 'm';
    }
  }

  // Those that have another meaning, or none, without VEX or EVEX.
  char VectorOnly() const {
    const uint8_t opcode = fields_.opcode;
    return (opcode >= 0x78 && opcode < 0x7c) ? 'm' : 'x';
  }

  void ParseModRm(bool is_register) {
    const uint8_t byte = Byte();
    fields_.has_modrm = true;
    fields_.mod = is_register ? 3 : byte >> 6;
    fields_.reg = static_cast<uint8_t>(((byte >> 3) & 7) | reg_extension_);
    fields_.rm = static_cast<uint8_t>((byte & 7) | base_extension_);
    if (fields_.mod == 3) return;
    size_t bytes = fields_.mod == 1 ? 1 : fields_.mod == 2 ? 4 : 0;
    if ((byte & 7) == 4) {
      const uint8_t sib = Byte();
      const int index = ((sib >> 3) & 7) | index_extension_;
      const bool has_base = fields_.mod != 0 || (sib & 7) != 5;
      if (!has_base) bytes = 4;
      if (has_base && index == kCodeRsp) {
        fields_.base = static_cast<uint8_t>((sib & 7) | base_extension_);
      }
    } else if (fields_.mod == 0 && (byte & 7) == 5) {
      fields_.is_rip_relative = true;
      bytes = 4;
    } else {
      fields_.base = fields_.rm;
    }
    fields_.displacement = static_cast<int32_t>(Number(bytes));
  }

  size_t ImmediateBytes(char form) const {
    const size_t half = fields_.has_66 && !fields_.is_wide ? 2 : 4;
    switch (form) {
      case 'b':
      case 'M':
        return 1;
      case 'w':
      case 'W':
        return 2;
      case 'e':
        return 3;
      case 'D':
      case 'j':
        return 4;
      case 'z':
      case 'Z':
        return half;
      case 'v':
        return fields_.is_wide ? 8 : half;
      case 'o':
        return fields_.has_67 ? 4 : 8;
      case '3':  // "test" alone has a number
        if ((fields_.reg & 7) > 1) return 0;
        return fields_.opcode == 0xf6 ? 1 : half;
      default:
        return 0;
    }
  }

  void ParseImmediate(char form) {
    if (form == 'W' || form == 'D') ParseModRm(false);
    // AMD's processors take two bytes then, Intel's four.
    if (form == 'j' && fields_.has_66 && !fields_.is_wide) ok_ = false;
    fields_.immediate = Number(ImmediateBytes(form));
  }

  std::span<const std::byte> code_;
  size_t at_ = 0;
  bool ok_ = true;
  bool has_lock_ = false;
  uint8_t reg_extension_ = 0;
  uint8_t index_extension_ = 0;
  uint8_t base_extension_ = 0;
  InstructionFields fields_;
};

}  // namespace

InstructionFields ParseInstruction(std::span<const std::byte> code) {
  return Parser(code).Parse();
}

}  // namespace ksym
