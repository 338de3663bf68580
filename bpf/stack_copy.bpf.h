/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sends a sample with a part of its stack, to be walked in user space. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/unwind_maps.bpf.h"

/* Below the stack pointer is what leaf functions use. */
#define RED_ZONE_BYTES 128

/* Copies into the scratch record; returns the number of bytes. */
__noinline __u32 copy_stack(__u32 chunks)
{
	struct profile_copy_record *record;
	__u32 zero = 0, i;
	__u64 from;

	record = bpf_map_lookup_elem(&copy_scratch, &zero);
	if (!record)
		return 0;
	from = (record->registers[DWARF_RSP] - RED_ZONE_BYTES) &
	       ~(__u64)(PROFILE_COPY_CHUNK - 1);
	record->address = from;
	for (i = 0; i < PROFILE_COPY_CHUNKS; i++) {
		if (i >= chunks)
			break;
		if (bpf_probe_read_user(
			record->stack + i * PROFILE_COPY_CHUNK,
			PROFILE_COPY_CHUNK,
			(void *)(from + i * PROFILE_COPY_CHUNK)))
			break;
	}
	record->whole = i >= chunks;
	record->bytes = i * PROFILE_COPY_CHUNK;
	return record->bytes;
}

/* st has the registers. False: there was no room, or nothing to read. */
static __always_inline bool send_copy(const struct unwind_state *st, __u32 set,
				      const struct profile_key *key,
				      struct profile_stats *counters)
{
	struct profile_copy_record *record;
	__u32 zero = 0, bytes;
	__u64 size;

	/*
	 * Without a limit in time copies could come as fast as user space
	 * takes them, and it would do nothing else.
	 */
	if (copies_sent >= copies_allowed ||
	    bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) + sizeof(*record) >
		copy_ring_limit) {
		counters->copies_refused++;
		return false;
	}
	record = bpf_map_lookup_elem(&copy_scratch, &zero);
	if (!record)
		return false;
	record->header.type = PROFILE_RECORD_COPY;
	record->header.set = set;
	record->key = *key;
	record->time_ns = bpf_ktime_get_ns();
	record->ip = st->ip;
	__builtin_memcpy(record->registers, st->leaf, sizeof(st->leaf));
	record->registers[DWARF_RBX] = st->bx;
	record->registers[DWARF_RBP] = st->bp;
	record->registers[DWARF_RSP] = st->sp;
	bytes = copy_stack(copy_chunks);
	if (!bytes)
		return false;
	size = PROFILE_COPY_RECORD_BYTES((__u64)bytes);
	if (size > sizeof(*record))
		return false;
	if (bpf_ringbuf_output(&ring, record, size, BPF_RB_NO_WAKEUP)) {
		counters->copies_refused++;
		return false;
	}
	__sync_fetch_and_add(&copies_sent, 1);
	return true;
}
