// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "daemon/runtime/frame_merge.h"
#include "daemon/runtime/javascript_names.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/memory.h"
#include "ksym/runtime/v8/layout.h"

namespace profd {

// A native frame that is a function of JavaScript.
struct JavaScriptFrame {
  size_t native = 0;  // its index in the stack
  JavaScriptCode code;
  uint32_t index = 0;  // see JavaScriptNames::FrameOf()
};

// The process that a stack is of; borrowed.
struct JavaScriptProcess {
  const ksym::Memory& memory;  // as it is now
  const ksym::V8Layout& layout;
  const ksym::ProcessId& id;
};

// Finds them in a copied stack, as bpf/runtime/v8.bpf.h does in others: by the
// frames' words in the copy, and by the objects that these lead to, which only
// the process has, as it is now. A frame whose function has moved since then is
// there, with code that will have no name. `frames`: the addresses, as in
// RawStack.
std::vector<JavaScriptFrame> FindJavaScriptFrames(
    const NativeStack& native, std::span<const uint64_t> frames,
    const JavaScriptProcess& process);

}  // namespace profd
