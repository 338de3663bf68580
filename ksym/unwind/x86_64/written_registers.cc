// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ksym/unwind/x86_64/instruction_fields.h"

// The tables of Intel SDM 2, chapters 3 to 6, and AMD APM 3, cut down to which
// general registers are written.

namespace ksym {
namespace {

constexpr uint16_t Bit(unsigned number) {
  return static_cast<uint16_t>(1u << (number & 15));
}
constexpr uint16_t kRax = Bit(kCodeRax);
constexpr uint16_t kRcx = Bit(kCodeRcx);
constexpr uint16_t kRdx = Bit(kCodeRdx);
constexpr uint16_t kRbx = Bit(kCodeRbx);
constexpr uint16_t kRsp = Bit(kCodeRsp);
constexpr uint16_t kRbp = Bit(kCodeRbp);
constexpr uint16_t kRsi = Bit(kCodeRsi);
constexpr uint16_t kRdi = Bit(kCodeRdi);

// A register of 8 bits: without REX the numbers from 4 on are AH, CH, DH, BH.
uint16_t ByteBit(const InstructionFields& f, uint8_t number) {
  return Bit(!f.has_rex && number >= 4 ? number - 4u : number);
}
uint16_t Reg(const InstructionFields& f) { return Bit(f.reg); }
uint16_t Rm(const InstructionFields& f) {
  return f.mod == 3 ? Bit(f.rm) : uint16_t{0};
}
uint16_t ByteRm(const InstructionFields& f) {
  return f.mod == 3 ? ByteBit(f, f.rm) : uint16_t{0};
}
unsigned Group(const InstructionFields& f) { return f.reg & 7u; }

// "add", "or" and so on in their six forms; the last one only compares.
uint16_t WrittenByArithmetic(const InstructionFields& f) {
  if ((f.opcode >> 3) == 7) return 0;
  switch (f.opcode & 7) {
    case 0:
      return ByteRm(f);
    case 1:
      return Rm(f);
    case 2:
      return ByteBit(f, f.reg);
    case 3:
      return Reg(f);
    default:
      return kRax;
  }
}

uint16_t WrittenByString(uint8_t opcode) {
  switch (opcode) {
    case 0x6c:
    case 0x6d:
    case 0xaa:
    case 0xab:
    case 0xae:
    case 0xaf:
      return kRdi | kRcx;
    case 0x6e:
    case 0x6f:
      return kRsi | kRcx;
    case 0xac:
    case 0xad:
      return kRax | kRsi | kRcx;
    default:  // a4 to a7
      return kRsi | kRdi | kRcx;
  }
}

// Opcodes that a number in ModRM divides.
uint16_t WrittenByGroup(const InstructionFields& f) {
  switch (f.opcode) {
    case 0x80:
      return Group(f) == 7 ? uint16_t{0} : ByteRm(f);
    case 0x81:
    case 0x83:
      return Group(f) == 7 ? uint16_t{0} : Rm(f);
    case 0xf6:
      if (Group(f) < 2) return 0;
      return Group(f) < 4 ? ByteRm(f) : kRax;
    case 0xf7:
      if (Group(f) < 2) return 0;
      return Group(f) < 4 ? Rm(f) : static_cast<uint16_t>(kRax | kRdx);
    case 0xfe:
      return ByteRm(f);
    case 0xff:
      return Group(f) < 2 ? Rm(f) : uint16_t{0};
    default:  // 8f: pop
      return Rm(f);
  }
}

uint16_t WrittenByMoves(const InstructionFields& f) {
  switch (f.opcode) {
    case 0x63:
    case 0x69:
    case 0x6b:
    case 0x8b:
    case 0x8d:
      return Reg(f);
    case 0x86:
      return static_cast<uint16_t>(ByteRm(f) | ByteBit(f, f.reg));
    case 0x87:
      return static_cast<uint16_t>(Rm(f) | Reg(f));
    case 0x88:
    case 0xc6:
    case 0xc0:
    case 0xd0:
    case 0xd2:
      return ByteRm(f);
    case 0x89:
    case 0x8c:
    case 0xc7:
    case 0xc1:
    case 0xd1:
    case 0xd3:
      return Rm(f);
    case 0x8a:
      return ByteBit(f, f.reg);
    case 0xc8:  // enter
    case 0xc9:  // leave
      return static_cast<uint16_t>(kRsp | kRbp);
    case 0xe0:
    case 0xe1:
    case 0xe2:
      return kRcx;
    default:
      return 0;
  }
}

// Opcodes with a register in themselves, and those of RAX.
uint16_t WrittenByShort(const InstructionFields& f) {
  const unsigned row = f.opcode >> 3;
  if (row == 0x0b) return Bit(f.low);  // pop
  if (row == 0x12) {                   // xchg; 90 is nop
    return f.low == 0 ? uint16_t{0} : static_cast<uint16_t>(kRax | Bit(f.low));
  }
  if (row == 0x16) return ByteBit(f, f.low);
  if (row == 0x17) return Bit(f.low);
  switch (f.opcode) {
    case 0x98:
    case 0x9f:
    case 0xa0:
    case 0xa1:
    case 0xd7:
    case 0xdf:  // fnstsw
    case 0xe4:
    case 0xe5:
    case 0xec:
    case 0xed:
      return kRax;
    case 0x99:
      return kRdx;
    default:
      return 0;
  }
}

uint16_t WrittenByOneByte(const InstructionFields& f) {
  if (f.opcode < 0x40) return WrittenByArithmetic(f);
  if ((f.opcode >= 0x6c && f.opcode < 0x70) ||
      (f.opcode >= 0xa4 && f.opcode < 0xb0 && (f.opcode & 0xfe) != 0xa8)) {
    return WrittenByString(f.opcode);
  }
  switch (f.opcode) {
    case 0x80:
    case 0x81:
    case 0x83:
    case 0x8f:
    case 0xf6:
    case 0xf7:
    case 0xfe:
    case 0xff:
      return WrittenByGroup(f);
    default:
      return static_cast<uint16_t>(WrittenByMoves(f) | WrittenByShort(f));
  }
}

// The instructions of systems, cpuid and the like.
uint16_t WrittenBySystem(const InstructionFields& f) {
  switch (f.opcode) {
    case 0x00:
      return Rm(f);
    case 0x01:  // xgetbv, rdtscp, ..; smsw
      if (f.mod != 3) return 0;
      return static_cast<uint16_t>(kRax | kRbx | kRcx | kRdx | Rm(f));
    case 0x05:
      return static_cast<uint16_t>(kRax | kRcx | Bit(kCodeR11));
    case 0x20:
    case 0x21:
      return Rm(f);
    case 0x31:
    case 0x32:
    case 0x33:
      return static_cast<uint16_t>(kRax | kRdx);
    case 0x37:  // getsec
    case 0xa2:
      return static_cast<uint16_t>(kRax | kRbx | kRcx | kRdx);
    case 0xa6:
    case 0xa7:  // VIA's
      return static_cast<uint16_t>(kRax | kRcx | kRdx | kRsi | kRdi);
    case 0xc7:
      return static_cast<uint16_t>(f.mod == 3 ? Rm(f) : kRax | kRdx);
    default:
      return 0;
  }
}

// Opcodes of the second table that write the register in ModRM.reg, and those
// that write the one in ModRM.rm.
bool WritesReg(uint8_t opcode) {
  if ((opcode & 0xf0) == 0x40) return true;
  switch (opcode) {
    case 0x02:
    case 0x03:
    case 0x2c:
    case 0x2d:
    case 0x50:
    case 0xaf:
    case 0xb2:
    case 0xb4:
    case 0xb5:
    case 0xb6:
    case 0xb7:
    case 0xb8:
    case 0xbc:
    case 0xbd:
    case 0xbe:
    case 0xbf:
    case 0xc5:
    case 0xd7:
      return true;
    default:
      return false;
  }
}

bool WritesRm(const InstructionFields& f) {
  switch (f.opcode) {
    case 0x1e:  // rdssp
    case 0xae:  // rdfsbase
    case 0x78:  // vmread
      return true;
    case 0x7e:
      return !f.has_f3;
    case 0xa4:
    case 0xa5:
    case 0xab:
    case 0xac:
    case 0xad:
    case 0xb3:
    case 0xbb:
      return true;
    case 0xba:
      return Group(f) > 4;
    default:
      return false;
  }
}

uint16_t WrittenBy0f(const InstructionFields& f) {
  if ((f.opcode & 0xf0) == 0x90) return ByteRm(f);
  if ((f.opcode & 0xf8) == 0xc8) return Bit(f.low);
  switch (f.opcode) {
    case 0xb0:
      return static_cast<uint16_t>(ByteRm(f) | kRax);
    case 0xb1:
      return static_cast<uint16_t>(Rm(f) | kRax);
    case 0xc0:
      return static_cast<uint16_t>(ByteRm(f) | ByteBit(f, f.reg));
    case 0xc1:
      return static_cast<uint16_t>(Rm(f) | Reg(f));
    default:
      break;
  }
  if (WritesReg(f.opcode)) return Reg(f);
  return WritesRm(f) ? Rm(f) : WrittenBySystem(f);
}

uint16_t WrittenBy0f38(const InstructionFields& f) {
  if (f.encoding == Encoding::kEvex) return 0;
  if (f.encoding == Encoding::kLegacy) {
    // movbe, crc32, adcx; with a store to memory nothing is written.
    const bool is_general =
        f.opcode == 0xf0 || f.opcode == 0xf1 || f.opcode == 0xf6;
    return is_general ? Reg(f) : uint16_t{0};
  }
  if ((f.opcode & 0xf0) == 0xe0) {  // cmpccxadd
    return static_cast<uint16_t>(Reg(f) | Bit(f.vector));
  }
  switch (f.opcode) {
    case 0xf2:
    case 0xf5:
    case 0xf7:
      return Reg(f);
    case 0xf3:
      return Bit(f.vector);
    case 0xf6:
      return static_cast<uint16_t>(Reg(f) | Bit(f.vector));
    default:
      return 0;
  }
}

uint16_t WrittenBy0f3a(const InstructionFields& f) {
  if (f.opcode >= 0x14 && f.opcode <= 0x17) return Rm(f);
  if (f.opcode == 0xf0 && f.encoding == Encoding::kVex) return Reg(f);
  return f.opcode == 0x61 || f.opcode == 0x63 ? kRcx : uint16_t{0};
}

// VEX and EVEX forms of the second table, and EVEX's fifth.
uint16_t WrittenByVector(const InstructionFields& f) {
  switch (f.opcode) {
    case 0x2c:
    case 0x2d:
    case 0x50:
    case 0x78:
    case 0x79:
    case 0x93:  // kmov
    case 0xc5:
    case 0xd7:
      return Reg(f);
    case 0x7e:
      return f.has_f3 ? uint16_t{0} : Rm(f);
    default:
      return 0;
  }
}

}  // namespace

uint16_t WrittenRegisters(const InstructionFields& f) {
  switch (f.map) {
    case OpcodeMap::kOne:
      return WrittenByOneByte(f);
    case OpcodeMap::k0f:
      return f.encoding == Encoding::kLegacy ? WrittenBy0f(f)
                                             : WrittenByVector(f);
    case OpcodeMap::k0f38:
      return WrittenBy0f38(f);
    case OpcodeMap::k0f3a:
      return WrittenBy0f3a(f);
    case OpcodeMap::k5:
      return WrittenByVector(f);
    case OpcodeMap::kXop9:  // blcfill and its like; llwpcb
      return static_cast<uint16_t>(Bit(f.vector) | Rm(f));
    case OpcodeMap::kXopA:
      return Reg(f);
    case OpcodeMap::k6:
    case OpcodeMap::kXop8:
      return 0;
  }
  return 0;
}

}  // namespace ksym
