/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Where the walk of a user stack begins: the thread's registers, and the list
 * of its process's mappings. unwind.bpf.h walks on from there.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/arch/arch.bpf.h"
#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/runtime_maps.bpf.h"
#include "bpf/unwind_abi.h"
#include "bpf/unwind_maps.bpf.h"
#include "bpf/user_registers.bpf.h"

static __always_inline void unwind_use_regs(struct unwind_state *st)
{
	ARCH_USE_REGS(st, &st->regs);
	st->back = 0;
	st->fp_lost = 0;
	st->extra_lost = 0;
	st->used_frame_pointer = 0;
	st->depth = 0;
	st->at.start = 0;
	st->at.size = 0;
	st->window_bytes = 0;
	st->next_anchor = RUNTIME_NO_ANCHOR;
	st->has_runtime = 0;
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

	if (st->end == UNWIND_END_NO_MAPPING) {
		header = bpf_map_lookup_elem(&unwind_mappings, &place);
		/* Not exact where two CPUs do it at once. */
		if (!header || !unwind_may_copy(header))
			return false;
	} else if (st->end != UNWIND_END_NOT_YET) {
		return false;
	}
	unwind_use_regs(st);
	return true;
}

/*
 * Finds the process's list. False: it has none; *end is UNWIND_END_NOT_YET if
 * it may come, with the registers in place, or else as it was.
 */
static __always_inline bool unwind_begin(struct unwind_state *st,
					 struct task_struct *task,
					 const struct profile_key *key,
					 __u32 *end)
{
	struct unwind_process *who = &st->who;
	struct unwind_list_header *header;
	__u64 *place, list;
	__u32 first;

	st->uses_runtimes = 0;
	/* A process that is exiting has registers, but no stack any more. */
	if (!has_user_space(task))
		return false;
	if (!user_regs(task, &st->regs))
		return false;
	if (!arch_is_walked(&st->regs))
		return false;
	unwind_use_regs(st);
	*end = UNWIND_END_NOT_YET;
	who->start_ns = key->start_ns;
	who->tgid = key->tgid;
	who->exec_count = key->exec_count;
	place = bpf_map_lookup_elem(&unwind_processes, who);
	if (!place)
		return false;
	list = *place;
	first = (__u32)list;
	st->code_runtimes = list >> UNWIND_LIST_CODE_SHIFT;
	st->may_have_runtime = (list & UNWIND_LIST_HAS_RUNTIME) != 0;
	header = bpf_map_lookup_elem(&unwind_mappings, &first);
	if (!header || header->tgid != who->tgid ||
	    header->exec_count != who->exec_count ||
	    header->start_ns != who->start_ns)
		return false;
	st->uses_runtimes = list >> UNWIND_LIST_RUNTIMES_SHIFT != 0;
	st->first = first + 1;
	st->mappings = header->mappings;
	st->limit = max_depth;
	return true;
}
