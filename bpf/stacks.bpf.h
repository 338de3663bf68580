/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Takes the stacks of a sample into scratch records and names them. `ctx` is
 * the program's context, whatever started it.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/cpython.bpf.h"
#include "bpf/runtime/runtime.bpf.h"
#include "bpf/unwind.bpf.h"
#include "bpf/unwind_begin.bpf.h"

struct sample {
	struct task_struct *task;
	struct profile_stats *stats;
	__u32 set;
	bool in_user_mode; /* so there is no kernel stack */
	bool is_new; /* has not run: its frame pointer is still its parent's */
	bool has_no_list; /* user space may not know the process */
	struct profile_key key;
	/* The scratch record has as much of the user stack as was found. */
	bool is_walked;
};

/* A failed walk is a fault only where there is a user stack to walk. */
static __always_inline __u64 user_failure(struct sample *s)
{
	struct task_struct *task = s->task;
	struct mm_struct *mm = NULL;

	bpf_core_read(&mm, sizeof(mm), &task->mm);
	return mm ? PROFILE_STACK_FAULT : PROFILE_STACK_NONE;
}

/* -EFAULT says that the CPU was not in the kernel. */
static __always_inline __u64 kernel_failure(long error)
{
	return error == 0 || error == -EFAULT ? PROFILE_STACK_NONE
					      : PROFILE_STACK_FAULT;
}

/*
 * The id of the frames in a scratch record. One multiplication a frame: each
 * step is a bijection of the state, so stacks that differ in one frame never
 * meet; the multiplier is random, so others meet with a chance of about 2^-64
 * a pair. A global function, because the verifier walks such a one once and
 * an inlined one at each call on each path (30,000 instructions, 20 ms).
 */
__noinline __u64 hash_scratch(__u32 which, __u32 depth)
{
	__u64 hash = hash_multiplier ^ depth;
	struct profile_stack_record *record;

	record = scratch_record(which);
	if (!record)
		return 0;
	hash ^= (__u64)record->end << 32;
	hash ^= (__u64)record->used_frame_pointer << 48;
	hash ^= (__u64)record->mixed << 56;
	for (__u32 i = 0; i < max_depth && i < PROFILE_MAX_DEPTH; i++) {
		if (i >= depth)
			break;
		hash = (hash ^ record->frames[i]) * hash_multiplier;
	}
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ull;
	hash ^= hash >> 32;
	return hash < PROFILE_STACK_FIRST_ID ? hash + PROFILE_STACK_FIRST_ID
					     : hash;
}

/* The id of the frames that were written into the scratch record. */
static __always_inline __u64 name_stack(__u32 which,
					struct profile_stack_record *record,
					__u32 depth)
{
	if (depth > PROFILE_MAX_DEPTH)
		depth = PROFILE_MAX_DEPTH;
	record->depth = depth;
	return hash_scratch(which, depth);
}

/* The same of what bpf_get_stack() wrote; it does not say how it ended. */
static __always_inline __u64 name_kernel_walk(
    __u32 which, struct profile_stack_record *record, long bytes, __u32 end)
{
	__u32 depth = bytes / sizeof(__u64);

	record->end = depth >= kernel_walk_depth ? UNWIND_END_DEPTH_LIMIT : end;
	record->used_frame_pointer = 0;
	return name_stack(which, record, depth);
}

/* By whom user stacks are walked; each is a program of its own. */
enum user_walk {
	WALK_BY_KERNEL, /* along frame pointers */
	WALK_BY_STEPS,	/* by tables, in a bounded loop of global functions */
	WALK_BY_LOOP,	/* the same with bpf_loop() (5.17) */
};

/* Before the native frames: these are where the others' places are found. */
static __always_inline void walk_runtime(struct unwind_state *st,
					 struct sample *s, bool is_new,
					 enum user_walk how)
{
	struct runtime_state *runtime;

	/* All that other processes' samples do about runtimes. */
	if (!walks_runtimes || (!is_new && !st->uses_runtimes))
		return;
	if (is_new && !(runtime_known & RUNTIME_KNOWN))
		return;
	runtime = runtime_begin(&s->key, s->set);
	if (!runtime) {
		st->uses_runtimes = 0;
		return;
	}
	st->uses_runtimes = 1;
	if (!is_new && !st->may_have_runtime)
		return;
	if (how == WALK_BY_LOOP && is_new &&
	    runtime_known & RUNTIME_KNOWN_MOVING)
		runtime_look_at(st->ip);
	runtime->active = runtime_find(is_new);
	if (!runtime->active)
		return;
	/* In user mode it is in no system call. */
	if (!s->in_user_mode)
		runtime_note_wait(runtime, arch_timed_wait(&st->regs));
	if (how == WALK_BY_LOOP) {
		cpython_walk_by_loop();
	} else {
		for (int i = 0; i < RUNTIME_FEW_STEPS; i++) {
			if (cpython_step())
				break;
		}
	}
	st->next_anchor = runtime_place(0, 0);
	st->has_runtime = 1;
}

static __always_inline void walk(enum user_walk how)
{
	if (how == WALK_BY_LOOP) {
		unwind_by_loop(SCRATCH_USER);
		return;
	}
	for (int i = 0; i <= PROFILE_MAX_DEPTH; i++) {
		if (unwind_step(SCRATCH_USER))
			break;
	}
}

/* By the kernel, along frame pointers. `end`: why. */
static __always_inline bool take_by_kernel(void *ctx, struct sample *s,
					   __u32 end)
{
	struct profile_stack_record *record;
	__u32 which = SCRATCH_USER;
	bool follows = unwind_by_frame_pointer && !s->is_new;
	__u32 depth = follows ? kernel_walk_depth : 1;
	long n;

	record = scratch_record(which);
	if (!record)
		return false;
	n = bpf_get_stack(ctx, record->frames, depth * sizeof(__u64),
			  BPF_F_USER_STACK);
	if (n <= 0) {
		s->key.user_stack = user_failure(s);
		return true;
	}
	if (!follows && end == UNWIND_END_FRAME_POINTERS)
		end = UNWIND_END_NOT_WALKED;
	s->key.user_stack = name_kernel_walk(which, record, n, end);
	return true;
}

/*
 * Takes as much as was walked of a stack that could not be copied, or has the
 * kernel walk it.
 */
static __always_inline bool take_rest(void *ctx, struct sample *s)
{
	struct profile_stack_record *record;
	__u32 which = SCRATCH_USER, place = scratch_place();
	struct unwind_state *st;

	st = bpf_map_lookup_elem(&unwind_scratch, &place);
	record = scratch_record(which);
	if (!record || !st)
		return false;
	if (!s->is_walked) {
		/* Runs of frames are placed by a walk along tables only. */
		st->uses_runtimes = 0;
		return take_by_kernel(ctx, s, UNWIND_END_NOT_YET);
	}
	if (record->end == UNWIND_END_NOT_YET)
		record->end = UNWIND_END_NO_TABLE;
	s->key.user_stack =
	    runtime_name(st, name_stack(which, record, record->depth));
	return true;
}

enum taken { TAKEN, TAKEN_LATER, NOT_TAKEN };

/* TAKEN_LATER: the process has no tables yet, its stack should be copied. */
static __always_inline enum taken take_user_stack(void *ctx, struct sample *s,
						  enum user_walk how)
{
	struct profile_stack_record *record;
	__u32 which = SCRATCH_USER, place = scratch_place();
	__u32 end = UNWIND_END_FRAME_POINTERS;
	struct unwind_state *st;

	if (how == WALK_BY_KERNEL)
		return take_by_kernel(ctx, s, end) ? TAKEN : NOT_TAKEN;
	record = scratch_record(which);
	st = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!record || !st)
		return NOT_TAKEN;
	if (unwind_begin(st, s->task, &s->key, &end)) {
		walk_runtime(st, s, false, how);
		walk(how);
		record->end = st->end;
		record->used_frame_pointer = st->used_frame_pointer;
		record->depth = st->depth;
		s->is_walked = true;
		if (unwind_again(st))
			return TAKEN_LATER;
		s->key.user_stack =
		    runtime_name(st, name_stack(which, record, record->depth));
		return TAKEN;
	}
	if (end == UNWIND_END_NOT_YET) {
		walk_runtime(st, s, true, how);
		return TAKEN_LATER;
	}
	return take_by_kernel(ctx, s, end) ? TAKEN : NOT_TAKEN;
}

static __always_inline bool take_kernel_stack(void *ctx, struct sample *s)
{
	struct profile_stack_record *record;
	__u32 which = SCRATCH_KERNEL;
	long n;

	if (!want_kernel || s->in_user_mode)
		return true;
	record = scratch_record(which);
	if (!record)
		return false;
	n = bpf_get_stack(ctx, record->frames,
			  kernel_walk_depth * sizeof(__u64), 0);
	s->key.kernel_stack =
	    n > 0
		? name_kernel_walk(which, record, n, UNWIND_END_FRAME_POINTERS)
		: kernel_failure(n);
	return true;
}
