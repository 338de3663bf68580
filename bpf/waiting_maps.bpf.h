/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The knobs and maps of waiting.bpf.h, and the kernel's types that it reads. */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>

#include "bpf/arch/arch.bpf.h"
#include "bpf/dump_abi.h"
#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/waiting_abi.h"

/* Nanoseconds that a point stands for, from 1 to 2^32 - 1. */
const volatile __u64 wait_period_ns = 10101010;
/* Random per capture: nobody can be asleep at all points but one. */
const volatile __u64 wait_seed = 0;
/* Slots, a power of two, less 1. */
const volatile __u32 wait_slot_mask = 0;
/* Stacks of a CPU in WAIT_BUDGET_NS, before chance decides. */
const volatile __u32 wait_stacks_at_once = 100;
#define WAIT_BUDGET_NS 100000000
/* The tracepoint sched_switch says in which state a thread stops (5.18). */
const volatile __u8 wait_has_prev_state = 1;
/* An interrupt has to be asked for, which comes after the switch. */
const volatile __u8 wait_by_interrupt = 0;
/* Wakers are looked at; see wakers.bpf.h. */
const volatile __u8 wants_wakers = 0;
/* The cgroup that is selected with what is below it, where one is. */
const volatile __u64 filter_cgroup_id = 0;
/* Levels of cgroups that are looked at. */
#define WAIT_CGROUP_LEVELS 32

/* A wait_thread_record tells what each thread did from begin to end. */
const volatile __u8 wait_tells_threads = 1;
/* User space walks stacks by tables. */
const volatile __u8 wait_copies_walked = 1;
/* There is a walk over all threads at the end of each interval. */
const volatile __u8 wait_walks = 0;

/* The thread that drains; it tells how the clocks differ. */
__u32 wait_own_tid = 0;
/* CLOCK_MONOTONIC less the scheduler's clock, when that thread ran last. */
__u64 wait_clock_offset = 0;
/* By the scheduler's clock: what was before it does not count; 0: nothing. */
__u64 wait_from = 0;

struct rq {
	unsigned long long clock;
} __core;
struct cfs_rq {
	struct rq *rq;
	unsigned int throttle_count;
} __core;
struct sched_entity {
	unsigned long long sum_exec_runtime;
	struct cfs_rq *cfs_rq;
} __core;
struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
} __core;
struct thread_info {
	unsigned int status;
} __core;
struct kernfs_node {
	unsigned long long id;
} __core;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
} __core;
struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
} __core;
struct css_set {
	struct cgroup *dfl_cgrp;
} __core;
struct task_struct___wait {
	struct thread_info thread_info;
	unsigned int __state;
	/* Shorter in some kernels: libbpf adapts reads of what has no sign. */
	unsigned int on_cpu;
	unsigned int on_rq;
	int exit_state;
	int pid;
	int tgid;
	struct mm_struct *mm;
	unsigned int in_iowait : 1;
	struct sched_entity se;
	struct sched_info sched_info;
	struct css_set *cgroups;
	unsigned long nvcsw;
	unsigned long nivcsw;
	unsigned long long start_time;
	unsigned int self_exec_id;
	char comm[PROFILE_COMM_BYTES];
} __core;
/* Since 6.18 threads are throttled one by one, on their way to user code. */
struct task_struct___throttled {
	unsigned char throttled;
} __core;
/* The field's name and size before 5.14. */
struct task_struct___before_5_14 {
	long state;
} __core;

/*
 * A thread as it was when it stopped running last. A slot is found by the
 * thread's id; a cache line each, as a switch touches two.
 */
struct wait_slot {
	__u32 tid;   /* 0: free */
	__u32 state; /* in which it stopped, and WAIT_STATE_... */
	__u64 start_time;
	__u64 began;	  /* to wait, by the scheduler's clock */
	__u64 runnable;	  /* the kernel's sum, then */
	__u64 switches;	  /* from a CPU, up to then */
	__u64 next_point; /* those before it were looked at */
	__u64 waker;	  /* who ended the wait, or a waker_state */
	__u64 reserved;
};
#define WAIT_STATE_PREEMPTED 0x80000000
#define WAIT_STATE_QUOTA     0x40000000
_Static_assert(sizeof(struct wait_slot) == 64, "wait_slot");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait_slot);
} wait_slots SEC(".maps");

#define WAITS_MAP                                                              \
	__uint(type, BPF_MAP_TYPE_HASH);                                       \
	__uint(max_entries, 1);                                                \
	__type(key, struct profile_key);                                       \
	__type(value, struct wait_count)

struct {
	WAITS_MAP;
} waits_0 SEC(".maps"), waits_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait_cpu);
} wait_cpus SEC(".maps");

/* A record of no bytes in a CPU's own ring has an interrupt come to that CPU.
 */
struct wait_bell {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct wait_bell);
} wait_bells SEC(".maps");

/* By the scheduler's clock: when sampling ended; 0: it has not. */
__u64 wait_until = 0;
/*
 * The same: up to when a walk counts what waits, if it is one of those at the
 * end of an interval; 0: it is not.
 */
__u64 wait_walk_until = 0;
/* So many stacks may such a walk take yet; of others there are put off. */
__u32 wait_stacks_left = 0;
__u64 wait_put_off = 0;
/* And only of waits that began by then. */
__u64 wait_began_by = -1;

/*
 * Threads whose stack user space has from an earlier walk, by their id. Written
 * by user space alone.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait_known);
} wait_known_threads SEC(".maps");

struct bpf_iter_meta {
	struct seq_file *seq;
} __core;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct___wait *task;
};

/* A stack of another thread is read in pieces of that size, so many. */
#define WAIT_READ_BYTES 4096
#define WAIT_READS	5
/* Frames of another thread's kernel stack, at the most. */
#define WAIT_OTHER_DEPTH 64

/* As profile_piece_record, which has more room. */
struct wait_piece {
	struct profile_record header;
	__u64 copy;
	__u64 address;
	__u32 bytes;
	__u32 reserved;
	__u8 stack[WAIT_READ_BYTES];
};
#define WAIT_PIECE_HEAD 32
_Static_assert(offsetof(struct wait_piece, stack) == WAIT_PIECE_HEAD,
	       "wait_piece");

/* Registers by their roles. */
struct wait_walk {
	__u64 ip, sp, fp, extra;
	__u64 leaf[ARCH_REGISTERS];
};

/* There is one iterator at a time, which may go from one CPU to another. */
struct wait_scratch {
	struct wait_thread_record thread;
	struct profile_stack_record kernel;
	struct profile_copy_record copy;
	struct wait_piece piece;
	struct arch_regs regs;
	struct wait_walk walk;
	struct wait_count count;
	struct wait_asleep_record asleep;
	struct dump_thread_record dump;
	__u64 lost;	/* of the thread's samples */
	__u64 switches; /* of the thread, when its wait was counted */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait_scratch);
} wait_scratch SEC(".maps");
