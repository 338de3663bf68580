// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "daemon/profile/raw_stack_table.h"
#include "daemon/runtime/frame_merge.h"
#include "ksym/process/process_image.h"

namespace profd {

// A native frame in code that a runtime made, as the sampler noted it; see
// runtime_item in bpf/runtime/runtime_abi.h.
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
  // The functions at these places of a stack, which have this namer's kinds:
  // for each native frame leaf first, inlined ones in front. A frame that is
  // left out stays as it is. It may read the process's memory, in bounded time.
  virtual std::vector<CodeFrames> FramesOf(
      const ksym::ProcessId& process, std::span<const RuntimeCode> codes) = 0;
};

}  // namespace profd
