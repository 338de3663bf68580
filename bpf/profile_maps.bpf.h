/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The ground of profile.bpf.c: the kernel's types as far as they are read, the
 * knobs that are set before load, and the maps.
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"

#define __core __attribute__((preserve_access_index))

struct ns_common {
	unsigned int inum;
} __core;
struct mnt_namespace {
	struct ns_common ns;
} __core;
struct nsproxy {
	struct mnt_namespace *mnt_ns;
} __core;
struct mm_struct;
struct task_struct {
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct nsproxy *nsproxy;
	unsigned long long start_boottime;
	unsigned int self_exec_id; /* 64 bits wide since 5.7; low half used */
} __core;
/* The field's name before 5.5. */
struct task_struct___before_5_5 {
	unsigned long long real_start_time;
} __core;

/* Set before load. Flags are bytes: the skeleton is read by C++ as well. */
const volatile __u8 want_user = 1;
const volatile __u8 want_kernel = 1;
const volatile __u8 per_thread = 0;
const volatile __u8 include_idle = 0;
const volatile __u8 filter_pids = 0;
const volatile __u8 filter_tids = 0;
const volatile __u8 filter_cgroup = 0;
const volatile __u8 filter_cgroup_ids = 0;
const volatile __u8 filter_mntns = 0;
const volatile __u8 want_cgroup = 0; /* with each process */
const volatile __u8 wants_slices = 0;
const volatile __u32 max_depth = 127;
/* The same, but not above the kernel's own limit. */
const volatile __u32 kernel_walk_depth = 127;
/* Random per capture: nobody can aim two stacks at one id. Odd. */
const volatile __u64 hash_multiplier = 0x9e3779b97f4a7c15ull;

/* Flipped by user space. */
__u32 active_set = 0;

/* Set by user space before sampling begins. */
__u64 slice_phase_ns = 0;

/* Modules that came or went since the start; user space compares. */
__u64 module_changes = 0;

#define COUNTS_MAP                                                             \
	__uint(type, BPF_MAP_TYPE_HASH);                                       \
	__uint(max_entries, 1);                                                \
	__type(key, struct profile_key);                                       \
	__type(value, __u64)

struct {
	COUNTS_MAP;
} counts_0 SEC(".maps"), counts_1 SEC(".maps");

/* Ids whose frames are in the ring already; the value carries nothing. */
#define SEEN_MAP                                                               \
	__uint(type, BPF_MAP_TYPE_HASH);                                       \
	__uint(max_entries, 1);                                                \
	__type(key, __u64);                                                    \
	__type(value, __u8)

struct {
	SEEN_MAP;
} seen_0 SEC(".maps"), seen_1 SEC(".maps");

/* value_size is set before load, from the depth. */
#define STACK_TRACE_MAP                                                        \
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);                                \
	__uint(max_entries, 1);                                                \
	__uint(key_size, sizeof(__u32));                                       \
	__uint(value_size, 127 * sizeof(__u64))

struct {
	STACK_TRACE_MAP;
} traces_0 SEC(".maps"), traces_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROFILE_SETS);
	__type(key, __u32);
	__type(value, struct profile_stats);
} stats SEC(".maps");

enum scratch_stack { SCRATCH_USER, SCRATCH_KERNEL, SCRATCH_STACKS };

/* Samples of waits are taken too, so there is more than one place. */
const volatile __u8 takes_waits = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} scratch_places SEC(".maps");

/* The place of the sample that is taken on this CPU. */
static __always_inline __u32 scratch_place(void)
{
	__u32 zero = 0, *place;

	if (!takes_waits)
		return 0;
	place = bpf_map_lookup_elem(&scratch_places, &zero);
	return place ? *place : 0;
}

/* Returns the place of whom it interrupts, to be set again in the end. */
static __always_inline __u32 enter_scratch(__u32 place)
{
	__u32 zero = 0, *current, before;

	if (!takes_waits)
		return 0;
	current = bpf_map_lookup_elem(&scratch_places, &zero);
	if (!current)
		return 0;
	before = *current;
	*current = place;
	return before;
}

/* Stacks are put together here: they do not fit the BPF stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_STACKS);
	__type(key, __u32);
	__type(value, struct profile_stack_record);
} scratch SEC(".maps");

static __always_inline struct profile_stack_record *scratch_record(__u32 which)
{
	__u32 at = which + SCRATCH_STACKS * scratch_place();

	return bpf_map_lookup_elem(&scratch, &at);
}

/* Thread group ids (or thread ids) to sample. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} selected_ids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} selected_cgroup SEC(".maps");

/* Replaced by the user's pinned maps. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u64);
} cgroup_ids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} mount_namespaces SEC(".maps");
