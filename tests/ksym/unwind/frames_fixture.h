// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace ksym {

// Each calls `callback` from a frame of its kind.
void CallFromQsort(const std::function<void()>& callback);
void CallFromAlloca(size_t size, const std::function<void()>& callback);
struct RealignedArguments {
  size_t size = 0;
  long more[7] = {};
};
// The arguments are on the stack.
void CallRealigned(RealignedArguments arguments,
                   const std::function<void()>& callback);
int CallRecursively(int depth, const std::function<void()>& callback);
void CallFromCatch(const std::function<void()>& callback);

// All of them, and calls into libraries.
int RunWorkload();

}  // namespace ksym
