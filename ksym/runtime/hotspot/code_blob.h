// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ksym/base/address.h"
#include "ksym/runtime/hotspot/layout.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// A piece of code that a JVM made, and what is in front of it (CodeBlob).
struct HotspotBlob {
  enum class Kind : uint8_t {
    kCompiled,  // an nmethod, or what calls a native method
    kInterpreter,
    kVtable,  // jumps to a method
    kOther,   // stubs
  };
  Kind kind = Kind::kOther;
  Address address;
  Address code_begin;
  Address code_end;
  uint32_t frame_bytes = 0;     // 0: not known
  uint32_t frame_complete = 0;  // from so many bytes of the code on it is there
  // Compiled code has a number, whose low bits these are, and says how its
  // frames look when they were deoptimized; see HotspotLayout. 0: not known.
  uint16_t compile_id = 0;
  uint64_t deopt = 0;
  uint64_t deopt_mh = 0;
  uint32_t original_pc = 0;
};

// The heap that the address is in; null: none.
const HotspotHeap* FindHotspotHeap(std::span<const HotspotHeap> heaps,
                                   Address code);

// The blob whose code is at that address of the heap. Nothing: there is none,
// or it cannot be read, or it cannot be one. Some four reads, 20 at the most.
std::optional<HotspotBlob> ReadHotspotBlob(const Memory& memory,
                                           const HotspotLayout& layout,
                                           const HotspotHeap& heap,
                                           Address code);

}  // namespace ksym
