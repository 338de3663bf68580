// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/frame_state.h"

#include <cstddef>
#include <limits>
#include <optional>

#include "ksym/base/byte_reader.h"
#include "ksym/unwind/arch.h"

namespace ksym {
namespace {

// DW_OP_*.
constexpr uint8_t kOpDeref = 0x06;
constexpr uint8_t kOpPlusConstant = 0x23;
constexpr uint8_t kOpRegister0 = 0x70;  // DW_OP_breg0, 1 ...
constexpr uint8_t kOpRegister16 = 0x80;

constexpr int32_t kWord = 8;

template <typename T>
bool Fits(int64_t value) {
  return value >= std::numeric_limits<T>::min() &&
         value <= std::numeric_limits<T>::max();
}

// An offset in words, if it is whole ones and fits.
template <typename T>
std::optional<T> Words(int32_t bytes) {
  if (bytes % kWord != 0 || !Fits<T>(bytes / kWord)) return std::nullopt;
  return static_cast<T>(bytes / kWord);
}

// The register and offset of a leading DW_OP_bregN.
struct RegisterOffset {
  uint8_t register_number = 0;
  int32_t offset = 0;
};
std::optional<RegisterOffset> ReadRegisterOffset(ByteReader& in) {
  const auto opcode = in.Read<uint8_t>();
  const int64_t offset = in.ReadSleb128();
  if (!in.ok() || opcode < kOpRegister0 || opcode >= kOpRegister16 ||
      !Fits<int32_t>(offset)) {
    return std::nullopt;
  }
  return RegisterOffset{static_cast<uint8_t>(opcode - kOpRegister0),
                        static_cast<int32_t>(offset)};
}

// One that has its value in the innermost frame only.
bool IsLeafRegister(int64_t number) {
  return number >= 0 && number < static_cast<int64_t>(kDwarfReturnAddress) &&
         number != kDwarfExtra && number != kDwarfFramePointer &&
         number != kDwarfStackPointer;
}

void SetCfa(const CfaRule& cfa, UnwindRow& row) {
  row.rule = MakeRule(CfaKind::kUnsupported);
  if (cfa.kind == CfaRule::Kind::kPlt) {
    row.cfa_offset = static_cast<int16_t>(cfa.offset);
    row.rule = MakeRule(CfaKind::kPlt);
    return;
  }
  if (cfa.kind == CfaRule::Kind::kRegister) {
    const auto words = Words<int16_t>(cfa.offset);
    if (!words) return;
    row.cfa_offset = *words;
    if (cfa.register_number == kDwarfStackPointer) {
      row.rule = MakeRule(CfaKind::kStackPointer);
    } else if (cfa.register_number == kDwarfFramePointer) {
      row.rule = MakeRule(CfaKind::kFramePointer);
    } else if (cfa.register_number == kDwarfExtra) {
      row.rule = MakeRule(CfaKind::kExtra);
    } else if (IsLeafRegister(cfa.register_number) && Fits<int8_t>(*words)) {
      row.cfa_offset = PackCfaOffset(static_cast<int8_t>(cfa.register_number),
                                     static_cast<int8_t>(*words));
      row.rule = MakeRule(CfaKind::kLeafRegister);
    }
    return;
  }
  const auto offset = Words<int8_t>(cfa.offset);
  const auto addend = Words<int8_t>(cfa.addend);
  if (cfa.kind != CfaRule::Kind::kDeref || !offset || !addend) return;
  row.cfa_offset = PackCfaOffset(*offset, *addend);
  if (cfa.register_number == kDwarfStackPointer) {
    row.rule = MakeRule(CfaKind::kStackPointerDeref);
  } else if (cfa.register_number == kDwarfFramePointer) {
    row.rule = MakeRule(CfaKind::kFramePointerDeref);
  }
}

// Where the return address is not on the stack.
void SetReturnRegister(const FrameState& state, UnwindRow& row) {
  row.rule = MakeRule(CfaKind::kUnsupported);
  const int32_t number = state.return_address.offset;
  const auto words = Words<int8_t>(state.cfa.offset);
  if (state.cfa.kind != CfaRule::Kind::kRegister ||
      state.cfa.register_number != kDwarfStackPointer || !words ||
      !IsLeafRegister(number)) {
    return;
  }
  row.cfa_offset = PackCfaOffset(static_cast<int8_t>(number), *words);
  row.rule = MakeRule(CfaKind::kReturnRegister);
}

// The kind for a frame that saved its frame pointer `saved` words from the CFA.
FramePointerKind KindOfSaved(int8_t saved, const RegisterRule& extra) {
  if (extra.kind == RegisterRule::Kind::kSame) return FramePointerKind::kSaved;
  const auto at = Words<int8_t>(extra.offset);
  if (extra.kind != RegisterRule::Kind::kAtCfa || !at) {
    return FramePointerKind::kSavedExtraLost;
  }
  const int below = saved - *at;
  if (below == 1) return FramePointerKind::kSavedExtraBelow;
  if (below < 2 || below > 9) return FramePointerKind::kSavedExtraLost;
  return static_cast<FramePointerKind>(
      static_cast<int>(FramePointerKind::kSavedExtraBelow2) + below - 2);
}

// The kind for a frame that left the frame pointer alone.
FramePointerKind KindOfSame(const RegisterRule& extra, int8_t& offset) {
  if (extra.kind == RegisterRule::Kind::kSame) return FramePointerKind::kSame;
  const auto at = Words<int8_t>(extra.offset);
  if (extra.kind != RegisterRule::Kind::kAtCfa || !at) {
    return FramePointerKind::kSameExtraLost;
  }
  offset = *at;
  return FramePointerKind::kSameExtraSaved;
}

FramePointerKind SetFramePointer(const FrameState& state, UnwindRow& row) {
  if (state.frame_pointer.kind == RegisterRule::Kind::kSame) {
    return KindOfSame(state.extra, row.fp_offset);
  }
  const auto at = Words<int8_t>(state.frame_pointer.offset);
  if (!at) return FramePointerKind::kLost;
  if (state.frame_pointer.kind == RegisterRule::Kind::kAtCfa) {
    row.fp_offset = *at;
    return KindOfSaved(*at, state.extra);
  }
  if (state.frame_pointer.kind != RegisterRule::Kind::kAtFramePointer)
    return FramePointerKind::kLost;
  row.fp_offset = *at;
  return FramePointerKind::kSavedAtFramePointer;
}

}  // namespace

CfaRule ParseCfaExpression(std::span<const std::byte> expression) {
  if (const auto constant = ParsePltExpression(expression)) {
    return {CfaRule::Kind::kPlt, 0, *constant, 0};
  }
  ByteReader in(expression);
  const auto base = ReadRegisterOffset(in);
  if (!base) return {};
  CfaRule rule = {CfaRule::Kind::kRegister, base->register_number, base->offset,
                  0};
  if (in.AtEnd()) return rule;
  if (in.Read<uint8_t>() != kOpDeref) return {};
  rule.kind = CfaRule::Kind::kDeref;
  if (in.AtEnd()) return rule;
  const auto opcode = in.Read<uint8_t>();
  const uint64_t addend = in.ReadUleb128();
  if (opcode != kOpPlusConstant || !in.ok() || !in.AtEnd() ||
      addend > std::numeric_limits<int32_t>::max()) {
    return {};
  }
  rule.addend = static_cast<int32_t>(addend);
  return rule;
}

RegisterRule ParseRegisterExpression(std::span<const std::byte> expression) {
  ByteReader in(expression);
  const auto base = ReadRegisterOffset(in);
  if (!base || !in.AtEnd() || base->register_number != kDwarfFramePointer) {
    return {RegisterRule::Kind::kOther, 0};
  }
  return {RegisterRule::Kind::kAtFramePointer, base->offset};
}

UnwindRow ToUnwindRow(const FrameState& state) {
  UnwindRow row;
  if (state.return_address.kind == RegisterRule::Kind::kUndefined) {
    row.rule = MakeRule(CfaKind::kEnd);
    return row;
  }
  const auto [kind, offset] = state.return_address;
  if (kind == RegisterRule::Kind::kRegister) {
    SetReturnRegister(state, row);
  } else if (kind == RegisterRule::Kind::kAtCfa && offset == -kWord) {
    SetCfa(state.cfa, row);
  } else {
    row.rule = MakeRule(CfaKind::kUnsupported);
  }
  if (GetCfaKind(row) == CfaKind::kUnsupported) {
    return {0, 0, 0, MakeRule(CfaKind::kUnsupported)};
  }
  const FramePointerKind kind_of_saved = SetFramePointer(state, row);
  row.rule = MakeRule(GetCfaKind(row), kind_of_saved);
  return row;
}

}  // namespace ksym
