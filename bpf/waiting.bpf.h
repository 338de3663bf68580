/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Takes samples of threads that wait, when they go on: their stacks are still
 * what they were, and it is known for how long.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/sample.bpf.h"
#include "bpf/stacks.bpf.h"
#include "bpf/unwind_begin.bpf.h"
#include "bpf/waiting_abi.h"
#include "bpf/waiting_account.bpf.h"
#include "bpf/waiting_maps.bpf.h"

/* The value of the frame that says why. */
static __always_inline __u64 wait_reason(__u32 state, __u16 flags, __u32 call,
					 __u32 kind)
{
	if (kind == PROFILE_KIND_RUNNABLE)
		flags |= WAIT_RUNNABLE;
	return (__u64)call | (__u64)(state & 0xffff) << 32 | (__u64)flags << 48;
}

/*
 * The kernel's frames in the scratch record, with room for one more. Returns
 * how many words.
 */
static __always_inline __u32 wait_kernel_frames(void *ctx)
{
	struct profile_stack_record *record = scratch_record(SCRATCH_KERNEL);
	long n = 0;

	if (!record)
		return 0;
	record->end = UNWIND_END_FRAME_POINTERS;
	record->used_frame_pointer = 0;
	record->mixed = 1;
	if (want_kernel)
		n = bpf_get_stack(ctx, record->frames,
				  kernel_walk_depth * sizeof(__u64), 0);
	if (n <= 0)
		return 0;
	n /= sizeof(__u64);
	if (n >= kernel_walk_depth)
		record->end = UNWIND_END_DEPTH_LIMIT;
	return n;
}

/* In place of a waker: the wait is not one that somebody ends. */
#define WAIT_NO_WAKER 0xffffffffffffffffull

/*
 * Puts a waker, unless it is WAIT_NO_WAKER, and the reason behind the kernel's
 * `depth` frames and returns the stack's id; 0: that failed. A global function,
 * which the verifier walks once.
 */
__noinline __u64 wait_name_stack(__u32 depth, __u64 calls, __u64 reason,
				 __u64 waker)
{
	struct profile_stack_record *record = scratch_record(SCRATCH_KERNEL);
	__u64 id;

	if (!record)
		return 0;
	if (depth > PROFILE_MAX_DEPTH - 4)
		depth = PROFILE_MAX_DEPTH - 4;
	/* The hash ends with the limit of a stack's depth. */
	id = (hash_scratch(SCRATCH_KERNEL, depth) ^ reason) * hash_multiplier;
	if (wants_wakers && waker != WAIT_NO_WAKER) {
		record->frames[depth] = PROFILE_FRAME_HEAD(WAKER_FRAME_KIND, 0);
		record->frames[depth + 1] = waker;
		id = (id ^ waker) * hash_multiplier;
		depth += 2;
	}
	record->frames[depth] = PROFILE_FRAME_HEAD(WAIT_FRAME_KIND, calls);
	record->frames[depth + 1] = reason;
	record->depth = depth + 2;
	id ^= id >> 32;
	return id < PROFILE_STACK_FIRST_ID ? id + PROFILE_STACK_FIRST_ID : id;
}

static __always_inline void wait_add(struct wait_count *count, __u64 value)
{
	__sync_fetch_and_add(&count->count, 1);
	__sync_fetch_and_add(&count->value_ns, value);
}

enum wait_put {
	WAIT_PUT_NEW,
	WAIT_PUT_ADDED, /* another CPU was first */
	WAIT_PUT_FULL,
};

/* Counts the first sample of a key. */
static __always_inline enum wait_put wait_put(void *waits,
					      const struct profile_key *key,
					      const struct wait_count *first)
{
	struct wait_count *count;

	if (bpf_map_update_elem(waits, key, first, BPF_NOEXIST) == 0)
		return WAIT_PUT_NEW;
	count = bpf_map_lookup_elem(waits, key);
	if (!count)
		return WAIT_PUT_FULL;
	wait_add(count, first->value_ns);
	return WAIT_PUT_ADDED;
}

static __always_inline void wait_count_in(void *waits, struct sample *s,
					  __u64 value)
{
	struct wait_count first = {.count = 1, .value_ns = value};
	struct wait_count *count = bpf_map_lookup_elem(waits, &s->key);
	enum wait_put put;

	count_up(&s->stats->taken, 1);
	if (count) {
		wait_add(count, value);
		return;
	}
	if (!send_stack(s->set, SCRATCH_USER, s->key.user_stack) ||
	    !send_stack(s->set, SCRATCH_KERNEL, s->key.kernel_stack))
		return;
	put = wait_put(waits, &s->key, &first);
	if (put == WAIT_PUT_NEW)
		send_process_hint(s);
	else if (put == WAIT_PUT_FULL)
		count_up(&s->stats->lost_counts_full, 1);
}

static __always_inline void wait_count(struct sample *s, __u64 value)
{
	if (s->set)
		wait_count_in(&waits_1, s, value);
	else
		wait_count_in(&waits_0, s, value);
}

/* The parts of a wait's two samples. */
struct wait_parts {
	struct profile_wait wait[PROFILE_WAIT_KINDS];
	__u64 reason[PROFILE_WAIT_KINDS];
	__u64 waker; /* of one that was blocked */
	__u32 calls; /* wait_calls */
	__u32 depth; /* of the kernel's stack */
};

/* The id of the stack of kind i + 1; 0: that failed. */
static __always_inline __u64 wait_name_part(const struct wait_parts *parts,
					    int i)
{
	__u64 waker =
	    i + 1 == PROFILE_KIND_BLOCKED ? parts->waker : WAIT_NO_WAKER;

	return wait_name_stack(parts->depth, parts->calls, parts->reason[i],
			       waker);
}

/* Copies the user's stack. True: the samples are still to be counted. */
static __always_inline bool wait_take_later(void *ctx, struct sample *s,
					    struct wait_parts *parts)
{
	__u32 taken = 0;

	for (int i = 0; i < PROFILE_WAIT_KINDS; i++) {
		struct profile_wait *wait = &parts->wait[i];

		if (!wait->value_ns)
			continue;
		wait->kernel_stack = wait_name_part(parts, i);
		taken++;
		if (!send_stack(s->set, SCRATCH_KERNEL, wait->kernel_stack)) {
			count_up(&s->stats->taken, 1);
			wait->value_ns = 0;
			taken--;
		}
	}
	if (!taken)
		return false;
	if (take_later(ctx, s, parts->wait))
		return true;
	count_up(&s->stats->taken, taken);
	return false;
}

/*
 * The system call that the current thread is in, and behind 32 bits by which
 * table it is numbered. A global function, whose stack is its own: that of the
 * program has no room for registers.
 */
__noinline __u64 wait_call(void)
{
	struct task_struct___wait *t = (void *)bpf_get_current_task();
	enum wait_calls calls = WAIT_CALLS_NONE;
	__u32 call = WAIT_NO_CALL;
	struct arch_regs regs;

	if (BPF_CORE_READ(t, mm) && user_regs((void *)t, &regs))
		calls = arch_system_call(
		    &regs, BPF_CORE_READ(t, thread_info.status), &call);
	return (__u64)calls << 32 | call;
}

/* The waker of a wait that was blocked; counts why there is none. */
static __always_inline __u64 wait_waker(const struct wait_mark *mark)
{
	struct wait_cpu *cpu = wait_this_cpu();

	if (!wants_wakers || !cpu || !mark->points[1])
		return WAIT_NO_WAKER;
	if (mark->waker >= WAKER_FIRST_ID)
		return mark->waker;
	if (mark->waker == WAKER_TOO_MANY)
		cpu->stats.wakers_too_many++;
	else if (mark->waker == WAKER_LOST)
		cpu->stats.wakers_lost++;
	else if (mark->waker == WAKER_UNTOLD)
		cpu->stats.wakers_untold++;
	else
		cpu->stats.wakers_unseen++;
	return 0;
}

/* Fills in what led to the wait of the current thread. */
static __always_inline void wait_fill(struct wait_parts *parts,
				      const struct wait_mark *mark)
{
	struct task_struct___wait *t = (void *)bpf_get_current_task();
	__u64 points = mark->points[0] + mark->points[1];
	__u64 call = wait_call();
	__u32 flags = mark->flags;

	parts->calls = call >> 32;
	parts->waker = wait_waker(mark);
	if (BPF_CORE_READ_BITFIELD_PROBED(t, in_iowait))
		flags |= WAIT_IO;
	for (int i = 0; i < PROFILE_WAIT_KINDS; i++) {
		parts->wait[i].kernel_stack = 0;
		parts->wait[i].value_ns = mark->points[i] * wait_period_ns *
					  mark->stands_for / points;
		parts->reason[i] =
		    wait_reason(mark->state, flags, (__u32)call, i + 1);
	}
}

static __always_inline void take_wait(void *ctx, const struct wait_mark *mark,
				      enum user_walk how)
{
	enum taken user = TAKEN;
	struct wait_parts parts;
	struct sample s;

	s.in_user_mode = false;
	if (!begin_sample(&s))
		return;
	s.is_new = mark->flags & WAIT_NEW;
	wait_fill(&parts, mark);
	/* Before it ran only tables tell where its stack begins. */
	if (want_user && (how != WALK_BY_KERNEL || !(mark->flags & WAIT_NEW)))
		user = take_user_stack(ctx, &s, how);
	if (user == NOT_TAKEN)
		return;
	parts.depth = wait_kernel_frames(ctx);
	if (user == TAKEN_LATER && !wait_take_later(ctx, &s, &parts))
		return;
	for (int i = 0; i < PROFILE_WAIT_KINDS; i++) {
		if (!parts.wait[i].value_ns)
			continue;
		s.key.kind = i + 1;
		s.key.kernel_stack = wait_name_part(&parts, i);
		wait_count(&s, parts.wait[i].value_ns);
	}
}

static __always_inline bool wait_is_of(const struct wait_mark *mark)
{
	struct task_struct___wait *t = (void *)bpf_get_current_task();

	return BPF_CORE_READ(t, pid) == (int)mark->tid &&
	       BPF_CORE_READ(t, nvcsw) + BPF_CORE_READ(t, nivcsw) ==
		   mark->switches;
}

/*
 * Takes the sample of the current thread if it has just gone on. An interrupt
 * can also come for another reason: then the thread that has the mark is still
 * to come, or gone.
 */
static __always_inline int wait_resumes(void *ctx, enum user_walk how)
{
	struct wait_cpu *cpu = wait_this_cpu();
	__u32 interrupted;

	if (!cpu || !cpu->mark.tid || !wait_is_of(&cpu->mark))
		return 0;
	interrupted = enter_scratch(SCRATCH_WAIT);
	/* There is no switch meanwhile. */
	take_wait(ctx, &cpu->mark, how);
	enter_scratch(interrupted);
	cpu->mark.tid = 0;
	return 0;
}

/*
 * Attached to an event that comes after each switch, or after one that has left
 * a mark; see wait_programs.h.
 */
SEC("raw_tp")
int wait_resumes_by_kernel(struct bpf_raw_tracepoint_args *ctx)
{
	return wait_resumes(ctx, WALK_BY_KERNEL);
}

SEC("raw_tp")
int wait_resumes_by_steps(struct bpf_raw_tracepoint_args *ctx)
{
	return wait_resumes(ctx, WALK_BY_STEPS);
}

SEC("raw_tp")
int wait_resumes_by_loop(struct bpf_raw_tracepoint_args *ctx)
{
	return wait_resumes(ctx, WALK_BY_LOOP);
}
