// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ksym/base/result.h"

namespace profd {

// How waits are sampled: what tells that the thread which the scheduler has
// chosen goes on.
enum class WaitProgram : uint8_t {
  kSchedExit,  // the tracepoint sched_exit_tp, since Linux 6.15
  // An interrupt that the CPU sends itself, on x86. A switch that is not
  // sampled pays nothing for it.
  kInterrupt,
  // The same, and no more of the kernel than 5.8 had.
  kOldInterrupt,
};

// The parts of the kernel that waits are sampled with.
struct WaitKernel {
  WaitProgram program = WaitProgram::kSchedExit;
  // The tracepoint sched_switch says in which state a thread stops (5.18).
  bool has_prev_state = true;
  // The programs can read the stacks of threads that sleep (5.18).
  bool reads_stacks = true;
  // Numbers of types; see KernelBtf.
  uint32_t switch_id = 0;
  uint32_t iterator_id = 0;

  bool by_interrupt() const { return program != WaitProgram::kSchedExit; }
  // The event behind a switch that the program is attached to.
  const char* tracepoint() const {
    return by_interrupt() ? "irq_work_entry" : "sched_exit_tp";
  }
};

// Finds it in 10 ms; `program` empty: the cheapest that this kernel can.
// kUnsupported: what the kernel lacks.
ksym::Result<WaitKernel> FindWaitKernel(std::optional<WaitProgram> program);

}  // namespace profd
