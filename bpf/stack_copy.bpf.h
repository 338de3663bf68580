/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sends a sample with a part of its stack, to be walked in user space. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/bell.bpf.h"
#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/runtime.bpf.h"
#include "bpf/unwind_maps.bpf.h"
#include "bpf/unwind_memory.bpf.h"

#define PIECE_BYTES (PROFILE_COPY_CHUNK * PROFILE_COPY_CHUNKS)
/* A copy counts for at least so many: walking it takes time too. */
#define LEAST_COPY_BYTES PIECE_BYTES
/*
 * The size that Linux gives a first thread's stack by default (RLIMIT_STACK).
 */
#define DEEP_STACK_BYTES (8 << 20)
/* A step that sends less than a whole piece ends with a page. */
#define COPY_STEPS (PROFILE_COPY_BYTES / USER_PAGE_BYTES + 2)

struct mm_struct___stack {
	unsigned long start_stack;
} __core;

/* Reads up to `chunks` into the scratch piece; returns how many. */
__noinline __u32 read_piece(__u64 from, __u32 chunks)
{
	struct copy_scratch *scratch_copy;
	__u32 place = scratch_place(), i;

	scratch_copy = bpf_map_lookup_elem(&copy_scratch, &place);
	if (!scratch_copy)
		return 0;
	for (i = 0; i < PROFILE_COPY_CHUNKS; i++) {
		if (i >= chunks)
			break;
		if (bpf_probe_read_user(
			scratch_copy->piece.stack + i * PROFILE_COPY_CHUNK,
			PROFILE_COPY_CHUNK,
			(void *)(from + i * PROFILE_COPY_CHUNK)))
			break;
	}
	return i;
}

/* Sends the scratch piece with so many chunks; 0: there is no room. */
__noinline int send_piece(__u32 chunks)
{
	__u64 bytes = (__u64)chunks * PROFILE_COPY_CHUNK;
	struct copy_scratch *scratch_copy;
	__u32 place = scratch_place();

	scratch_copy = bpf_map_lookup_elem(&copy_scratch, &place);
	if (!scratch_copy)
		return 0;
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) + bytes >
	    copy_ring_limit)
		return 0;
	/* A sum that is made of bits is one whose bounds nobody follows. */
	asm volatile("" : "+r"(bytes));
	if (bytes > sizeof(scratch_copy->piece.stack))
		return 0;
	scratch_copy->piece.bytes = bytes;
	return bpf_ringbuf_output(&ring, &scratch_copy->piece,
				  PROFILE_PIECE_RECORD_BYTES(bytes),
				  BPF_RB_NO_WAKEUP) == 0;
}

/*
 * Sends a piece of the stack from the copy's end on, and moves its end behind
 * it and the page that ended it. 1: that was the last.
 */
__noinline int copy_step(__u64 end)
{
	struct copy_scratch *scratch_copy;
	struct profile_copy_record *head;
	__u32 place = scratch_place(), want = PROFILE_COPY_CHUNKS, got;
	__u64 at;

	scratch_copy = bpf_map_lookup_elem(&copy_scratch, &place);
	if (!scratch_copy)
		return 1;
	head = &scratch_copy->head;
	at = head->end;
	if (at >= end)
		return 1;
	if (end - at < PIECE_BYTES)
		want = (end - at) / PROFILE_COPY_CHUNK;
	got = read_piece(at, want);
	if (got) {
		scratch_copy->piece.address = at;
		if (!send_piece(got))
			return 1;
		head->bytes += got * PROFILE_COPY_CHUNK;
		at += (__u64)got * PROFILE_COPY_CHUNK;
	}
	if (got < want)
		at = (at | (USER_PAGE_BYTES - 1)) + 1;
	/* A stack pointer may be anything: this one is at the very end. */
	if (at < head->end)
		at = end;
	head->end = at;
	return 0;
}

/* Tried where it is not known how much there is. */
static __always_inline __u64 bytes_to_try(void)
{
	return (__u64)copy_chunks * PROFILE_COPY_CHUNK;
}

static __always_inline __u64 chunk_behind(__u64 address)
{
	return (address + PROFILE_COPY_CHUNK) &
	       ~(__u64)(PROFILE_COPY_CHUNK - 1);
}

/*
 * Sets the ends of what is to be copied from head->address on. The first
 * thread's stack ends where the program's arguments begin, and those that the C
 * libraries make end below their thread pointer. A stack pointer
 * near neither is on a stack that the program made, of a coroutine or of its
 * signal handlers. Their callers are on the thread's own stack, the home stack,
 * so its outermost part is copied as well.
 */
static __always_inline __u64 find_ends(struct profile_copy_record *head,
				       void *task)
{
	bool is_first = head->tid == head->key.tgid;
	struct task_struct *common = task;
	struct mm_struct___stack *mm = NULL;
	unsigned long arguments = 0;
	__u64 from = head->address, try = bytes_to_try(), most = 4 * try;
	__u64 thread, home;

	if (most > PROFILE_COPY_BYTES)
		most = PROFILE_COPY_BYTES;
	if (bpf_core_read(&mm, sizeof(mm), &common->mm) == 0 && mm)
		bpf_core_read(&arguments, sizeof(arguments), &mm->start_stack);
	if (arguments - from < most)
		return chunk_behind(arguments);
	thread = arch_thread_pointer(task);
	if (thread - from < most)
		return chunk_behind(thread);
	home = is_first ? arguments : thread;
	/* A deep stack of its own, or the same bytes twice. */
	if (home < 2 * try ||
	    (is_first && arguments - from < DEEP_STACK_BYTES) ||
	    from - (home - 2 * try) < 3 * try)
		return from + try;
	head->home_address = chunk_behind(home - try);
	head->home_end = chunk_behind(home);
	return from + try;
}

static __always_inline void fill_copy(struct profile_copy_record *head,
				      const struct unwind_state *st, __u32 set)
{
	head->header.type = PROFILE_RECORD_COPY;
	head->header.set = set;
	head->time_ns = bpf_ktime_get_ns();
	head->cgroup = want_cgroup ? bpf_get_current_cgroup_id() : 0;
	head->ip = st->ip;
	__builtin_memcpy(head->registers, st->leaf, sizeof(st->leaf));
	head->registers[ARCH_EXTRA] = st->extra;
	head->registers[ARCH_FP] = st->fp;
	head->registers[ARCH_SP] = st->sp;
	/* Aligned as what is read at once. */
	head->address =
	    (st->sp - ARCH_RED_ZONE_BYTES) & ~(__u64)(PROFILE_COPY_CHUNK - 1);
	head->end = head->address;
	head->home_address = 0;
	head->home_end = 0;
	head->bytes = 0;
	head->tid = (__u32)bpf_get_current_pid_tgid();
}

/* Sends [head->end, end) but for what cannot be read. */
static __always_inline void copy_until(__u64 end)
{
	for (int i = 0; i < COPY_STEPS; i++) {
		if (copy_step(end))
			break;
	}
}

/* copy_step() works at head->end, which is the first part's. */
static __always_inline void copy_home(struct profile_copy_record *head)
{
	__u64 first_end = head->end;

	head->end = head->home_address;
	copy_until(head->home_end);
	head->home_end = head->end;
	head->end = first_end;
}

/* The outcome of a copy. */
enum copied {
	COPIED,
	COPY_REFUSED, /* there was no room */
	NO_STACK,     /* the stack pointer points to nothing */
};

/* Takes time for what was tried: pages that cannot be read cost most. */
static __always_inline void charge_copy(const struct profile_copy_record *head)
{
	__u64 charge =
	    head->end - head->address + head->home_end - head->home_address;

	if (charge < LEAST_COPY_BYTES)
		charge = LEAST_COPY_BYTES;
	__sync_fetch_and_add(&copy_bytes_sent, charge);
}

/*
 * Sends the sample whose key is in the scratch copy, and whose registers are in
 * the state of the walk. `in_exec`: the stack may be gone, and another
 * program's be near its place. Returns enum copied. A global function, which
 * the verifier walks once.
 */
__noinline int send_copy(__u32 set, __u32 in_exec)
{
	struct copy_scratch *scratch_copy;
	struct profile_copy_record *head;
	struct unwind_state *st;
	__u32 place = scratch_place();
	__u64 end, word;

	scratch_copy = bpf_map_lookup_elem(&copy_scratch, &place);
	st = bpf_map_lookup_elem(&unwind_scratch, &place);
	/*
	 * Without a limit in time copies could come as fast as user space
	 * takes them, and it would do nothing else.
	 */
	if (!scratch_copy || !st || copy_bytes_sent >= copy_bytes_allowed)
		return COPY_REFUSED;
	if (in_exec && bpf_probe_read_user(&word, sizeof(word), (void *)st->sp))
		return NO_STACK;
	head = &scratch_copy->head;
	fill_copy(head, st, set);
	head->copy = ((head->copy + 1) & 0xffffffffffffull) |
		     (__u64)(bpf_get_smp_processor_id() | place << 14) << 48;
	scratch_copy->piece.header.type = PROFILE_RECORD_PIECE;
	scratch_copy->piece.header.set = set;
	scratch_copy->piece.copy = head->copy;
	end = find_ends(head, (void *)bpf_get_current_task());
	copy_until(end);
	if (!head->bytes && head->end < end)
		return COPY_REFUSED;
	if (head->home_end)
		copy_home(head);
	charge_copy(head);
	if (!head->bytes)
		return NO_STACK;
	/* Without an interpreter's frames it is walked as any other. */
	runtime_send(set, PROFILE_RECORD_RUNTIME_COPY, head->copy);
	/* Its process is new, or may not live for long. */
	if (bpf_ringbuf_output(&ring, head, sizeof(*head), bell_flags(true)))
		return COPY_REFUSED;
	return COPIED;
}
