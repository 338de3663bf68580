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
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/runtime.bpf.h"
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

/* A frame's RIP and RBP as `push %rbp; mov %rsp, %rbp` leaves them. */
static __always_inline bool unwind_frame_pointer(struct unwind_state *st)
{
	__u64 bp, ip;

	st->end = PROFILE_END_NO_TABLE;
	if (!unwind_by_frame_pointer || st->bp_lost)
		return false;
	if (st->bp == 0) {
		st->end = PROFILE_END_ZERO_FRAME_POINTER;
		st->used_frame_pointer = 1;
		return false;
	}
	if (st->bp < st->sp || st->bp & 7 ||
	    st->bp - st->sp > UNWIND_MAX_FRAME_BYTES)
		return false;
	if (!unwind_read(st, st->bp, &bp) ||
	    !unwind_read(st, st->bp + 8, &ip)) {
		st->end = PROFILE_END_BAD_READ;
		return false;
	}
	st->sp = st->bp + 16;
	st->bp = bp;
	st->ip = ip;
	st->back = 1;
	st->bx_lost = 1;
	st->used_frame_pointer = 1;
	return true;
}

static __always_inline void
unwind_use_signal_regs(struct unwind_state *st,
		       const struct x86_64_signal_regs *regs)
{
	st->leaf[DWARF_RAX] = regs->ax;
	st->leaf[DWARF_RDX] = regs->dx;
	st->leaf[DWARF_RCX] = regs->cx;
	st->leaf[DWARF_RSI] = regs->si;
	st->leaf[DWARF_RDI] = regs->di;
	st->leaf[DWARF_R8] = regs->r8;
	st->leaf[9] = regs->r9;
	st->leaf[10] = regs->r10;
	st->leaf[11] = regs->r11;
	st->leaf[12] = regs->r12;
	st->leaf[13] = regs->r13;
	st->leaf[14] = regs->r14;
	st->leaf[15] = regs->r15;
	st->ip = regs->ip;
	st->sp = regs->sp;
	st->bp = regs->bp;
	st->bx = regs->bx;
	st->back = 0;
	st->bp_lost = 0;
	st->bx_lost = 0;
}

static __always_inline bool unwind_signal(struct unwind_state *st)
{
	struct x86_64_signal_regs regs;

	if (bpf_probe_read_user(&regs, sizeof(regs),
				(void *)(st->sp + SIGNAL_REGS_OFFSET))) {
		st->end = PROFILE_END_BAD_READ;
		return false;
	}
	unwind_use_signal_regs(st, &regs);
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

	st->end = PROFILE_END_UNSUPPORTED;
	switch (kind) {
	case UNWIND_CFA_RSP:
		return st->sp + 8 * words;
	case UNWIND_CFA_RBP:
		return st->bp_lost ? 0 : st->bp + 8 * words;
	case UNWIND_CFA_RBX:
		return st->bx_lost ? 0 : st->bx + 8 * words;
	case UNWIND_CFA_PLT:
		return st->sp + ((st->ip & 15) >= (__u64)words ? 16 : 8);
	case UNWIND_CFA_LEAF_REGISTER:
		if (st->back)
			return 0;
		return st->leaf[high & (DWARF_REGISTERS - 1)] + 8 * low;
	case UNWIND_CFA_RETURN_REGISTER:
		return st->back ? 0 : st->sp + 8 * low;
	case UNWIND_CFA_CLONE:
		if (st->back)
			return 0;
		if (!st->leaf[DWARF_RAX]) {
			st->end = PROFILE_END_OUTERMOST;
			return 0;
		}
		return st->sp + 8 * words;
	case UNWIND_CFA_RBP_DEREF:
		if (st->bp_lost)
			return 0;
		cfa = st->bp + 8 * high;
		break;
	case UNWIND_CFA_RSP_DEREF:
		cfa = st->sp + 8 * high;
		break;
	default:
		return 0;
	}
	if (!unwind_read(st, cfa, &cfa)) {
		st->end = PROFILE_END_BAD_READ;
		return 0;
	}
	return cfa + 8 * low;
}

/* RBX, where the RbpKind says that it is in memory. */
static __always_inline bool unwind_rbx(struct unwind_state *st, __u32 kind,
				       __u64 at)
{
	__u64 below = kind >= UNWIND_RBP_SAVED_RBX_BELOW_2 ? kind - 6 : 1;

	if (kind == UNWIND_RBP_SAME_RBX_SAVED)
		below = 0;
	if (!unwind_read(st, at - 8 * below, &st->bx))
		return false;
	st->bx_lost = 0;
	return true;
}

/* RBP, RBX and RIP of the caller. */
static __always_inline bool unwind_restore(struct unwind_state *st, __u64 cfa,
					   __u32 kind, __s8 offset)
{
	__u64 at = cfa + 8 * (__s64)offset;
	__u64 ip;

	st->end = PROFILE_END_BAD_READ;
	switch (kind) {
	case UNWIND_RBP_SAME:
		break;
	case UNWIND_RBP_LOST:
		st->bp_lost = 1;
		st->bx_lost = 1;
		break;
	case UNWIND_RBP_SAME_RBX_LOST:
		st->bx_lost = 1;
		break;
	case UNWIND_RBP_SAME_RBX_SAVED:
		if (!unwind_rbx(st, kind, at))
			return false;
		break;
	case UNWIND_RBP_SAVED_AT_RBP:
		at = st->bp + 8 * (__s64)offset;
		if (st->bp_lost || !unwind_read(st, at, &st->bp))
			return false;
		st->bx_lost = 1;
		break;
	default:
		if (!unwind_read(st, at, &st->bp))
			return false;
		st->bp_lost = 0;
		if (kind == UNWIND_RBP_SAVED_RBX_LOST)
			st->bx_lost = 1;
		else if (kind != UNWIND_RBP_SAVED && !unwind_rbx(st, kind, at))
			return false;
	}
	if (!unwind_read(st, cfa - 8, &ip))
		return false;
	st->ip = ip;
	st->sp = cfa;
	st->back = 1;
	return true;
}

/* To the caller by a row; false: st->end says why there is none. */
static __always_inline bool unwind_by_row(struct unwind_state *st, __u64 row)
{
	__u32 rule = row >> 56;
	__s8 rbp_offset = (__s8)(row >> 48);
	__s16 cfa_offset = (__s16)(row >> 32);
	__u32 kind = rule & 15;
	__u64 cfa;

	if (kind == UNWIND_CFA_END) {
		st->end = PROFILE_END_OUTERMOST;
		return false;
	}
	if (kind == UNWIND_CFA_SIGNAL)
		return unwind_signal(st);
	cfa = unwind_cfa(st, kind, cfa_offset);
	if (!cfa)
		return false;
	/* Without a return address on the stack the frame may be empty. */
	if (cfa < st->sp + (kind != UNWIND_CFA_RETURN_REGISTER)) {
		st->end = PROFILE_END_NO_PROGRESS;
		return false;
	}
	if (!unwind_restore(st, cfa, rule >> 4, rbp_offset))
		return false;
	if (kind == UNWIND_CFA_RETURN_REGISTER)
		st->ip = st->leaf[cfa_offset >> 8 & (DWARF_REGISTERS - 1)];
	return true;
}

/* Writes one frame down and goes to its caller. 1: that was the last. */
static __always_inline long unwind_frame(struct unwind_state *st,
					 struct profile_stack_record *record)
{
	__u64 pc = st->ip - st->back;
	__u32 depth = st->depth;
	__u64 row = 0;
	bool found;

	if (st->next_anchor < st->sp)
		st->next_anchor = runtime_place(st->sp, depth);
	if (depth >= st->limit || depth >= PROFILE_MAX_DEPTH) {
		st->end = PROFILE_END_DEPTH_LIMIT;
		return 1;
	}
	found = unwind_locate(st, pc);
	if (!found && depth) {
		st->end =
		    st->ip ? PROFILE_END_NO_MAPPING : PROFILE_END_OUTERMOST;
		return 1;
	}
	/* A reader takes 1 off each frame but the first. */
	record->frames[depth] = pc + (depth != 0);
	st->depth = depth + 1;
	if (!found) {
		st->end = PROFILE_END_NO_MAPPING;
		return 1;
	}
	if (st->at.shard == UNWIND_PENDING) {
		st->end = PROFILE_END_NOT_YET;
		return 1;
	}
	if (st->at.shard != UNWIND_NO_TABLE)
		row = unwind_find_row(st->at.shard,
				      st->at.index | (__u32)st->at.rows << 16,
				      st->at.first_block, pc - st->at.base);
	if ((row >> 56 & 15) == UNWIND_CFA_NO_INFO)
		return !unwind_frame_pointer(st);
	/* Nobody calls the trampoline: its first byte is where it is. */
	if ((row >> 56 & 15) == UNWIND_CFA_SIGNAL)
		record->frames[depth] = st->ip + (depth != 0);
	return !unwind_by_row(st, row);
}

/* One frame as a function that the verifier checks once (before 5.17). */
__noinline int unwind_step(__u32 which)
{
	struct profile_stack_record *record;
	struct unwind_state *st;
	__u32 zero = 0;

	record = bpf_map_lookup_elem(&scratch, &which);
	st = bpf_map_lookup_elem(&unwind_scratch, &zero);
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

static __always_inline bool user_regs(struct task_struct *task,
				      struct x86_64_regs *regs)
{
	struct task_struct___stack *with_stack = (void *)task;
	/* Before the helper was there no kernel padded this stack's top. */
	const __u64 stack_bytes = 16384;
	void *stack = NULL;

	if (has_task_pt_regs) {
		long at = bpf_task_pt_regs((void *)bpf_get_current_task_btf());

		return bpf_probe_read_kernel(regs, sizeof(*regs), (void *)at) ==
		       0;
	}
	if (bpf_core_read(&stack, sizeof(stack), &with_stack->stack))
		return false;
	return bpf_probe_read_kernel(regs, sizeof(*regs),
				     stack + stack_bytes - sizeof(*regs)) == 0;
}

static __always_inline void unwind_use_regs(struct unwind_state *st)
{
	const struct x86_64_regs *regs = &st->regs;

	st->leaf[DWARF_RAX] = regs->ax;
	st->leaf[DWARF_RDX] = regs->dx;
	st->leaf[DWARF_RCX] = regs->cx;
	st->leaf[DWARF_RSI] = regs->si;
	st->leaf[DWARF_RDI] = regs->di;
	st->leaf[DWARF_R8] = regs->r8;
	st->leaf[9] = regs->r9;
	st->leaf[10] = regs->r10;
	st->leaf[11] = regs->r11;
	st->leaf[12] = regs->r12;
	st->leaf[13] = regs->r13;
	st->leaf[14] = regs->r14;
	st->leaf[15] = regs->r15;
	st->ip = regs->ip;
	st->sp = regs->sp;
	st->bp = regs->bp;
	st->bx = regs->bx;
	st->back = 0;
	st->bp_lost = 0;
	st->bx_lost = 0;
	st->used_frame_pointer = 0;
	st->depth = 0;
	st->at.start = 0;
	st->at.size = 0;
	st->window_bytes = 0;
	st->next_anchor = RUNTIME_NO_ANCHOR;
}

static __always_inline bool unwind_may_copy(struct unwind_list_header *header)
{
	__u64 now;

	if (header->copies) {
		header->copies--;
		return true;
	}
	now = bpf_ktime_get_ns();
	if (now - header->copied_ns < UNWIND_COPY_PERIOD_NS)
		return false;
	header->copied_ns = now;
	return true;
}

/*
 * Whether user space can know more about the stack that was walked: there the
 * mappings are those of the moment. Then the registers are in place again.
 */
static __always_inline bool unwind_again(struct unwind_state *st)
{
	struct unwind_list_header *header;
	__u32 place = st->first - 1;

	if (st->end == PROFILE_END_NO_MAPPING) {
		header = bpf_map_lookup_elem(&unwind_mappings, &place);
		/* Not exact where two CPUs do it at once. */
		if (!header || !unwind_may_copy(header))
			return false;
	} else if (st->end != PROFILE_END_NOT_YET) {
		return false;
	}
	unwind_use_regs(st);
	return true;
}

/*
 * Finds the process's list. False: it has none; *end is PROFILE_END_NOT_YET if
 * it may come, with the registers in place, or else as it was.
 */
static __always_inline bool unwind_begin(struct unwind_state *st,
					 struct task_struct *task,
					 const struct profile_key *key,
					 __u32 *end)
{
	struct unwind_process who = {
	    .start_ns = key->start_ns,
	    .tgid = key->tgid,
	    .exec_count = key->exec_count,
	};
	struct unwind_list_header *header;
	struct mm_struct *mm = NULL;
	__u64 *place;
	__u32 first;

	/* A process that is exiting has registers, but no stack any more. */
	bpf_core_read(&mm, sizeof(mm), &task->mm);
	if (!mm)
		return false;
	if (!user_regs(task, &st->regs))
		return false;
	if ((st->regs.cs & 0xffff) != USER_CODE_64)
		return false;
	unwind_use_regs(st);
	*end = PROFILE_END_NOT_YET;
	place = bpf_map_lookup_elem(&unwind_processes, &who);
	if (!place)
		return false;
	first = *place;
	header = bpf_map_lookup_elem(&unwind_mappings, &first);
	if (!header || header->tgid != who.tgid ||
	    header->exec_count != who.exec_count ||
	    header->start_ns != who.start_ns)
		return false;
	st->first = first + 1;
	st->mappings = header->mappings;
	st->limit = max_depth;
	return true;
}
