// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ksym {

// A word in the native frame of each call of the evaluation loop that points
// into the frame object that the call works through, up to CPython 3.10. It is
// how both are known to belong together.
struct CpythonFrameWord {
  uint16_t below_cfa = 0;  // where it is, in bytes
  uint16_t offset = 0;     // what it points to, from the frame object on

  friend bool operator==(const CpythonFrameWord&,
                         const CpythonFrameWord&) = default;
};

// Finds it by what the code of _PyEval_EvalFrameDefault stores when it begins.
// `argument`: which of its arguments the frame object is, the first one being
// 0; of the first two. Nothing: the code keeps no such word, or also puts other
// things there. Cost: 10 ns per instruction.
std::optional<CpythonFrameWord> FindCpythonFrameWord(
    std::span<const std::byte> code, size_t argument);

// More of the function is not looked at. Debian's have 30 to 40 KiB.
inline constexpr size_t kMaxCpythonLoopBytes = size_t{256} << 10;

}  // namespace ksym
