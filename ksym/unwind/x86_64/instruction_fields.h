// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ksym/unwind/x86_64/instruction.h"

namespace ksym {

// Tables of opcodes. The last three are of EVEX and XOP alone.
enum class OpcodeMap : uint8_t {
  kOne,
  k0f,
  k0f38,
  k0f3a,
  k5,
  k6,
  kXop8,
  kXop9,
  kXopA
};

enum class Encoding : uint8_t { kLegacy, kVex, kEvex, kXop };

// The parts of an instruction.
struct InstructionFields {
  size_t size = 0;  // 0 when it is unknown, or cut off
  OpcodeMap map = OpcodeMap::kOne;
  Encoding encoding = Encoding::kLegacy;
  uint8_t opcode = 0;
  // The prefixes of legacy encodings; what stands for them in the others.
  bool has_66 = false;
  bool has_f2 = false;
  bool has_f3 = false;
  bool has_67 = false;
  bool has_rex = false;
  bool has_segment = false;
  bool is_wide = false;  // REX.W
  uint8_t vector = 0;    // the register in VEX.vvvv
  bool has_modrm = false;
  uint8_t mod = 0;
  uint8_t reg = 0;  // with its extension
  uint8_t rm = 0;   // with its extension; of mod 3
  uint8_t low = 0;  // the register in the opcode, with its extension
  uint8_t base = kNoCodeRegister;  // of memory without an index
  bool is_rip_relative = false;
  int32_t displacement = 0;
  int64_t immediate = 0;
};

// Takes the instruction apart that `code` begins with.
InstructionFields ParseInstruction(std::span<const std::byte> code);

// The general registers that it writes, a bit each; a push's or pop's RSP is
// not among them.
uint16_t WrittenRegisters(const InstructionFields& fields);

}  // namespace ksym
