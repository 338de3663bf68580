// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/profile/raw_stack_table.h"
#include "ksym/process/process_image.h"

namespace profd {

// What a native frame stands for, in code that a runtime made, as the sampler
// noted it; see runtime_item in bpf/runtime/runtime_abi.h.
struct RuntimeCode {
  size_t native = 0;  // the frame, from the leaf on
  RawFrameKind kind = kNativeCode;
  uint64_t code = 0;
  uint32_t index = 0;

  friend bool operator==(const RuntimeCode&, const RuntimeCode&) = default;
};

// Knows the functions that a runtime's code is of.
class CodeNamer {
 public:
  virtual ~CodeNamer() = default;
  // The functions at that place, leaf first: inlined ones are in front. Empty:
  // the native frame stays. It may read the process's memory, in bounded time.
  virtual std::vector<RawFrame> FramesOf(const ksym::ProcessId& process,
                                         const RuntimeCode& code) = 0;
};

}  // namespace profd
