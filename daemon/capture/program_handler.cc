// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/program_handler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

namespace profd {
namespace {

// The cookie is the type's number, in libbpf's type for it.
template <bpf_attach_type kAttach, uint32_t kFlags>
int Prepare(bpf_program* program, bpf_prog_load_opts* options,
            long cookie) {  // NOLINT(google-runtime-int)
  options->expected_attach_type = kAttach;
  options->attach_btf_id = static_cast<uint32_t>(cookie);
  options->prog_flags |= kFlags;
  return bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
}

struct Section {
  const char* name;
  libbpf_prog_prepare_load_fn_t prepare;
};

Section SectionOf(ProgramHandler::Kind kind) {
  switch (kind) {
    case ProgramHandler::Kind::kSwitch:
      return {"ksym_tp/sched_switch", &Prepare<BPF_TRACE_RAW_TP, 0>};
    case ProgramHandler::Kind::kWaking:
      return {"ksym_tp/sched_waking", &Prepare<BPF_TRACE_RAW_TP, 0>};
    case ProgramHandler::Kind::kIterator:
      return {"ksym_iter_kernel/task", &Prepare<BPF_TRACE_ITER, 0>};
    case ProgramHandler::Kind::kSleepingIterator:
      return {"ksym_iter/task", &Prepare<BPF_TRACE_ITER, BPF_F_SLEEPABLE>};
  }
  __builtin_unreachable();
}

// libbpf 1.1 frees its list of handlers with the last one, and goes on using it
// for the next. So there is always one, of a section that no program is in.
void KeepHandlers() {
  static const int kKept =
      libbpf_register_prog_handler("ksym_none", BPF_PROG_TYPE_RAW_TRACEPOINT,
                                   static_cast<bpf_attach_type>(0), nullptr);
  (void)kKept;
}

}  // namespace

ProgramHandler::ProgramHandler(Kind kind, uint32_t btf_id) {
  KeepHandlers();
  const Section section = SectionOf(kind);
  libbpf_prog_handler_opts options = {};
  options.sz = sizeof(options);
  options.cookie = btf_id;
  options.prog_prepare_load_fn = section.prepare;
  handler_ =
      libbpf_register_prog_handler(section.name, BPF_PROG_TYPE_RAW_TRACEPOINT,
                                   static_cast<bpf_attach_type>(0), &options);
}

ProgramHandler::~ProgramHandler() {
  if (handler_ > 0) libbpf_unregister_prog_handler(handler_);
}

}  // namespace profd
