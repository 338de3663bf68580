/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Walks the frames of a CPython thread, from the innermost on. A chain that
 * does not lead to its end is not guessed at: the run is marked as torn.
 *
 *   3.8    frames are objects, each with its own call of the evaluation loop,
 *          which keeps a word that leads to its frame
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
#include "bpf/runtime/cpython_states.bpf.h"
#include "bpf/runtime/cpython_thread.bpf.h"
#include "bpf/runtime/runtime_abi.h"
#include "bpf/runtime/runtime_maps.bpf.h"
#include "bpf/unwind_memory.bpf.h"

/* A code pointer's low bits may be a tag. */
#define CPYTHON_TAG 7ull
/* Where no frame is. */
#define CPYTHON_NOWHERE 1ull

/*
 * Moves the window to the frame at that address and what is below it, where its
 * callers are for the most part, but not of objects; 0: it cannot be read. A
 * global function, which the verifier walks once.
 */
__noinline int cpython_move_window(__u64 address)
{
	__u64 in_page = address & (USER_PAGE_BYTES - 1);
	__u64 below = in_page, bytes, frame;
	struct runtime_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st)
		return 0;
	st->window_bytes = 0;
	frame = st->layout.frame_bytes;
	if (frame > CPYTHON_FRAME_BYTES)
		return 0;
	if (below > RUNTIME_WINDOW_BYTES - CPYTHON_FRAME_BYTES)
		below = RUNTIME_WINDOW_BYTES - CPYTHON_FRAME_BYTES;
	if (in_page > USER_PAGE_BYTES - frame || /* on two pages */
	    st->layout.runs == CPYTHON_RUNS_EACH)
		below = 0;
	bytes = below + frame;
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

/* Ends the run that the last frames are. */
static __always_inline void cpython_end_run(struct runtime_state *st,
					    __u64 anchor, __u32 kind)
{
	struct profile_runtime_record *record = &st->record;
	__u32 at = record->items, last = st->last_run;
	struct runtime_item *item = runtime_item_at(st, at), *before;

	if (!item)
		return;
	item->word = anchor;
	item->index = RUNTIME_NO_ITEM;
	item->native = RUNTIME_NOT_PLACED;
	item->kind = RUNTIME_ITEM_RUN | kind;
	before = runtime_item_at(st, last);
	if (before)
		before->index = at;
	else
		st->next_run = at;
	st->last_run = at;
	record->items = at + 1;
	st->hash = cpython_hash(st->hash, kind);
}

/* Frames were written down since the last run's end. */
static __always_inline bool cpython_has_frames(const struct runtime_state *st)
{
	__u32 begin = st->last_run == RUNTIME_NO_ITEM ? 0 : st->last_run + 1;

	return st->record.items > begin;
}

/* 1: there is no more. A global function, which the verifier walks once. */
__noinline long cpython_tear(void)
{
	struct runtime_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st)
		return 1;
	cpython_end_run(st, st->anchor, RUNTIME_ITEM_TORN);
	/* A chain's next run is known all the same. */
	st->frame = 0;
	st->next_first = RUNTIME_NO_FRAME;
	return !st->cframe;
}

/* The run before does not come from where the next one is. */
static __always_inline void cpython_tear_last(struct runtime_state *st)
{
	struct runtime_item *last = runtime_item_at(st, st->last_run);

	if (last)
		last->kind |= RUNTIME_ITEM_TORN;
}

/* As if the run that began last had not been there. */
static __always_inline void cpython_drop_last(struct runtime_state *st)
{
	st->record.items = st->run_items;
	st->last_run = st->run_last;
	st->hash = st->run_hash;
}

/* There is no next link, so that the last run should come from nowhere. */
static __always_inline long cpython_end_links(struct runtime_state *st)
{
	if (st->next_first != RUNTIME_NO_FRAME && st->next_first)
		cpython_tear_last(st);
	return 1;
}

/* Begins the run of the chain's next link. */
static __always_inline long cpython_next_link(struct runtime_state *st)
{
	__u64 link = st->cframe;

	if (st->layout.runs != CPYTHON_RUNS_TO_ENTRY)
		return 1;
	if (!link || link & 7 || link <= st->anchor ||
	    bpf_probe_read_user(&st->frame, sizeof(st->frame),
				(void *)(link + st->layout.cframe_frame)) ||
	    bpf_probe_read_user(&st->cframe, sizeof(st->cframe),
				(void *)(link + st->layout.cframe_previous)))
		return cpython_end_links(st);
	st->anchor = link;
	/* Where nothing runs yet, or ever does, as in the thread state's own.
	 */
	if (!st->frame)
		return st->cframe ? 0 : cpython_end_links(st);
	/*
	 * A call of the loop that has not pushed its frame yet, or has popped
	 * it, still has its caller's. Only a whole run says what the next one
	 * begins with.
	 */
	if (st->frame == st->run_frame)
		cpython_drop_last(st);
	else if (st->next_first != RUNTIME_NO_FRAME &&
		 st->next_first != st->frame)
		cpython_tear_last(st);
	st->next_first = RUNTIME_NO_FRAME;
	st->run_frame = st->frame;
	st->run_hash = st->hash;
	st->run_items = st->record.items;
	st->run_last = st->last_run;
	return 0;
}

static __always_inline void cpython_push(struct runtime_state *st, __u64 index)
{
	struct profile_runtime_record *record = &st->record;
	__u32 at = record->items;
	struct runtime_item *item = runtime_item_at(st, at);

	if (!item)
		return;
	item->word = st->code_id;
	item->index = index;
	item->native = 0;
	item->kind = RUNTIME_ITEM_FRAME;
	record->items = at + 1;
	st->hash = cpython_hash(st->hash, st->code_id);
	st->hash = cpython_hash(st->hash, index);
}

/* Writes the object in the window down; false: it is none. */
static __always_inline bool cpython_take_object(struct runtime_state *st)
{
	__s32 index = cpython_word(st, st->layout.frame_instruction);

	if (cpython_word(st, CPYTHON_TYPE) != st->layout.frame_type ||
	    !cpython_take_code(cpython_word(st, st->layout.frame_code),
			       st->record.header.set))
		return false;
	if (st->layout.instruction == CPYTHON_INSTRUCTION_BYTES)
		index >>= 1;
	/* Before the first instruction it is at the function's begin. */
	cpython_push(st, index < 0 ? 0 : index);
	return true;
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
	/*
	 * It is being made and has not begun. With a _PyCFrame it calls nothing
	 * then, but a call of the loop that begins has what was there before as
	 * its first frame.
	 */
	if (index < (__s64)st->first_traceable &&
	    owner != CPYTHON_OWNED_BY_GENERATOR)
		return !st->layout.has_cframe || !cpython_has_frames(st);
	cpython_push(st, index);
	return true;
}

/* The frame in the window, or the begin or end of a run. 1: it is the last. */
static __always_inline long cpython_take(struct runtime_state *st)
{
	__u64 previous = cpython_word(st, st->layout.frame_previous);
	__u32 owner = 0;

	if (st->layout.runs == CPYTHON_RUNS_EACH) {
		if (!cpython_take_object(st))
			return cpython_tear();
		cpython_end_run(st, st->frame + st->layout.word_offset, 0);
		st->frame = previous;
		return previous == 0;
	}
	owner = cpython_byte(st, st->layout.frame_owner);
	if (st->layout.runs == CPYTHON_RUNS_TO_SHIM &&
	    owner == st->layout.shim_owner) {
		if (st->next_first != RUNTIME_NO_FRAME &&
		    st->next_first != previous)
			return cpython_tear();
		st->next_first = RUNTIME_NO_FRAME;
		if (cpython_has_frames(st))
			cpython_end_run(st, st->frame, 0);
		st->frame = previous;
		return previous == 0;
	}
	if (!cpython_take_frame(st, owner))
		return cpython_tear();
	if (st->layout.runs == CPYTHON_RUNS_TO_ENTRY &&
	    cpython_byte(st, st->layout.frame_is_entry)) {
		cpython_end_run(st, st->anchor, 0);
		st->next_first = previous;
		st->frame = 0;
		return 0;
	}
	st->frame = previous;
	return previous ? 0 : cpython_tear();
}

/* One frame, or the begin or end of a run. 1: there is no more. */
static __always_inline long cpython_go_on(struct runtime_state *st)
{
	__u64 at;

	if (!st->frame)
		return cpython_next_link(st);
	if (st->frame & 7)
		return cpython_tear();
	at = st->frame - st->window_at;
	if (at >= st->window_bytes ||
	    at + st->layout.frame_bytes > st->window_bytes) {
		if (!cpython_move_window(st->frame))
			return cpython_tear();
	}
	return cpython_take(st);
}

/*
 * The innermost frame by the _PyCFrame at that address, of the innermost call
 * of the loop. The call before tells what that call's run comes from: a call
 * that begins has put neither there yet, but whatever lay there before.
 */
static __always_inline bool cpython_begin_at_link(struct runtime_state *st,
						  __u64 link)
{
	__u64 before = 0;

	if (bpf_probe_read_user(&st->frame, sizeof(st->frame),
				(void *)(link + st->layout.cframe_frame)) ||
	    bpf_probe_read_user(&before, sizeof(before),
				(void *)(link + st->layout.cframe_previous)))
		return false;
	if (!before || before & 7 ||
	    bpf_probe_read_user(&st->next_first, sizeof(st->next_first),
				(void *)(before + st->layout.cframe_frame)))
		st->next_first = CPYTHON_NOWHERE;
	return true;
}

/* At the innermost frame of that state; false: it has none. */
static __always_inline bool cpython_begin_at(struct runtime_state *st,
					     __u64 state)
{
	__u64 first = 0;

	if (bpf_probe_read_user(&first, sizeof(first),
				(void *)(state + st->layout.thread_frame)))
		return false;
	st->frame = 0;
	st->cframe = 0;
	if (st->layout.runs == CPYTHON_RUNS_TO_ENTRY) {
		st->cframe = first;
	} else if (st->layout.has_cframe) {
		if (!cpython_begin_at_link(st, first))
			return false;
	} else {
		st->frame = first;
	}
	return st->frame || st->cframe;
}

/*
 * Goes on with the frames of the interpreter that the thread ran the other one
 * inside of; 0: there are none. A global function, which the verifier walks
 * once.
 */
__noinline int cpython_begin_outer(void)
{
	struct runtime_state *st;
	__u32 place = scratch_place();
	__u64 state;

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st || !st->outer)
		return 0;
	state = st->outer;
	st->outer = 0;
	st->next_first = RUNTIME_NO_FRAME;
	st->run_frame = 0;
	return cpython_begin_at(st, state);
}

/* The same as long as there is room. */
static __always_inline long cpython_frame(struct runtime_state *st)
{
	/* For the frame and the end of its run, torn or not. */
	if (st->record.items >= RUNTIME_MAX_ITEMS - 1)
		return 1;
	if (!cpython_go_on(st) || (st->outer && cpython_begin_outer()))
		return 0;
	st->record.flags &= ~RUNTIME_FRAMES_CUT;
	return 1;
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
	long end = cpython_frame(st);

	/* The verifier does not know what a global function returns. */
	barrier_var(end);
	return end & 1;
}

/*
 * The frames of the state, with bpf_loop(). A global function, as the verifier
 * would walk the callback once for each path that leads here.
 */
__noinline int cpython_walk_by_loop(void)
{
	struct runtime_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (st)
		bpf_loop(RUNTIME_STEPS, cpython_callback, &st, 0);
	return 0;
}

static __always_inline bool cpython_begin(struct runtime_state *st,
					  struct task_struct *task)
{
	__u64 state;

	st->thread = arch_thread_pointer(task);
	state = cpython_state(st);
	/* A call of the inner interpreter that begins has no frame yet. */
	if (state != CPYTHON_STATE_UNKNOWN)
		return state &&
		       (cpython_begin_at(st, state) || cpython_begin_outer());
	st->frame = 0;
	st->cframe = 0;
	cpython_end_run(st, 0, RUNTIME_ITEM_TORN);
	return true;
}
