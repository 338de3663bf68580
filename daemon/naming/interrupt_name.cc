// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/interrupt_name.h"

#include <algorithm>
#include <array>

namespace profd {
namespace {

struct KnownInterrupt {
  std::string_view symbol;
  std::string_view name;
};

// Functions of Linux 5.8 and later that run in one kind of interrupt only, or
// that are what an interrupt is about.
constexpr std::array kKnownInterrupts = {
    KnownInterrupt{"hrtimer_wakeup", "timer"},
    KnownInterrupt{"process_timeout", "timer"},
    KnownInterrupt{"call_timer_fn", "timer"},
    KnownInterrupt{"__run_timers", "timer"},
    KnownInterrupt{"run_timer_softirq", "timer"},
    KnownInterrupt{"__hrtimer_run_queues", "timer"},
    KnownInterrupt{"hrtimer_interrupt", "timer"},
    KnownInterrupt{"hrtimer_run_softirq", "timer"},
    KnownInterrupt{"net_rx_action", "net_rx"},
    KnownInterrupt{"net_tx_action", "net_tx"},
    KnownInterrupt{"bio_endio", "block"},
    KnownInterrupt{"blk_update_request", "block"},
    KnownInterrupt{"blk_mq_end_request", "block"},
    KnownInterrupt{"blk_done_softirq", "block"},
    KnownInterrupt{"blk_complete_reqs", "block"},
    KnownInterrupt{"tasklet_action_common", "tasklet"},
    KnownInterrupt{"tasklet_action_common.constprop.0", "tasklet"},
    KnownInterrupt{"rcu_core", "rcu"},
    KnownInterrupt{"rcu_do_batch", "rcu"},
    KnownInterrupt{"irq_work_run", "irq_work"},
    KnownInterrupt{"irq_work_run_list", "irq_work"},
    KnownInterrupt{"irq_work_single", "irq_work"},
    KnownInterrupt{"__flush_smp_call_function_queue", "call_function"},
    KnownInterrupt{"flush_smp_call_function_queue", "call_function"},
    KnownInterrupt{"generic_smp_call_function_single_interrupt",
                   "call_function"},
};

// Whether the function calls a device's handler, whose name is the interrupt's.
bool CallsHandler(std::string_view symbol) {
  return symbol.starts_with("__handle_irq_event_percpu") ||
         symbol == "handle_irq_event_percpu";
}

// Behind these on the stack is what was interrupted.
bool IsInterruptsEnd(std::string_view symbol) {
  return symbol.starts_with("asm_") || symbol.starts_with("sysvec_") ||
         symbol.starts_with("exc_") || symbol == "common_interrupt" ||
         symbol == "__common_interrupt" || symbol.starts_with("fred_");
}

// The kernel calls from here what interrupts have put off.
bool IsSoftInterrupt(std::string_view symbol) {
  return symbol == "__do_softirq" || symbol == "handle_softirqs" ||
         symbol == "__softirqentry_text_start";
}

}  // namespace

bool InterruptName::Add(std::string_view symbol) {
  const auto* const known =
      std::ranges::find(kKnownInterrupts, symbol, &KnownInterrupt::symbol);
  if (known != kKnownInterrupts.end()) {
    name_ = known->name;
  } else if (CallsHandler(symbol)) {
    name_ = callee_;
  } else if (IsSoftInterrupt(symbol)) {
    name_ = callee_.empty() ? "softirq" : callee_;
  }
  callee_ = symbol;
  // 5.10 has the first of these between the handler and its entry.
  const bool is_switch_of_stacks = symbol.starts_with("asm_call_");
  return name_.empty() && (is_switch_of_stacks || !IsInterruptsEnd(symbol));
}

}  // namespace profd
