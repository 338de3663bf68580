/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Finds the state that CPython has of the running thread. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "bpf/arch/arch.bpf.h"
#include "bpf/runtime/runtime_abi.h"
#include "bpf/runtime/runtime_maps.bpf.h"

/* struct pthread_key_data: a sequence number and the value. */
#define PTHREAD_KEY_BYTES	16
#define PTHREAD_KEYS_IN_A_BLOCK 32
#define PTHREAD_KEYS		1024
/* An entry of the vector: the block's address and what is to be freed. */
#define DTV_ENTRY_BYTES	 16
#define DTV_NOT_THERE	 0xffffffffffffffffull
#define DTV_MOST_MODULES 65536

static __always_inline bool cpython_read(__u64 address, void *to, __u32 bytes)
{
	return bpf_probe_read_user(to, bytes, (void *)address) == 0;
}

/* Where the value of the key is that is at that address; 0: nowhere. */
static __always_inline __u64 cpython_key_value(__u64 thread, __u64 address)
{
	__u64 block = thread + ARCH_GLIBC_PTHREAD_KEYS;
	__u32 key = 0;

	if (!cpython_read(address, &key, sizeof(key)) || key >= PTHREAD_KEYS)
		return 0;
	if (key >= PTHREAD_KEYS_IN_A_BLOCK &&
	    (!cpython_read(thread + ARCH_GLIBC_PTHREAD_KEY_BLOCKS +
			       8 * (key / PTHREAD_KEYS_IN_A_BLOCK),
			   &block, sizeof(block)) ||
	     !block))
		return 0;
	return block + PTHREAD_KEY_BYTES * (key % PTHREAD_KEYS_IN_A_BLOCK) + 8;
}

/* The begin of the module's variables plus an offset, which are at `slot`. */
static __always_inline __u64 cpython_in_module(__u64 thread, __u64 slot)
{
	__u64 module[2] = {}, vector = 0, block = 0;

	if (!cpython_read(slot, module, sizeof(module)) ||
	    module[0] >= DTV_MOST_MODULES ||
	    !cpython_read(thread + ARCH_GLIBC_DTV, &vector, sizeof(vector)) ||
	    !cpython_read(vector + DTV_ENTRY_BYTES * module[0], &block,
			  sizeof(block)) ||
	    block == DTV_NOT_THERE || !block)
		return 0;
	return block + module[1];
}

static __always_inline __u64
cpython_variable(const struct cpython_thread_place *place, __u64 thread)
{
	__u64 offset = 0, block;

	switch (place->kind) {
	case CPYTHON_THREAD_KEY:
		return cpython_key_value(thread, place->address);
	case CPYTHON_THREAD_GLOBAL:
		return place->address;
	case CPYTHON_THREAD_NEAR:
		return thread + place->distance;
	case CPYTHON_THREAD_IN_MODULE:
		block = cpython_in_module(thread, place->address);
		return block ? block + place->distance : 0;
	case CPYTHON_THREAD_BY_OFFSET:
		if (!cpython_read(place->address, &offset, sizeof(offset)))
			return 0;
		return thread + offset + place->distance;
	default:
		return 0;
	}
}

/*
 * The address of the thread's state by the first or second of what leads there;
 * 0: there is none. A global function, which the verifier walks once.
 */
__noinline __u64 cpython_thread(__u32 which)
{
	__u64 variable, state = 0, id = 0;
	struct runtime_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st || !st->thread)
		return 0;
	variable = cpython_variable(&st->layout.threads[which & 1], st->thread);
	if (!variable || !cpython_read(variable, &state, sizeof(state)))
		return 0;
	/* This rejects wrong offsets and another thread's state. */
	if (!state || state & 7 ||
	    !cpython_read(state + st->layout.thread_id, &id, sizeof(id)))
		return 0;
	return id == st->thread ? state : 0;
}
