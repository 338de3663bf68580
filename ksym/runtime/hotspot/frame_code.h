// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "ksym/base/address.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// The code around an instruction that the CPU was at, and what it says of the
// frame where HotSpot's compilers make frames and leave them. An architecture
// has an implementation, in a directory beside this one; bpf/arch has the same
// for the sampler. Not thread-safe.
class HotspotFrameCode {
 public:
  // How much of a frame is left.
  enum class Left : uint8_t {
    kAddress,                 // the return address alone
    kAddressAndFramePointer,  // and the caller's frame pointer
  };

  // False: it cannot be read.
  bool Read(const Memory& memory, Address at);

  // Where compiled code leaves its frame; nothing elsewhere.
  std::optional<Left> LeftAtEnd() const;
  // Where compiled code has not made its frame yet.
  Left LeftAtBegin() const;
  // The frame of compiled code is there, and the caller's frame pointer is
  // about to be saved.
  bool SavesFramePointer() const;
  // At the first and last instructions of a stub that keeps its frame by the
  // frame pointer; nothing elsewhere.
  std::optional<Left> LeftInStub() const;

 private:
  static constexpr int kBefore = 8;

  bool Has(int offset, std::initializer_list<uint8_t> wanted) const;
  bool PollsWithTest() const;

  std::array<std::byte, 24> bytes_ = {};
};

// An instruction that calls ends at that address.
bool FollowsCall(const Memory& memory, Address address);

// The register that has the bytecode's address while the interpreter is at
// work, by its DWARF number.
size_t HotspotBytecodeRegister();

}  // namespace ksym
