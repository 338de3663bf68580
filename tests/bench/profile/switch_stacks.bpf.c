/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The baseline of scripts/bench: waits are timed at each switch of threads,
 * and both stacks are taken whenever a thread stops. That is how most tools
 * do it; capacities are the usual ones.
 */
/* clang-format off: the other headers need the types of this one. */
#include <linux/bpf.h>
/* clang-format on */
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "tests/bench/profile/switch_stacks.h"

struct task_struct {
  int pid;
  int tgid;
} __attribute__((preserve_access_index));

struct stopped {
  __u64 since;
  int user_stack;
  int kernel_stack;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, SWITCH_THREADS);
  __type(key, __u32);
  __type(value, struct stopped);
} stops SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_STACK_TRACE);
  __uint(max_entries, SWITCH_STACKS);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, SWITCH_DEPTH * sizeof(__u64));
} stacks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, SWITCH_THREADS);
  __type(key, struct SwitchWait);
  __type(value, __u64);
} waits SEC(".maps");

const volatile int wanted_process = 0;
/* Waits that are in no sum: no room for them. */
__u64 lost;

static __always_inline void stop(void* context, struct task_struct* prev) {
  __u32 tid = prev->pid;
  struct stopped stopped = {.since = bpf_ktime_get_ns()};

  if (!tid || (wanted_process && prev->tgid != wanted_process)) return;
  stopped.user_stack = bpf_get_stackid(context, &stacks, BPF_F_USER_STACK);
  stopped.kernel_stack = bpf_get_stackid(context, &stacks, 0);
  if (bpf_map_update_elem(&stops, &tid, &stopped, BPF_ANY))
    __sync_fetch_and_add(&lost, 1);
}

static __always_inline void go_on(struct task_struct* next) {
  __u32 tid = next->pid;
  struct stopped* stopped = bpf_map_lookup_elem(&stops, &tid);
  struct SwitchWait wait = {};
  __u64 waited;
  __u64* sum;

  if (!stopped) return;
  waited = bpf_ktime_get_ns() - stopped->since;
  wait.tid = tid;
  wait.tgid = next->tgid;
  wait.user_stack = stopped->user_stack;
  wait.kernel_stack = stopped->kernel_stack;
  sum = bpf_map_lookup_elem(&waits, &wait);
  if (sum)
    __sync_fetch_and_add(sum, waited);
  else if (bpf_map_update_elem(&waits, &wait, &waited, BPF_NOEXIST))
    __sync_fetch_and_add(&lost, 1);
  bpf_map_delete_elem(&stops, &tid);
}

/* The arguments: preempted, the thread that stops, the one that goes on. */
SEC("tp_btf/sched_switch")
int on_switch(__u64* arguments) {
  stop(arguments, (struct task_struct*)arguments[1]);
  go_on((struct task_struct*)arguments[2]);
  return 0;
}

char switch_license[] SEC("license") = "GPL";
