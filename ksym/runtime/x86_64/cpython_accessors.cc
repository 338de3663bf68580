// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/accessors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "ksym/unwind/x86_64/instruction.h"

namespace ksym {
namespace {

// It sets another register than by the effect, or one that matters.
bool Sets(const Instruction& i, uint8_t reg) {
  if ((i.written >> reg & 1u) != 0) return true;
  switch (i.effect) {
    case FrameEffect::kPop:
    case FrameEffect::kCopy:
    case FrameEffect::kLoad:
    case FrameEffect::kTakeAddress:
      return i.reg == reg;
    default:
      return false;
  }
}

// mov DISTANCE(%rip),%rax; the distance is from the instruction's end.
std::optional<int32_t> LoadedFromFile(std::span<const std::byte> instruction) {
  constexpr std::array<std::byte, 3> kLoad = {std::byte{0x48}, std::byte{0x8b},
                                              std::byte{0x05}};
  int32_t distance = 0;
  if (instruction.size() != kLoad.size() + sizeof(distance) ||
      !std::ranges::equal(instruction.first(kLoad.size()), kLoad)) {
    return std::nullopt;
  }
  std::memcpy(&distance, instruction.last(sizeof(distance)).data(),
              sizeof(distance));
  return distance;
}

ElfAddress Behind(ElfAddress address, int32_t distance) {
  return {address.value + static_cast<uint64_t>(int64_t{distance})};
}

// Calls use(instruction, its bytes) up to the return, of which it says whether
// it came there. False of `use`: it is another function.
template <typename Use>
bool UpToReturn(std::span<const std::byte> code, Use use) {
  code = code.first(std::min(code.size(), kMaxAccessorBytes));
  while (!code.empty()) {
    const Instruction i = DecodeInstruction(code);
    if (i.size == 0) return false;
    if (i.flow == CodeFlow::kReturn) return true;
    if (i.flow != CodeFlow::kNext || !use(i, code.first(i.size))) return false;
    code = code.subspan(i.size);
  }
  return false;
}

}  // namespace

std::optional<uint16_t> FindReturnedMember(std::span<const std::byte> code) {
  std::optional<uint16_t> offset;
  const bool returns =
      UpToReturn(code, [&](const Instruction& i, std::span<const std::byte>) {
        if (i.effect == FrameEffect::kLoad && i.reg == kCodeRax) {
          if (offset || i.base != kCodeRdi || i.number < 0 ||
              i.number > std::numeric_limits<uint16_t>::max()) {
            return false;
          }
          offset = static_cast<uint16_t>(i.number);
          return true;
        }
        return !Sets(i, kCodeRax) && !Sets(i, kCodeRdi);
      });
  return returns ? offset : std::nullopt;
}

std::optional<ElfAddress> FindReturnedWord(std::span<const std::byte> code,
                                           ElfAddress at, ElfAddress variable) {
  // What RAX has: nothing yet; an address; the word at one; that word, or what
  // the dynamic linker put there, which is the variable's address.
  enum class Has : uint8_t { kNothing, kAddress, kWord, kWordOrVariable };
  Has has = Has::kNothing;
  ElfAddress address;
  const auto use = [&](const Instruction& i, std::span<const std::byte> bytes) {
    at = at + i.size;
    if (const auto distance = LoadedFromFile(bytes)) {
      if (has != Has::kNothing) return false;
      address = Behind(at, *distance);
      has = Has::kWordOrVariable;
      return true;
    }
    if (i.effect == FrameEffect::kTakeAddress && i.reg == kCodeRax) {
      if (has != Has::kNothing) return false;
      address = Behind(at, i.number);
      has = Has::kAddress;
      return true;
    }
    if (i.effect == FrameEffect::kLoad && i.reg == kCodeRax) {
      if (has == Has::kNothing || has == Has::kWord || i.base != kCodeRax) {
        return false;
      }
      if (has == Has::kWordOrVariable) address = variable;
      address = Behind(address, i.number);
      has = Has::kWord;
      return true;
    }
    return !Sets(i, kCodeRax);
  };
  if (!UpToReturn(code, use)) return std::nullopt;
  if (has != Has::kWord && has != Has::kWordOrVariable) return std::nullopt;
  return address;
}

}  // namespace ksym
