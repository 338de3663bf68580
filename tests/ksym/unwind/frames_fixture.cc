// SPDX-License-Identifier: Apache-2.0
// Functions whose frames are hard to follow; compiled without frame pointers.

#include "tests/ksym/unwind/frames_fixture.h"

#include <alloca.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace ksym {
namespace {

const std::function<void()>* g_callback;

int CompareAndCall(const void* a, const void* b) {
  if (g_callback != nullptr) (*g_callback)();
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

}  // namespace

void CallFromQsort(const std::function<void()>& callback) {
  int numbers[] = {2, 1};
  g_callback = &callback;
  std::qsort(numbers, std::size(numbers), sizeof(numbers[0]), CompareAndCall);
  g_callback = nullptr;
}

void CallFromAlloca(size_t size, const std::function<void()>& callback) {
  auto* bytes = static_cast<char*>(alloca(size));
  std::memset(bytes, 1, size);
  callback();
  asm volatile("" : : "r"(bytes) : "memory");
}

// Stack arguments, a local that is more aligned than the stack, and alloca
// together need a third pointer to the arguments.
void CallRealigned(RealignedArguments arguments,
                   const std::function<void()>& callback) {
  alignas(64) char aligned[64];
  auto* bytes = static_cast<char*>(alloca(arguments.size));
  std::memset(aligned, 1, sizeof(aligned));
  std::memset(bytes, 1, arguments.size);
  callback();
  asm volatile("" : : "r"(bytes), "r"(aligned) : "memory");
}

int CallRecursively(int depth, const std::function<void()>& callback) {
  if (depth == 0) {
    callback();
    return 0;
  }
  volatile int local = depth;
  return CallRecursively(depth - 1, callback) + local;
}

void CallFromCatch(const std::function<void()>& callback) {
  try {
    throw std::runtime_error("tested");
  } catch (const std::runtime_error&) {
    callback();
  }
}

int RunWorkload() {
  const auto nothing = [] { asm volatile(""); };
  CallFromQsort(nothing);
  CallFromAlloca(300, nothing);
  CallRealigned({100, {1, 2, 3, 4, 5, 6, 7}}, nothing);
  int result = CallRecursively(20, nothing);
  CallFromCatch(nothing);
  // Calls through stubs that are bound on their first use, and the vdso.
  char text[64];
  result += std::snprintf(text, sizeof(text), "%d %s", result, "text");
  result += static_cast<int>(std::strtol("123", nullptr, 10));
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  std::vector<std::string> words = {"c", "b", "a", text};
  std::sort(words.begin(), words.end());
  return result + static_cast<int>(words.front().size() + now.tv_nsec % 2);
}

}  // namespace ksym
