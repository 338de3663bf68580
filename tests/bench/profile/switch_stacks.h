/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the baseline of scripts/bench and its BPF program share. */
#pragma once

#include <linux/types.h>

#define SWITCH_THREADS 10240
#define SWITCH_STACKS 16384
#define SWITCH_DEPTH 127

struct SwitchWait {
  __u32 tid;
  __u32 tgid;
  /* Negative: there is none. */
  int user_stack;
  int kernel_stack;
};
