// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/cpython/thread_place.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "ksym/unwind/x86_64/instruction.h"

namespace ksym {
namespace {

using Kind = CpythonThreadPlace::Kind;

bool BeginsWith(std::span<const std::byte> code,
                std::initializer_list<uint8_t> bytes) {
  return code.size() >= bytes.size() &&
         std::ranges::equal(code.first(bytes.size()), bytes,
                            [](std::byte a, uint8_t b) {
                              return std::to_integer<uint8_t>(a) == b;
                            });
}

// The instruction's last four bytes.
int32_t NumberAtEnd(std::span<const std::byte> instruction) {
  int32_t number = 0;
  if (instruction.size() < sizeof(number)) return 0;
  std::memcpy(&number, instruction.last(sizeof(number)).data(), sizeof(number));
  return number;
}

// Follows one instruction after the other.
class Reader {
 public:
  explicit Reader(ElfAddress at) : at_(at) {}

  // False: it is not such a function.
  bool Follow(std::span<const std::byte> code, const Instruction& i) {
    at_ = at_ + i.size;
    if (BeginsWith(code, {0x64, 0x48, 0x8b, 0x04, 0x25})) {
      return Return({.kind = Kind::kNearThread,
                     .address = {},
                     .distance = NumberAtEnd(code)});
    }
    // mov %fs:(%rax),%rax, and the two instructions that do the same.
    if (BeginsWith(code, {0x64, 0x48, 0x8b, 0x00})) return Return(offset_);
    if (BeginsWith(code, {0x64, 0x48, 0x03, 0x04, 0x25})) return HasOffset();
    if (BeginsWith(code, {0x48, 0x8b, 0x05})) {
      offset_ = Place(Kind::kByOffset, code);
      return true;
    }
    // lea slot(%rip),%rax; call *(%rax): a descriptor, whose second word it is.
    if (BeginsWith(code, {0x48, 0x8d, 0x05})) {
      descriptor_ = Place(Kind::kByOffset, code);
      descriptor_.address = descriptor_.address + 8;
      return true;
    }
    if (BeginsWith(code, {0xff, 0x10})) {
      offset_ = descriptor_;
      return HasOffset();
    }
    if (i.effect == FrameEffect::kTakeAddress && i.reg == kCodeRdi) {
      slot_ = Place(Kind::kInModule, code);
      return true;
    }
    if (i.flow == CodeFlow::kCall || i.flow == CodeFlow::kCallSlot) {
      is_called_ = slot_.kind != Kind::kNone;
      return is_called_;
    }
    if (i.effect == FrameEffect::kLoad && i.base == kCodeRax) {
      return ReturnLoaded(i);
    }
    return i.flow == CodeFlow::kNext;
  }

  const std::optional<CpythonThreadPlace>& found() const { return found_; }

 private:
  // The place that the instruction's last bytes lead to from its end on.
  CpythonThreadPlace Place(Kind kind, std::span<const std::byte> code) const {
    return {.kind = kind,
            .address = {at_.value +
                        static_cast<uint64_t>(int64_t{NumberAtEnd(code)})}};
  }
  bool HasOffset() const { return offset_.kind != Kind::kNone; }

  bool Return(const CpythonThreadPlace& place) {
    if (place.kind != Kind::kNone) found_ = place;
    return false;
  }

  bool ReturnLoaded(const Instruction& i) {
    if (i.reg != kCodeRax) return false;
    CpythonThreadPlace place = is_called_ ? slot_ : offset_;
    place.distance = i.number;
    return Return(place);
  }

  ElfAddress at_;
  CpythonThreadPlace offset_;      // in RAX
  CpythonThreadPlace descriptor_;  // RAX points there
  CpythonThreadPlace slot_;        // RDI points there
  bool is_called_ = false;         // with it
  std::optional<CpythonThreadPlace> found_;
};

}  // namespace

std::optional<CpythonThreadPlace> FindReturnedVariable(
    std::span<const std::byte> code, ElfAddress at) {
  Reader reader(at);
  code = code.first(std::min(code.size(), kMaxReturningBytes));
  while (!code.empty()) {
    const Instruction i = DecodeInstruction(code);
    if (i.size == 0 || !reader.Follow(code.first(i.size), i)) break;
    code = code.subspan(i.size);
  }
  return reader.found();
}

}  // namespace ksym
