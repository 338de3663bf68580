/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Reads the words of a user stack, many of them at once. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "bpf/unwind_maps.bpf.h"

/* Memory that can be read begins and ends with a page. */
#define USER_PAGE_BYTES 4096

/*
 * Moves the window to the word at that address; false: it cannot be read. The
 * window does not leave the word's page, so it can be read if the word can. A
 * global function, which the verifier walks once: each of a row's kinds reads
 * words, and walking this for all of them took half of the time of a load.
 */
__noinline int unwind_move_window(__u64 address)
{
	__u64 in_page = address & (USER_PAGE_BYTES - 1);
	__u64 below = in_page & ~7ull;
	struct unwind_state *st;
	__u32 place = scratch_place();
	__u64 bytes;

	st = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!st)
		return 0;
	if (below > UNWIND_WINDOW_BELOW)
		below = UNWIND_WINDOW_BELOW;
	bytes = (below + USER_PAGE_BYTES - in_page) & ~7ull;
	if (bytes <= below) { /* a word on two pages */
		below = 0;
		bytes = 8;
	}
	if (bytes > UNWIND_WINDOW_BYTES)
		bytes = UNWIND_WINDOW_BYTES;
	st->window_at = address - below;
	st->window_bytes = 0;
	if (bpf_probe_read_user(st->window, bytes, (void *)st->window_at))
		return 0;
	st->window_bytes = bytes;
	return 1;
}

static __always_inline bool unwind_read(struct unwind_state *st, __u64 address,
					__u64 *word)
{
	__u64 at = address - st->window_at;

	/* A stack that is not aligned has windows that are not, either. */
	if (at >= st->window_bytes || at & 7) {
		if (!unwind_move_window(address))
			return false;
		at = address - st->window_at;
	}
	*word = st->window[at / 8 & (UNWIND_WINDOW_BYTES / 8 - 1)];
	return true;
}
