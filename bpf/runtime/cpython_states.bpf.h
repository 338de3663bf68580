/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Finds the state that a thread runs in a process with several interpreters.
 *
 * A thread has a state for each interpreter that it uses, and is bound to one
 * of them: up to 3.11 to that which it began with, which it also is called back
 * into whichever it runs, from 3.12 on to that which ran last. It has a place
 * that says which one runs only while it has the lock.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/cpython_thread.bpf.h"
#include "bpf/runtime/runtime_abi.h"
#include "bpf/runtime/runtime_maps.bpf.h"

/* It has frames, but it is not known which. No state is there. */
#define CPYTHON_STATE_UNKNOWN 1ull

/* Begins a search; false: the process has one interpreter, or it is not known.
 */
static __always_inline bool cpython_has_several(struct runtime_state *st)
{
	__u64 newest = 0, next = 0;

	if (!st->layout.newest_interpreter ||
	    !cpython_read(st->layout.newest_interpreter, &newest,
			  sizeof(newest)) ||
	    !newest ||
	    !cpython_read(newest + st->layout.interpreter_next, &next,
			  sizeof(next)))
		return false;
	st->at_interpreter = newest;
	st->at_state = 0;
	st->found_state = 0;
	return next != 0;
}

static __always_inline bool cpython_has_frame(const struct runtime_state *st,
					      __u64 state)
{
	__u64 frame = 0;

	if (!cpython_read(state + st->layout.thread_frame, &frame,
			  sizeof(frame)))
		return false;
	if (st->layout.has_cframe && frame &&
	    !cpython_read(frame + st->layout.cframe_frame, &frame,
			  sizeof(frame)))
		return false;
	return frame != 0;
}

/* Results of a step. */
#define CPYTHON_MORE_STATES 0
#define CPYTHON_ALL_SEEN    1
#define CPYTHON_NOT_CLEAR   2

/* Steps of a search that are a global function of their own: the verifier walks
 * that one once, and so 16 + 16 steps. */
#define CPYTHON_STATES_AT_ONCE 16
_Static_assert(CPYTHON_MAX_STATES % CPYTHON_STATES_AT_ONCE == 0,
	       "steps that are left over");

/* The state at st->at_state, and on to the next one. */
static __always_inline int cpython_see_state(struct runtime_state *st)
{
	__u64 state = st->at_state, links[2] = {}, id = 0;

	if (state & 7 ||
	    !cpython_read(state + CPYTHON_NEXT_THREAD, links, sizeof(links)) ||
	    links[1] != st->at_interpreter ||
	    !cpython_read(state + st->layout.thread_id, &id, sizeof(id)))
		return CPYTHON_NOT_CLEAR;
	if (id == st->thread && cpython_has_frame(st, state)) {
		if (st->found_state)
			return CPYTHON_NOT_CLEAR;
		st->found_state = state;
	}
	st->at_state = links[0];
	return CPYTHON_MORE_STATES;
}

/*
 * The next state of an interpreter other than the own one, or the next one. A
 * global function, which the verifier walks once and not for each step.
 */
__noinline int cpython_search_step(__u32 is_first)
{
	struct runtime_state *st;
	__u32 place = scratch_place();
	__u64 interpreter;
	int seen;

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st)
		return CPYTHON_NOT_CLEAR;
	if (st->at_state) {
		seen = cpython_see_state(st);
		if (seen || st->at_state)
			return seen;
	}
	interpreter = st->at_interpreter;
	if (!is_first &&
	    !cpython_read(interpreter + st->layout.interpreter_next,
			  &interpreter, sizeof(interpreter)))
		return CPYTHON_NOT_CLEAR;
	if (!interpreter)
		return CPYTHON_ALL_SEEN;
	if (interpreter & 7)
		return CPYTHON_NOT_CLEAR;
	st->at_interpreter = interpreter;
	if (interpreter != st->own_interpreter &&
	    !cpython_read(interpreter + st->layout.interpreter_threads,
			  &st->at_state, sizeof(st->at_state)))
		return CPYTHON_NOT_CLEAR;
	return CPYTHON_MORE_STATES;
}

/* CPYTHON_STATES_AT_ONCE steps of the search. */
__noinline int cpython_search_steps(__u32 are_first)
{
	int seen = CPYTHON_MORE_STATES;

	for (int i = 0; i < CPYTHON_STATES_AT_ONCE; i++) {
		seen = cpython_search_step(are_first && i == 0);
		if (seen != CPYTHON_MORE_STATES)
			break;
	}
	return seen;
}

/*
 * The state of another interpreter than the bound state's that has frames; 0:
 * there is none; or CPYTHON_STATE_UNKNOWN. Inlined, as another call would be
 * too much for the BPF stack where waits are sampled.
 */
static __always_inline __u64 cpython_search(struct runtime_state *st,
					    __u64 bound)
{
	int seen = CPYTHON_MORE_STATES;

	if (!cpython_read(bound + CPYTHON_INTERPRETER, &st->own_interpreter,
			  sizeof(st->own_interpreter)))
		return CPYTHON_STATE_UNKNOWN;
	for (int i = 0; i < CPYTHON_MAX_STATES / CPYTHON_STATES_AT_ONCE; i++) {
		seen = cpython_search_steps(i == 0);
		if (seen != CPYTHON_MORE_STATES)
			break;
	}
	return seen == CPYTHON_ALL_SEEN ? st->found_state
					: CPYTHON_STATE_UNKNOWN;
}

/* Whether the first of two states runs inside of the second one, by their
 * structs on the C stack. */
static __always_inline bool cpython_is_inside(const struct runtime_state *st,
					      __u64 one, __u64 other)
{
	__u64 frame = 0, outer_frame = 0;

	return cpython_has_frame(st, one) &&
	       cpython_read(one + st->layout.thread_frame, &frame,
			    sizeof(frame)) &&
	       cpython_read(other + st->layout.thread_frame, &outer_frame,
			    sizeof(outer_frame)) &&
	       frame < outer_frame;
}

/*
 * The innermost state of a thread that has no lock and is bound to the one that
 * it began with; or CPYTHON_STATE_UNKNOWN. Frames that are objects do not tell
 * which of two states is the inner one: the bound one's are left out there.
 */
static __always_inline __u64 cpython_waiting_state(struct runtime_state *st,
						   __u64 bound, __u64 other)
{
	if (!other)
		return bound;
	if (other == CPYTHON_STATE_UNKNOWN ||
	    st->layout.runs == CPYTHON_RUNS_EACH)
		return other;
	if (cpython_is_inside(st, bound, other)) {
		st->outer = other;
		return bound;
	}
	st->outer = bound;
	return other;
}

/*
 * The address of the innermost state of the thread, 0: there is none; or
 * CPYTHON_STATE_UNKNOWN.
 */
static __always_inline __u64 cpython_state(struct runtime_state *st)
{
	__u64 running = cpython_thread(0), bound, other;

	if (!cpython_has_several(st))
		return running ? running : cpython_thread(1);
	bound = cpython_thread(1);
	if (!bound)
		return running;
	if (running && running != bound) {
		st->outer = bound;
		return running;
	}
	/* For both cases at one place, as it is inlined. */
	other = cpython_search(st, bound);
	if (!running && st->layout.runs != CPYTHON_RUNS_TO_SHIM)
		return cpython_waiting_state(st, bound, other);
	if (other != CPYTHON_STATE_UNKNOWN)
		st->outer = other;
	return bound;
}
