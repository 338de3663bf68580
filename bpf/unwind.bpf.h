/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Walks user stacks by the tables of unwind_abi.h, in code that keeps no frame
 * pointers. ksym/unwind/unwind_row.h has the rules.
 *
 * The state of a walk is in a map and not on the stack: there the verifier does
 * not follow its values, and functions can share it that it checks once each
 * and not once per path (global functions, whose arguments are numbers).
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/runtime.bpf.h"
#include "bpf/runtime/hotspot.bpf.h"
#include "bpf/runtime/v8.bpf.h"
#include "bpf/unwind_abi.h"
#include "bpf/unwind_maps.bpf.h"
#include "bpf/unwind_memory.bpf.h"
#include "bpf/unwind_rows.bpf.h"

/* Sets st->at; false: the address is in no mapping. */
static __always_inline bool unwind_locate(struct unwind_state *st, __u64 pc)
{
	struct unwind_mapping *mapping;
	__u32 place;

	if (pc - st->at.start < st->at.size)
		return true;
	place = unwind_search_mappings(st->first, st->mappings, pc);
	mapping = bpf_map_lookup_elem(&unwind_mappings, &place);
	if (!mapping || pc - mapping->start >= mapping->size)
		return false;
	st->at = *mapping;
	return true;
}

/*
 * Code that nothing describes may say itself where its caller is: an
 * interpreter makes trampolines, which return at once when what they called has
 * returned. 0: it says nothing. A global function, which the verifier walks
 * once.
 */
__noinline int unwind_return(void)
{
	__u64 code = 0, at, fp, ip;
	struct unwind_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!st || bpf_probe_read_user(&code, sizeof(code), (void *)st->ip))
		return 0;
	at = st->sp;
	fp = st->fp;
	if (ARCH_POPS_FP(code)) {
		if (!unwind_read(st, at, &fp))
			return 0;
		at += 8;
		st->fp_lost = 0;
	} else if (ARCH_ADDS_SP(code)) {
		at += ARCH_ADDED_SP(code);
	} else {
		return 0;
	}
	if (!unwind_read(st, at, &ip))
		return 0;
	st->fp = fp;
	st->ip = ip;
	st->sp = at + 8;
	return 1;
}

static __always_inline __u32 unwind_cfa_kind(const struct unwind_state *st)
{
	return st->row >> 56 & 15;
}

/* Both words are where a function's first instructions put them. */
static __always_inline bool unwind_frame_pointer(struct unwind_state *st)
{
	__u64 fp, ip;

	if (st->has_runtime && st->back && unwind_return())
		return true;
	st->end = UNWIND_END_NO_TABLE;
	if (!unwind_by_frame_pointer || st->fp_lost)
		return false;
	if (st->fp == 0) {
		st->end = UNWIND_END_ZERO_FRAME_POINTER;
		st->used_frame_pointer = 1;
		return false;
	}
	if (st->fp < st->sp || st->fp & 7 ||
	    st->fp - st->sp > UNWIND_MAX_FRAME_BYTES)
		return false;
	if (!unwind_read(st, st->fp, &fp) ||
	    !unwind_read(st, st->fp + 8, &ip)) {
		st->end = UNWIND_END_BAD_READ;
		return false;
	}
	st->sp = st->fp + 16;
	st->fp = fp;
	st->ip = ip;
	st->back = 1;
	st->extra_lost = 1;
	st->used_frame_pointer = 1;
	return true;
}

/*
 * The step of the runtime that made the code at st->ip. Inlined: on Linux 5.10
 * each call takes some of the stack that all of them share.
 */
static __always_inline int runtime_step(const struct unwind_state *st)
{
	int stepped = RUNTIME_NOT_ITS_CODE;

	if (st->code_runtimes & UNWIND_CODE_HOTSPOT)
		stepped = hotspot_step();
	if (stepped == RUNTIME_NOT_ITS_CODE &&
	    st->code_runtimes & UNWIND_CODE_V8)
		stepped = v8_step();
	return stepped;
}

/* Leaves code that nothing describes. False: st->end says why not. */
static __always_inline bool unwind_undescribed(struct unwind_state *st)
{
	if (walks_runtimes && st->code_runtimes) {
		int stepped = runtime_step(st);

		if (stepped != RUNTIME_NOT_ITS_CODE)
			return stepped == RUNTIME_STEPPED;
	}
	return unwind_frame_pointer(st);
}

static __always_inline bool unwind_signal(struct unwind_state *st)
{
	struct arch_signal_regs *regs = &st->signal_regs;

	if (bpf_probe_read_user(regs, sizeof(*regs),
				(void *)(st->sp + ARCH_SIGNAL_REGS_OFFSET))) {
		st->end = UNWIND_END_BAD_READ;
		return false;
	}
	ARCH_USE_REGS(st, regs);
	st->back = 0;
	st->fp_lost = 0;
	st->extra_lost = 0;
	return true;
}

/* The canonical frame address; 0: st->end says why there is none. */
static __always_inline __u64 unwind_cfa(struct unwind_state *st, __u32 kind,
					__s16 offset)
{
	__s64 words = offset;
	__s64 low = (__s8)(offset & 0xff);
	__s64 high = offset >> 8;
	__u64 cfa = 0;

	st->end = UNWIND_END_UNSUPPORTED;
	switch (kind) {
	case UNWIND_CFA_SP:
		return st->sp + 8 * words;
	case UNWIND_CFA_FP:
		return st->fp_lost ? 0 : st->fp + 8 * words;
	case UNWIND_CFA_EXTRA:
		return st->extra_lost ? 0 : st->extra + 8 * words;
	case UNWIND_CFA_PLT:
		return st->sp + ((st->ip & 15) >= (__u64)words ? 16 : 8);
	case UNWIND_CFA_LEAF_REGISTER:
		if (st->back)
			return 0;
		return st->leaf[high & (ARCH_REGISTERS - 1)] + 8 * low;
	case UNWIND_CFA_RETURN_REGISTER:
		return st->back ? 0 : st->sp + 8 * low;
	case UNWIND_CFA_CLONE:
		if (st->back)
			return 0;
		if (!st->leaf[ARCH_RESULT]) {
			st->end = UNWIND_END_OUTERMOST;
			return 0;
		}
		return st->sp + 8 * words;
	case UNWIND_CFA_FP_DEREF:
		if (st->fp_lost)
			return 0;
		cfa = st->fp + 8 * high;
		break;
	case UNWIND_CFA_SP_DEREF:
		cfa = st->sp + 8 * high;
		break;
	default:
		return 0;
	}
	if (!unwind_read(st, cfa, &cfa)) {
		st->end = UNWIND_END_BAD_READ;
		return 0;
	}
	return cfa + 8 * low;
}

/* Kinds of FP, a bit each. */
#define UNWIND_FP_SET(kind) (1u << UNWIND_FP_##kind)
#define UNWIND_FP_IN_MEMORY                                                    \
	(0xff00u | UNWIND_FP_SET(SAVED) | UNWIND_FP_SET(SAVED_EXTRA_BELOW) |   \
	 UNWIND_FP_SET(SAVED_EXTRA_LOST) | UNWIND_FP_SET(SAVED_AT_FP))
#define UNWIND_EXTRA_IN_MEMORY                                                 \
	(0xff00u | UNWIND_FP_SET(SAVED_EXTRA_BELOW) |                          \
	 UNWIND_FP_SET(SAME_EXTRA_SAVED))
#define UNWIND_EXTRA_LOST                                                      \
	(UNWIND_FP_SET(LOST) | UNWIND_FP_SET(SAVED_EXTRA_LOST) |               \
	 UNWIND_FP_SET(SAME_EXTRA_LOST) | UNWIND_FP_SET(SAVED_AT_FP))

/* Words that the extra register is below the frame pointer's place. */
static __always_inline __u64 unwind_extra_below(__u32 kind)
{
	if (kind >= UNWIND_FP_SAVED_EXTRA_BELOW_2)
		return kind - UNWIND_FP_SAVED_EXTRA_BELOW_2 + 2;
	return kind == UNWIND_FP_SAVED_EXTRA_BELOW;
}

/*
 * The frame pointer, extra register and address of the caller. Sets of kinds
 * and not a case for each: the verifier walks a read of memory as often as it
 * stands here.
 */
static __always_inline bool unwind_restore(struct unwind_state *st, __u64 cfa)
{
	__u32 kind = st->row >> 60, is = 1u << kind;
	__u64 base = kind == UNWIND_FP_SAVED_AT_FP ? st->fp : cfa;
	__u64 at = base + 8 * (__s8)(st->row >> 48);
	__u64 ip;

	st->end = UNWIND_END_BAD_READ;
	if (kind == UNWIND_FP_SAVED_AT_FP && st->fp_lost)
		return false;
	if (is & UNWIND_FP_IN_MEMORY) {
		if (!unwind_read(st, at, &st->fp))
			return false;
		st->fp_lost = 0;
	}
	if (is & UNWIND_EXTRA_IN_MEMORY) {
		if (!unwind_read(st, at - 8 * unwind_extra_below(kind),
				 &st->extra))
			return false;
		st->extra_lost = 0;
	}
	if (is & UNWIND_EXTRA_LOST)
		st->extra_lost = 1;
	if (kind == UNWIND_FP_LOST)
		st->fp_lost = 1;
	if (!unwind_read(st, cfa - 8, &ip))
		return false;
	st->ip = ip;
	st->sp = cfa;
	st->back = 1;
	return true;
}

/* To the caller by a row; false: st->end says why there is none. */
static __always_inline bool unwind_by_row(struct unwind_state *st)
{
	__s16 cfa_offset = (__s16)(st->row >> 32);
	__u32 kind = unwind_cfa_kind(st);
	__u64 cfa;

	if (kind == UNWIND_CFA_END) {
		st->end = UNWIND_END_OUTERMOST;
		return false;
	}
	if (kind == UNWIND_CFA_SIGNAL)
		return unwind_signal(st);
	cfa = unwind_cfa(st, kind, cfa_offset);
	if (!cfa)
		return false;
	/* Without a return address on the stack the frame may be empty. */
	if (cfa < st->sp + (kind != UNWIND_CFA_RETURN_REGISTER)) {
		st->end = UNWIND_END_NO_PROGRESS;
		return false;
	}
	/*
	 * The row is read anew. With what is known of it by now the verifier
	 * would walk the rest once for each kind.
	 */
	barrier();
	if (!unwind_restore(st, cfa))
		return false;
	if (unwind_cfa_kind(st) == UNWIND_CFA_RETURN_REGISTER)
		st->ip = st->leaf[st->row >> 40 & (ARCH_REGISTERS - 1)];
	return true;
}

/* Writes one frame down and goes to its caller. 1: that was the last. */
static __always_inline long unwind_frame(struct unwind_state *st,
					 struct profile_stack_record *record)
{
	__u64 pc = st->ip - st->back;
	__u32 depth = st->depth;
	bool found;

	if (st->next_anchor < st->sp)
		st->next_anchor = runtime_place(st->sp, depth);
	if (depth >= st->limit || depth >= PROFILE_MAX_DEPTH) {
		st->end = UNWIND_END_DEPTH_LIMIT;
		return 1;
	}
	found = unwind_locate(st, pc);
	if (!found && depth) {
		st->end = st->ip ? UNWIND_END_NO_MAPPING : UNWIND_END_OUTERMOST;
		return 1;
	}
	/* A reader takes 1 off each frame but the first. */
	record->frames[depth] = pc + (depth != 0);
	st->depth = depth + 1;
	if (!found) {
		st->end = UNWIND_END_NO_MAPPING;
		return 1;
	}
	if (st->at.shard == UNWIND_PENDING) {
		st->end = UNWIND_END_NOT_YET;
		return 1;
	}
	st->row = 0;
	if (st->at.shard != UNWIND_NO_TABLE)
		st->row = unwind_find_row(
		    st->at.shard, st->at.index | (__u32)st->at.rows << 16,
		    st->at.first_block, pc - st->at.base);
	if (unwind_cfa_kind(st) == UNWIND_CFA_NO_INFO)
		return !unwind_undescribed(st);
	/* Nobody calls the trampoline: its first byte is where it is. */
	if (unwind_cfa_kind(st) == UNWIND_CFA_SIGNAL)
		record->frames[depth] = st->ip + (depth != 0);
	return !unwind_by_row(st);
}

/* One frame as a function that the verifier checks once (before 5.17). */
__noinline int unwind_step(__u32 which)
{
	struct profile_stack_record *record;
	struct unwind_state *st;
	__u32 place = scratch_place();

	record = scratch_record(which);
	st = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!record || !st)
		return 1;
	return unwind_frame(st, record);
}

struct unwind_walk {
	struct unwind_state *st;
	struct profile_stack_record *record;
};

static long unwind_callback(__u32 i __attribute__((unused)), void *context)
{
	struct unwind_walk *walk = context;

	return unwind_frame(walk->st, walk->record);
}

/*
 * The frames of the user's stack, with bpf_loop(). A global function, as the
 * verifier would walk the callback once for each path that leads here.
 */
__noinline int unwind_by_loop(__u32 which)
{
	struct unwind_walk walk;
	__u32 place = scratch_place();

	walk.record = scratch_record(which);
	walk.st = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (walk.record && walk.st)
		bpf_loop(PROFILE_MAX_DEPTH + 1, unwind_callback, &walk, 0);
	return 0;
}
