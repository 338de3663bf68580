// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/hotspot/frame_code.h"

#include "ksym/unwind/x86_64/register_numbers.h"

namespace ksym {

size_t HotspotBytecodeRegister() { return X86_R13; }

bool HotspotFrameCode::Read(const Memory& memory, Address at) {
  return memory.Read({at.value - kBefore}, bytes_);
}

bool HotspotFrameCode::Has(int offset,
                           std::initializer_list<uint8_t> wanted) const {
  for (const uint8_t byte : wanted) {
    const int at = kBefore + offset++;
    if (std::to_integer<uint8_t>(bytes_[static_cast<size_t>(at)]) != byte) {
      return false;
    }
  }
  return true;
}

// In the poll between "pop %rbp" and "ret" of before JDK 16: "test n(%rip)", or
// "mov n(%r15),%r10; test (%r10)". Loops poll in the same way, and have
// something else in front.
bool HotspotFrameCode::PollsWithTest() const {
  if (Has(-1, {0x5d})) return Has(0, {0x85, 0x05}) || Has(0, {0x4d, 0x8b});
  return Has(0, {0x41, 0x85, 0x02}) &&
         (Has(-8, {0x5d, 0x4d, 0x8b}) || Has(-5, {0x5d, 0x4d, 0x8b}));
}

// "add; pop %rbp; cmp n(%r15),%rsp; ja; ret", with a test instead of cmp and ja
// before JDK 16.
std::optional<HotspotFrameCode::Left> HotspotFrameCode::LeftAtEnd() const {
  if (Has(0, {0x5d})) return Left::kAddressAndFramePointer;  // pop %rbp
  const bool is_behind_pop =
      Has(0, {0xc3}) ||  // ret
      Has(0, {0x49, 0x3b, 0xa7}) || Has(0, {0x49, 0x3b, 0x67}) ||
      (Has(0, {0x0f, 0x87}) && Has(-7, {0x49, 0x3b, 0xa7})) || PollsWithTest();
  if (is_behind_pop) return Left::kAddress;
  return std::nullopt;
}

// "push %rbp; sub", or "sub; mov %rbp,n(%rsp)".
HotspotFrameCode::Left HotspotFrameCode::LeftAtBegin() const {
  return Has(-1, {0x55}) ? Left::kAddressAndFramePointer : Left::kAddress;
}

// mov %rbp,n(%rsp)
bool HotspotFrameCode::SavesFramePointer() const {
  return Has(0, {0x48, 0x89, 0x6c, 0x24}) || Has(0, {0x48, 0x89, 0xac, 0x24});
}

std::optional<HotspotFrameCode::Left> HotspotFrameCode::LeftInStub() const {
  // push %rbp, ret: nothing is in front of the address.
  if (Has(0, {0x55}) || Has(0, {0xc3})) return Left::kAddress;
  // mov %rsp,%rbp behind it
  if (Has(-1, {0x55, 0x48, 0x8b, 0xec})) return Left::kAddressAndFramePointer;
  return std::nullopt;
}

// "call n", or "call" of a register or a word, in its forms of two to seven
// bytes.
bool FollowsCall(const Memory& memory, Address address) {
  constexpr size_t kLongest = 7;
  constexpr unsigned kCall = 0xe8;
  constexpr unsigned kGroup = 0xff;
  constexpr unsigned kCallOfGroup = 2;
  std::array<std::byte, kLongest> bytes = {};
  if (!memory.Read({address.value - kLongest}, bytes)) return false;
  const auto before = [&](size_t distance) {
    return std::to_integer<unsigned>(bytes[kLongest - distance]);
  };
  if (before(5) == kCall) return true;
  for (size_t length = 2; length <= kLongest; ++length) {
    if (before(length) != kGroup) continue;
    const unsigned operand = before(length - 1);
    if ((operand >> 3 & 7) != kCallOfGroup) continue;
    // The bytes behind the operand's: those of an index, and a distance.
    const unsigned mode = operand >> 6;
    const unsigned base = operand & 7;
    size_t behind = mode != 3 && base == 4 ? 1 : 0;
    if (mode == 1) behind += 1;
    if (mode == 2 || (mode == 0 && base == 5)) behind += 4;
    if (length == 2 + behind) return true;
  }
  return false;
}

}  // namespace ksym
