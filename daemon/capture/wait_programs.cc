// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/wait_programs.h"

#include <linux/btf.h>
#include <sys/utsname.h>

#include <string>
#include <string_view>
#include <vector>

#include "daemon/capture/kernel_btf_id.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;

// Numbers of the names that FindWaitKernel() looks for.
enum Found : uint8_t { kSwitch, kExit, kInterrupts, kIterator, kReads };

std::string WhatIsMissing(const std::vector<uint32_t>& ids,
                          std::optional<WaitProgram> program) {
  if (ids[kIterator] == 0) return "iterators over threads (Linux 5.8)";
  if (ids[kSwitch] == 0) return "the tracepoint sched_switch";
  if (program == WaitProgram::kSchedExit && ids[kExit] == 0) {
    return "the tracepoint sched_exit_tp (Linux 6.15)";
  }
  if (ids[kExit] == 0 && ids[kInterrupts] == 0) {
    return "the tracepoint sched_exit_tp (Linux 6.15) and on x86 "
           "irq_work_entry";
  }
  return program && ids[kInterrupts] == 0 ? "the tracepoint irq_work_entry"
                                          : "";
}

// With PREEMPT_RT a thread calls what waits for a record, not the interrupt:
// the switch is long over by then.
bool HasThreadsForInterrupts() {
  utsname host = {};
  if (::uname(&host) != 0) return false;
  const std::string_view version = host.version;
  // In two words up to Linux 5.14.
  return version.find("PREEMPT_RT") != std::string_view::npos ||
         version.find("PREEMPT RT") != std::string_view::npos;
}

WaitProgram BestProgram(const std::vector<uint32_t>& ids) {
  if (ids[kExit] == 0) return WaitProgram::kInterrupt;
  return ids[kInterrupts] == 0 || HasThreadsForInterrupts()
             ? WaitProgram::kSchedExit
             : WaitProgram::kInterrupt;
}

std::unexpected<ksym::Error> Unsupported(const std::string& what) {
  return Fail(ErrorCode::kUnsupported,
              "waits cannot be sampled, as this kernel does not have " + what);
}

}  // namespace

ksym::Result<WaitKernel> FindWaitKernel(std::optional<WaitProgram> program) {
  const auto btf = KernelBtf::Open();
  if (!btf) return Unsupported("its types (CONFIG_DEBUG_INFO_BTF)");
  // In the order of Found.
  const KernelBtf::Name names[] = {
      {BTF_KIND_TYPEDEF, "btf_trace_sched_switch"},
      {BTF_KIND_TYPEDEF, "btf_trace_sched_exit_tp"},
      {BTF_KIND_TYPEDEF, "btf_trace_irq_work_entry"},
      {BTF_KIND_FUNC, "bpf_iter_task"},
      {0, "BPF_FUNC_copy_from_user_task"}};
  const auto ids = btf->Find(names);
  if (!ids) return Fail(ids.error());
  const std::string missing = WhatIsMissing(*ids, program);
  if (!missing.empty()) return Unsupported(missing);
  // Something of libbpf's, whether it preempts, two threads, and a state since
  // 5.18.
  const auto kinds = btf->ParameterKinds((*ids)[kSwitch]);
  if (!kinds) return Fail(kinds.error());
  if (kinds->size() < 4 || (*kinds)[2] != BTF_KIND_PTR ||
      (*kinds)[3] != BTF_KIND_PTR) {
    return Unsupported("a tracepoint sched_switch whose arguments are known");
  }
  WaitKernel kernel;
  kernel.program = program.value_or(BestProgram(*ids));
  const bool is_old = kernel.program == WaitProgram::kOldInterrupt;
  kernel.has_prev_state = !is_old && kinds->size() > 4;
  kernel.reads_stacks = !is_old && (*ids)[kReads] != 0;
  kernel.switch_id = (*ids)[kSwitch];
  kernel.iterator_id = (*ids)[kIterator];
  return kernel;
}

}  // namespace profd
