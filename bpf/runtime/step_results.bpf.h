/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Code that a runtime makes has no unwind table: the runtime's own step goes to
 * the caller, and notes whose code it was. A step sees the native frame in
 * struct unwind_state, which is that of st->depth - 1 by then. This is what
 * steps share.
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/runtime/runtime_abi.h"
#include "bpf/runtime/runtime_maps.bpf.h"
#include "bpf/unwind_maps.bpf.h"
#include "bpf/unwind_memory.bpf.h"

/* Results of a step. */
#define RUNTIME_NOT_ITS_CODE 0 /* nothing was changed */
#define RUNTIME_STEPPED	     1 /* to the caller */
#define RUNTIME_STEP_ENDS    2 /* st->end says why the stack ends here */

/*
 * Notes what the native frame that is left stands for: a kind of
 * daemon/profile/runtime_frame.h, what tells the code from others, and the
 * place in it; their meaning is the runtime's. A global function, which the
 * verifier walks once.
 */
__noinline int runtime_note_code(__u32 kind, __u64 code, __u32 index)
{
	struct unwind_state *native;
	struct runtime_item *item;
	struct runtime_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	native = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!st || !native || !native->depth)
		return 0;
	if (!st->active && !st->noted) {
		st->last_run = RUNTIME_NO_ITEM;
		st->next_run = RUNTIME_NO_ITEM;
		st->hash = hash_multiplier;
		st->record.items = 0;
		st->record.word_below = 0;
		st->record.flags = 0;
	}
	st->who = native->who;
	st->noted = 1;
	st->hash = (st->hash ^ code) * hash_multiplier;
	st->hash =
	    (st->hash ^ (__u64)native->depth << 40 ^ index) * hash_multiplier;
	item = runtime_item_at(st, st->record.items);
	/* The native frame stays, as code without a name. */
	if (!item)
		return 0;
	item->word = code;
	item->index = index;
	item->native = native->depth - 1;
	item->kind = RUNTIME_ITEM_CODE | kind << RUNTIME_ITEM_KIND_SHIFT;
	st->record.items++;
	return 1;
}
