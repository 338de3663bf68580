/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The parts that all samples have in common, whatever they are of. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/bell.bpf.h"
#include "bpf/profile_abi.h"
#include "bpf/profile_filters.bpf.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/stack_copy.bpf.h"
#include "bpf/stacks.bpf.h"
#include "bpf/unwind.bpf.h"

static __always_inline __u64 start_time(struct task_struct *task)
{
	struct task_struct *leader = NULL;
	__u64 ns = 0;

	bpf_core_read(&leader, sizeof(leader), &task->group_leader);
	if (bpf_core_field_exists(task->start_boottime)) {
		bpf_core_read(&ns, sizeof(ns), &leader->start_boottime);
	} else {
		struct task_struct___before_5_5 *old = (void *)leader;

		bpf_core_read(&ns, sizeof(ns), &old->real_start_time);
	}
	return ns;
}

/*
 * When the current process started, where the kernel gives a task whose fields
 * may be loaded: a helper's read takes ten times as long. For each load of a
 * pointer the verifier looks through all types of the kernel. It does so once
 * for a global function, and else for each place that asks.
 */
__noinline __u64 current_start(void)
{
	struct task_struct *task;

	if (!has_task_pt_regs)
		return 0;
	task = (void *)bpf_get_current_task_btf();
	return task->group_leader->start_boottime;
}

/*
 * The start and the exec count tell the current process from others of its id.
 * Each sample needs them.
 */
static __always_inline void identify_process(struct profile_key *key,
					     struct task_struct *task)
{
	if (has_task_pt_regs) {
		task = (void *)bpf_get_current_task_btf();
		key->start_ns = current_start();
		key->exec_count = task->self_exec_id;
		return;
	}
	key->start_ns = start_time(task);
	bpf_core_read(&key->exec_count, sizeof(key->exec_count),
		      &task->self_exec_id);
}

/* Fills everything but the stacks and counts nothing. */
static __always_inline bool describe_sample(struct sample *s)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	s->task = task;
	s->is_walked = false;
	s->is_new = false;
	s->has_no_list = false;
	s->set = active_set & 1;
	s->stats = bpf_map_lookup_elem(&stats, &s->set);
	if (!s->stats)
		return false;
	__builtin_memset(&s->key, 0, sizeof(s->key));
	s->key.tgid = pid_tgid >> 32;
	if (per_thread)
		s->key.tid = (__u32)pid_tgid;
	if ((__u32)pid_tgid == 0) {
		/* The kernel says swapper/CPU; the idle task is one thing. */
		__builtin_memcpy(s->key.comm, "swapper", sizeof("swapper"));
		return true;
	}
	bpf_get_current_comm(s->key.comm, sizeof(s->key.comm));
	identify_process(&s->key, task);
	return true;
}

/* The same; false: the sample is not wanted. */
static __always_inline bool begin_sample(struct sample *s)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return passes_filters(task, bpf_get_current_pid_tgid()) &&
	       describe_sample(s);
}

/*
 * In one step: the CPU's sample may interrupt that of a wait, and counts in the
 * same counters. No sample interrupts the CPU's.
 */
static __always_inline void count_up(__u64 *counter, __u64 more)
{
	__sync_fetch_and_add(counter, more);
}

static __always_inline void send_process_hint(struct sample *s)
{
	struct profile_process_record hint = {
	    .header = {.type = PROFILE_RECORD_PROCESS, .set = s->set},
	    .time_ns = bpf_ktime_get_ns(),
	    .start_ns = s->key.start_ns,
	    .cgroup = want_cgroup ? bpf_get_current_cgroup_id() : 0,
	    .tgid = s->key.tgid,
	    .exec_count = s->key.exec_count,
	};

	if (bpf_ringbuf_output(&ring, &hint, sizeof(hint),
			       bell_flags(s->has_no_list)))
		count_up(&s->stats->hints_dropped, 1);
}

/*
 * Sends the frames of a scratch record, whose stack has that id, unless they
 * were sent in this set. 0: there was no room in the ring, so the sample is
 * lost; a waker is no sample. A global function, which the verifier walks once
 * and not at each call on each path.
 */
__noinline int send_stack(__u32 set, __u32 which, __u64 id)
{
	struct profile_stack_record *record;
	struct profile_stats *counters;
	__u8 present = 1;
	__u32 depth;

	if (id < PROFILE_STACK_FIRST_ID)
		return 1;
	if (set ? bpf_map_lookup_elem(&seen_1, &id)
		: bpf_map_lookup_elem(&seen_0, &id))
		return 1;
	record = scratch_record(which);
	if (!record)
		return 0;
	depth = record->depth;
	if (depth > PROFILE_MAX_DEPTH)
		depth = PROFILE_MAX_DEPTH;
	if (which == SCRATCH_USER &&
	    !runtime_send(set, PROFILE_RECORD_RUNTIME, id))
		goto full;
	record->header.type = PROFILE_RECORD_STACK;
	record->header.set = set;
	record->id = id;
	if (bpf_ringbuf_output(&ring, record, PROFILE_STACK_RECORD_BYTES(depth),
			       bell_flags(false)))
		goto full;
	/* When this map is full the frames are merely sent again. */
	if (set)
		bpf_map_update_elem(&seen_1, &id, &present, BPF_ANY);
	else
		bpf_map_update_elem(&seen_0, &id, &present, BPF_ANY);
	return 1;
full:
	if (takes_waits && scratch_place() == SCRATCH_WAKER)
		return 0;
	counters = bpf_map_lookup_elem(&stats, &set);
	if (counters)
		count_up(&counters->lost_ring_full, 1);
	return 0;
}

/*
 * Copies the stack, of which there is no kernel stack left to send. True: the
 * sample is still to be counted. `waits`: as in take_later().
 */
static __always_inline bool copy_user_stack(void *ctx, struct sample *s,
					    const struct profile_wait *waits)
{
	struct copy_scratch *scratch_copy;
	enum copied how = COPY_REFUSED;
	struct unwind_state *st;
	bool execs = false;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&unwind_scratch, &place);
	scratch_copy = bpf_map_lookup_elem(&copy_scratch, &place);
	if (st && scratch_copy) {
		execs = !s->in_user_mode && arch_in_exec(&st->regs);
		scratch_copy->head.key = s->key;
		if (waits)
			__builtin_memcpy(scratch_copy->head.waits, waits,
					 sizeof(scratch_copy->head.waits));
		how = send_copy(s->set, execs);
	}
	if (how == COPIED)
		return false;
	if (how == COPY_REFUSED)
		count_up(&s->stats->copies_refused, 1);
	/* The caller of exec is gone, and its program has not begun. */
	if (how == NO_STACK && execs)
		return true;
	return take_rest(ctx, s);
}

/*
 * Copies the stack. True: the sample is still to be counted. `waits`: what it
 * is of, whose kernel stacks were sent; null: the CPU's, with the key's.
 */
static __always_inline bool take_later(void *ctx, struct sample *s,
				       const struct profile_wait *waits)
{
	/* The copy's sample needs them as any other does. */
	if (!waits && !send_stack(s->set, SCRATCH_KERNEL, s->key.kernel_stack))
		return false;
	return copy_user_stack(ctx, s, waits);
}
