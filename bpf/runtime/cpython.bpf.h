/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Walks the frames of a CPython thread, from the innermost on. A chain that
 * does not lead to its end is not guessed at: the run is marked as torn.
 *
 *   3.11   each call of the evaluation loop has a _PyCFrame on the C stack,
 *          which is the anchor and says where the call's run begins; the run
 *          ends with the frame that is an entry
 *   3.12+  the frames are one chain; behind each run is a shim, a frame that
 *          lies on the C stack and is the anchor
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/cpython_code.bpf.h"
#include "bpf/runtime/runtime_abi.h"
#include "bpf/runtime/runtime_maps.bpf.h"
#include "bpf/unwind_memory.bpf.h"

#define PTHREAD_KEY_SIZE 16
#define PTHREAD_MAX_KEY	 32
/* A code pointer's low bits may be a tag. */
#define CPYTHON_TAG 7ull

/*
 * Moves the window to the frame at that address and what is below it, where its
 * callers are for the most part; 0: it cannot be read. A global function, which
 * the verifier walks once.
 */
__noinline int cpython_move_window(__u64 address)
{
	__u64 in_page = address & (USER_PAGE_BYTES - 1);
	__u64 below = in_page, bytes;
	struct runtime_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st)
		return 0;
	st->window_bytes = 0;
	if (below > RUNTIME_WINDOW_BYTES - CPYTHON_FRAME_BYTES)
		below = RUNTIME_WINDOW_BYTES - CPYTHON_FRAME_BYTES;
	if (in_page > USER_PAGE_BYTES - CPYTHON_FRAME_BYTES) /* on two pages */
		below = 0;
	bytes = below + CPYTHON_FRAME_BYTES;
	asm volatile("" : "+r"(bytes));
	if (bytes > RUNTIME_WINDOW_BYTES)
		return 0;
	if (bpf_probe_read_user(st->window, bytes, (void *)(address - below)))
		return 0;
	st->window_at = address - below;
	st->window_bytes = bytes;
	return 1;
}

/* The word of the frame at st->frame, which is in the window. */
static __always_inline __u64 cpython_word(const struct runtime_state *st,
					  __u32 offset)
{
	return st->window[(st->frame - st->window_at + offset) / 8 &
			  (RUNTIME_WINDOW_BYTES / 8 - 1)];
}

static __always_inline __u32 cpython_byte(const struct runtime_state *st,
					  __u32 offset)
{
	return cpython_word(st, offset) >> 8 * (offset & 7) & 0xff;
}

/* Ends the run, if it has frames. */
static __always_inline void cpython_end_run(struct runtime_state *st,
					    __u64 anchor, __u32 flags)
{
	struct profile_runtime_record *record = &st->record;
	__u32 runs = record->runs;
	struct runtime_run *run;

	if (runs >= RUNTIME_MAX_RUNS)
		return;
	run = &record->run[runs];
	run->anchor = anchor;
	run->end = record->frames;
	run->native = RUNTIME_NOT_PLACED;
	run->flags = flags;
	record->runs = runs + 1;
	st->hash = cpython_hash(st->hash, flags);
}

/* 1: there is no more. */
static __always_inline long cpython_tear(struct runtime_state *st)
{
	cpython_end_run(st, st->anchor, RUNTIME_RUN_TORN);
	/* A chain's next run is known all the same. */
	st->frame = 0;
	st->next_first = RUNTIME_NO_FRAME;
	return !st->cframe;
}

/* The run before does not come from where the next one is. */
static __always_inline void
cpython_tear_last(struct profile_runtime_record *record)
{
	__u32 at = record->runs - 1;

	if (at < RUNTIME_MAX_RUNS)
		record->run[at].flags |= RUNTIME_RUN_TORN;
}

/* As if the run that began last had not been there. */
static __always_inline void cpython_drop_last(struct runtime_state *st)
{
	st->record.frames = st->run_frames;
	st->record.runs = st->run_runs;
	st->hash = st->run_hash;
}

/* Begins the run of the chain's next link. */
static __always_inline long cpython_next_link(struct runtime_state *st)
{
	__u64 link = st->cframe;

	if (!st->layout.ends_at_entry || !link || link & 7 ||
	    link <= st->anchor)
		return 1;
	if (bpf_probe_read_user(&st->frame, sizeof(st->frame),
				(void *)(link + st->layout.cframe_frame)) ||
	    bpf_probe_read_user(&st->cframe, sizeof(st->cframe),
				(void *)(link + st->layout.cframe_previous)))
		return 1;
	st->anchor = link;
	/* Where nothing runs yet, or ever does, as in the thread state's own.
	 */
	if (!st->frame)
		return !st->cframe;
	/*
	 * A call of the loop that has not pushed its frame yet, or has popped
	 * it, still has its caller's. Only a whole run says what the next one
	 * begins with.
	 */
	if (st->frame == st->run_frame)
		cpython_drop_last(st);
	else if (st->next_first != RUNTIME_NO_FRAME &&
		 st->next_first != st->frame)
		cpython_tear_last(&st->record);
	st->next_first = RUNTIME_NO_FRAME;
	st->run_frame = st->frame;
	st->run_hash = st->hash;
	st->run_frames = st->record.frames;
	st->run_runs = st->record.runs;
	return 0;
}

static __always_inline void cpython_push(struct runtime_state *st, __u64 index)
{
	struct profile_runtime_record *record = &st->record;
	__u32 at = record->frames;

	if (at >= RUNTIME_MAX_FRAMES)
		return;
	record->frame[at].code = st->code_id;
	record->frame[at].index = index;
	record->frame[at].reserved = 0;
	record->frames = at + 1;
	st->hash = cpython_hash(st->hash, st->code_id);
	st->hash = cpython_hash(st->hash, index);
}

/* Writes the frame in the window down; false: it is none. */
static __always_inline bool cpython_take_frame(struct runtime_state *st,
					       __u32 owner)
{
	__u64 code = cpython_word(st, st->layout.frame_code) & ~CPYTHON_TAG;
	__s64 index;

	if (!cpython_take_code(code, st->record.header.set))
		return false;
	index = (__s64)(cpython_word(st, st->layout.frame_instruction) - code -
			st->layout.code_units);
	index >>= 1;
	if (index < -1 || index >= (__s64)st->code_size)
		return false;
	/* It is being made and has not begun. */
	if (index < (__s64)st->first_traceable &&
	    owner != CPYTHON_OWNED_BY_GENERATOR)
		return true;
	cpython_push(st, index);
	return true;
}

/* One frame, or the begin or end of a run. 1: there is no more. */
static __always_inline long cpython_frame(struct runtime_state *st)
{
	__u64 previous;
	__u32 owner;

	if (st->record.frames >= RUNTIME_MAX_FRAMES ||
	    st->record.runs >= RUNTIME_MAX_RUNS)
		return 1;
	if (!st->frame)
		return cpython_next_link(st);
	if (st->frame & 7)
		return cpython_tear(st);
	if (st->frame - st->window_at >= st->window_bytes ||
	    st->frame - st->window_at + CPYTHON_FRAME_BYTES >
		st->window_bytes) {
		if (!cpython_move_window(st->frame))
			return cpython_tear(st);
	}
	owner = cpython_byte(st, st->layout.frame_owner);
	previous = cpython_word(st, st->layout.frame_previous);
	if (!st->layout.ends_at_entry && owner == st->layout.shim_owner) {
		cpython_end_run(st, st->frame, 0);
		st->frame = previous;
		return previous == 0;
	}
	if (!cpython_take_frame(st, owner))
		return cpython_tear(st);
	if (st->layout.ends_at_entry &&
	    cpython_byte(st, st->layout.frame_is_entry)) {
		cpython_end_run(st, st->anchor, 0);
		st->next_first = previous;
		st->frame = 0;
		return 0;
	}
	st->frame = previous;
	return previous ? 0 : cpython_tear(st);
}

/* The same as a function that the verifier checks once (before 5.17). */
__noinline int cpython_step(void)
{
	__u32 place = scratch_place();
	struct runtime_state *st =
	    bpf_map_lookup_elem(&runtime_scratch, &place);

	return st ? cpython_frame(st) : 1;
}

static long cpython_callback(__u32 i __attribute__((unused)), void *context)
{
	struct runtime_state *st = *(struct runtime_state **)context;

	return cpython_frame(st);
}

/* The thread's state, as pthread_getspecific() finds it; 0: none. */
static __always_inline __u64 cpython_thread(const struct runtime_state *st,
					    __u64 thread)
{
	__u64 state = 0, id = 0;
	__u32 key = 0;

	if (!thread || bpf_probe_read_user(&key, sizeof(key),
					   (void *)st->layout.key_address))
		return 0;
	if (key >= PTHREAD_MAX_KEY ||
	    bpf_probe_read_user(&state, sizeof(state),
				(void *)(thread + ARCH_GLIBC_PTHREAD_KEYS +
					 PTHREAD_KEY_SIZE * key + 8)))
		return 0;
	/* This rejects wrong offsets and another thread's state. */
	if (!state || state & 7 ||
	    bpf_probe_read_user(&id, sizeof(id),
				(void *)(state + st->layout.thread_id)))
		return 0;
	return id == thread ? state : 0;
}

static __always_inline bool cpython_begin(struct runtime_state *st,
					  struct task_struct *task)
{
	__u64 state, first = 0;

	state = cpython_thread(st, arch_thread_pointer(task));
	if (!state ||
	    bpf_probe_read_user(&first, sizeof(first),
				(void *)(state + st->layout.thread_frame)))
		return false;
	st->frame = 0;
	st->cframe = 0;
	if (st->layout.ends_at_entry) {
		st->cframe = first;
	} else if (st->layout.has_cframe) {
		if (bpf_probe_read_user(
			&st->frame, sizeof(st->frame),
			(void *)(first + st->layout.cframe_frame)))
			return false;
	} else {
		st->frame = first;
	}
	return st->frame || st->cframe;
}
