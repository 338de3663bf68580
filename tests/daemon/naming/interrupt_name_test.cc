// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/interrupt_name.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace profd {
namespace {

// The name by a stack's symbols, leaf first.
std::string NameOf(std::initializer_list<std::string_view> symbols) {
  InterruptName name;
  for (const std::string_view symbol : symbols) {
    if (!name.Add(symbol)) break;
  }
  return name.name();
}

// An interrupt is what its functions are about, a device's its handler.
TEST(InterruptNameTest, IsWhatTheStackShows) {
  EXPECT_EQ(NameOf({"try_to_wake_up", "hrtimer_wakeup", "__hrtimer_run_queues",
                    "hrtimer_interrupt"}),
            "timer");
  EXPECT_EQ(
      NameOf({"autoremove_wake_function", "blk_update_request",
              "blk_mq_end_request", "nvme_irq", "__handle_irq_event_percpu"}),
      "block");
  EXPECT_EQ(NameOf({"sock_def_readable", "tcp_v4_rcv", "net_rx_action",
                    "handle_softirqs"}),
            "net_rx");
  EXPECT_EQ(NameOf({"complete", "i8042_interrupt", "__handle_irq_event_percpu",
                    "handle_irq_event"}),
            "i8042_interrupt");
  EXPECT_EQ(NameOf({"complete", "of_nobody", "handle_softirqs", "do_softirq"}),
            "of_nobody");
  EXPECT_EQ(NameOf({"", "__do_softirq", "do_softirq"}), "softirq");
}

// Frames of the interrupted code say nothing of the interrupt.
TEST(InterruptNameTest, EndsWhereTheInterruptBegan) {
  EXPECT_EQ(NameOf({"complete", "sysvec_of_nobody", "asm_sysvec_of_nobody",
                    "net_rx_action", "hrtimer_wakeup"}),
            "");
  EXPECT_EQ(NameOf({"complete", "asm_call_irq_on_stack", "process_timeout"}),
            "timer");
  EXPECT_EQ(NameOf({"complete", "", "common_interrupt", "hrtimer_wakeup"}), "");
  EXPECT_EQ(NameOf({}), "");
}

}  // namespace
}  // namespace profd
