/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Finds the mapping and the row that an address belongs to. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/unwind_abi.h"
#include "bpf/unwind_maps.bpf.h"

/*
 * All ones if a <= b. Without a branch: the verifier would follow both sides
 * of each step of a search. Both are below 2^63.
 */
static __always_inline __u64 mask_not_above(__u64 a, __u64 b)
{
	return ~(__u64)((__s64)(b - a) >> 63);
}

/*
 * The place of the list's last mapping that does not begin above the address,
 * or of its first.
 */
__noinline __u32 unwind_search_mappings(__u32 first, __u32 count, __u64 address)
{
	__u32 low = first;

	for (int i = 0; i < 17; i++) {
		__u32 half = count >> 1;
		__u32 middle = low + half;
		struct unwind_mapping *mapping;

		if (count <= 1)
			break;
		mapping = bpf_map_lookup_elem(&unwind_mappings, &middle);
		if (!mapping)
			break;
		low += half & mask_not_above(mapping->start, address);
		count -= half;
	}
	return low;
}

/*
 * The row that holds at `pc`: cfa_offset, fp_offset and rule in the upper
 * half of the number, and 1 in the lower one; 0: there is none. `places`: the
 * slots of the piece's rows (upper half) and index.
 */
__noinline __u64 unwind_find_row(__u32 shard, __u32 places, __u32 first_block,
				 __u32 pc)
{
	__u32 block = (pc >> UNWIND_BLOCK_SHIFT) - first_block;
	__u32 slot = (places & 0xffff) + (block >> 2);
	__u32 low, count, whole = 0;
	__u64 here, next, *slots;
	void *map;

	map = bpf_map_lookup_elem(&unwind_shards, &shard);
	if (!map)
		return 0;
	slots = bpf_map_lookup_elem(map, &whole);
	/* Rows follow the index: its last slot is never the shard's. */
	if (!slots || slot >= UNWIND_SHARD_SLOTS - 1)
		return 0;
	here = slots[slot] >> (block & 3) * 16;
	next = (block & 3) == 3 ? slots[slot + 1] : here >> 16;
	low = here & 0xffff;
	/* In force at the block's begin, up to what is at the next one's. */
	count = (next & 0xffff) - low + 1;
	low += places >> 16;
	for (int i = 0; i < 10; i++) {
		__u32 half = count >> 1;
		__u32 middle = low + half;

		if (count <= 1)
			break;
		if (middle >= UNWIND_SHARD_SLOTS)
			return 0;
		low += half & mask_not_above(slots[middle] & 0xffffffff, pc);
		count -= half;
	}
	if (low >= UNWIND_SHARD_SLOTS)
		return 0;
	return (slots[low] & ~0xffffffffull) | 1;
}
