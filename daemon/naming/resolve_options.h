// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "daemon/naming/runtime_frame_name.h"
#include "ksym/symbolizer.h"

namespace profd {

struct ResolveOptions {
  // Whether frames keep their run-time addresses. They make stacks differ
  // that are equal by name, so only where the output shows them.
  enum class Addresses : uint8_t { kDrop, kKeep };
  Addresses addresses = Addresses::kDrop;
  // Whether frames of the kernel's core have as file_offset the bytes from
  // _stext to the looked-up instruction, and those of its modules the
  // instruction's address.
  enum class KernelOffsets : uint8_t { kDrop, kKeep };
  KernelOffsets kernel_offsets = KernelOffsets::kDrop;
  ksym::SymbolizerOptions::Demangle demangle =
      ksym::SymbolizerOptions::Demangle::kOn;
  // Whether the interpreter's own native frame stays behind those that it works
  // through.
  enum class RuntimeCalls : uint8_t { kHide, kKeep };
  RuntimeCalls runtime_calls = RuntimeCalls::kHide;
  RuntimeLines runtime_lines = RuntimeLines::kDrop;
};

}  // namespace profd
