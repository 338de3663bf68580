/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Names code objects by a hash of the words that change when one takes the
 * place of another, and sends what names them for people at first sight: the
 * process may be gone when user space looks.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/runtime_abi.h"
#include "bpf/runtime/runtime_maps.bpf.h"

/* Reads a str object; returns the bytes that it has in the piece. */
static __always_inline __u32 cpython_read_text(void *to, __u64 most,
					       __u64 address,
					       const struct cpython_process *at)
{
	__u64 head[5]; /* up to the state */
	__u64 length, kind, bytes;
	__u32 state;

	if (bpf_probe_read_user(head, sizeof(head), (void *)address))
		return 0;
	length = head[CPYTHON_TEXT_LENGTH / 8];
	state = (__u32)head[CPYTHON_TEXT_STATE / 8];
	kind = state >> 2 & 7; /* bytes of a character */
	if (length > most)
		length = most;
	bytes =
	    length * kind + (state & 0x40 ? at->text_ascii : at->text_other);
	if (bytes > most)
		bytes = most;
	asm volatile("" : "+r"(bytes));
	if (bytes > most || bpf_probe_read_user(to, bytes, (void *)address))
		return 0;
	return bytes;
}

static __always_inline __u32 cpython_read_lines(void *to, __u64 address)
{
	__u64 head[3]; /* up to the length */
	__u64 bytes;

	if (bpf_probe_read_user(head, sizeof(head), (void *)address))
		return 0;
	bytes = head[CPYTHON_BYTES_LENGTH / 8];
	if (bytes > RUNTIME_LINES_BYTES)
		return 0;
	bytes += CPYTHON_BYTES_DATA;
	asm volatile("" : "+r"(bytes));
	if (bytes > RUNTIME_LINES_BYTES ||
	    bpf_probe_read_user(to, bytes, (void *)address))
		return 0;
	return bytes;
}

static __always_inline __u64 cpython_hash(__u64 hash, __u64 word)
{
	return (hash ^ word) * hash_multiplier;
}

/* The word of the code object at that offset, and 32 bits of it. */
static __always_inline __u64 cpython_code_word(const struct runtime_state *st,
					       __u32 offset)
{
	return st->head[offset / 8 & (CPYTHON_CODE_BYTES / 8 - 1)];
}

static __always_inline __u32 cpython_half(const struct runtime_state *st,
					  __u32 offset)
{
	return cpython_code_word(st, offset) >> 8 * (offset & 4);
}

/*
 * The text of a str object in a number: its hash, which the interpreter keeps
 * once it was asked for, else its first characters; and its length. A freed
 * name has the next one in its place, often at once. A global function, which
 * the verifier walks once.
 */
__noinline __u64 cpython_content(__u64 address)
{
	__u64 head[5]; /* up to the state */
	struct runtime_state *st;
	__u64 hash, bytes, at;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st || bpf_probe_read_user(head, sizeof(head), (void *)address))
		return 0;
	hash = cpython_hash(head[CPYTHON_TEXT_LENGTH / 8],
			    head[CPYTHON_TEXT_HASH / 8]);
	if (head[CPYTHON_TEXT_HASH / 8] != CPYTHON_TEXT_NO_HASH)
		return hash;
	at = address + (head[CPYTHON_TEXT_STATE / 8] & 0x40
			    ? st->layout.text_ascii
			    : st->layout.text_other);
	bytes = head[CPYTHON_TEXT_LENGTH / 8] *
		(head[CPYTHON_TEXT_STATE / 8] >> 2 & 7);
	if (bytes > CPYTHON_TEXT_SAMPLE)
		bytes = CPYTHON_TEXT_SAMPLE;
	__builtin_memset(st->text, 0, sizeof(st->text));
	asm volatile("" : "+r"(bytes));
	if (bytes > CPYTHON_TEXT_SAMPLE ||
	    bpf_probe_read_user(st->text, bytes, (void *)at))
		return hash;
	for (int i = 0; i < CPYTHON_TEXT_SAMPLE / 8; i++)
		hash = cpython_hash(hash, st->text[i]);
	return hash;
}

/*
 * A number that tells code from other code with the same addresses in it: a
 * version, or a hash of its names. Frames of one file follow each other.
 */
static __always_inline __u64 cpython_code_content(struct runtime_state *st)
{
	__u64 file;

	if (st->layout.code_version)
		return cpython_half(st, st->layout.code_version);
	file = cpython_code_word(st, st->layout.code_file);
	if (file != st->file) {
		st->file_content = cpython_content(file);
		st->file = file;
	}
	return cpython_hash(st->file_content, cpython_content(cpython_code_word(
						  st, st->layout.code_name)));
}

/* Bytes of code that a sample may send, a process at once, and about how many
 * each of its seconds. */
#define RUNTIME_SAMPLE_BYTES (256 * 1024)
#define RUNTIME_BURST_BYTES  (4 * 1024 * 1024)
#define RUNTIME_RATE_SHIFT   10 /* ns of a byte, as a power of two */

/*
 * Whether the process may have its code sent: names of functions that are made
 * without end shall not take the ring from samples. Code that is not sent now
 * may be with the next sample.
 */
static __always_inline bool cpython_may_send(struct runtime_state *st)
{
	__u32 tgid = st->who.tgid;
	struct runtime_budget *budget, fresh = {};
	__u64 now, gone;

	if (st->code_bytes >= RUNTIME_SAMPLE_BYTES)
		return false;
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >
	    bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 2)
		return false;
	now = bpf_ktime_get_ns();
	budget = bpf_map_lookup_elem(&runtime_budgets, &tgid);
	if (!budget) {
		fresh.renewed_ns = now;
		bpf_map_update_elem(&runtime_budgets, &tgid, &fresh, BPF_ANY);
		return true;
	}
	/* Not exact where two CPUs do it at once. */
	gone = (now - budget->renewed_ns) >> RUNTIME_RATE_SHIFT;
	if ((__s64)gone > 0) {
		budget->renewed_ns = now;
		budget->bytes -= gone < budget->bytes ? gone : budget->bytes;
	}
	return budget->bytes < RUNTIME_BURST_BYTES;
}

static __always_inline void cpython_note_sent(struct runtime_state *st,
					      __u32 bytes)
{
	__u32 tgid = st->who.tgid;
	struct runtime_budget *budget;

	st->code_bytes += bytes;
	budget = bpf_map_lookup_elem(&runtime_budgets, &tgid);
	if (budget)
		budget->bytes += bytes;
}

/*
 * Sends the code whose head is in the state. A global function, which the
 * verifier walks once.
 */
__noinline int cpython_send_code(__u32 set)
{
	struct profile_code_record *record;
	struct runtime_state *st;
	__u32 place = scratch_place(), lines;
	__u8 present = 1;
	__u64 id;

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	record = bpf_map_lookup_elem(&code_scratch, &place);
	if (!st || !record || !cpython_may_send(st))
		return 0;
	record->header.type = PROFILE_RECORD_CODE;
	record->header.set = set;
	record->code = st->code_id;
	record->address = st->code;
	record->start_ns = st->who.start_ns;
	record->tgid = st->who.tgid;
	record->exec_count = st->who.exec_count;
	record->layout = st->layout.layout;
	__builtin_memcpy(record->head, st->head, sizeof(record->head));
	record->piece[RUNTIME_PIECE_CODE] = st->code;
	record->bytes[RUNTIME_PIECE_CODE] = st->layout.code_bytes;
	record->piece[RUNTIME_PIECE_NAME] =
	    cpython_code_word(st, st->layout.code_name);
	record->bytes[RUNTIME_PIECE_NAME] =
	    cpython_read_text(record->name, sizeof(record->name),
			      record->piece[RUNTIME_PIECE_NAME], &st->layout);
	record->piece[RUNTIME_PIECE_FILE] =
	    cpython_code_word(st, st->layout.code_file);
	record->bytes[RUNTIME_PIECE_FILE] =
	    cpython_read_text(record->file, sizeof(record->file),
			      record->piece[RUNTIME_PIECE_FILE], &st->layout);
	/* Pages that are not there may be the next time. */
	if (!record->bytes[RUNTIME_PIECE_NAME] ||
	    !record->bytes[RUNTIME_PIECE_FILE])
		return 0;
	record->piece[RUNTIME_PIECE_LINES] =
	    cpython_code_word(st, st->layout.code_lines);
	lines = cpython_read_lines(record->lines,
				   record->piece[RUNTIME_PIECE_LINES]);
	record->bytes[RUNTIME_PIECE_LINES] = lines;
	if (lines > RUNTIME_LINES_BYTES)
		return 0;
	if (bpf_ringbuf_output(&ring, record, PROFILE_CODE_RECORD_BYTES(lines),
			       BPF_RB_NO_WAKEUP))
		return 0;
	cpython_note_sent(st, PROFILE_CODE_RECORD_BYTES(lines));
	id = st->code_id;
	bpf_map_update_elem(&runtime_codes, &id, &present, BPF_ANY);
	return 1;
}

/*
 * Takes the code object at that address into the state; 0: it is none. A
 * global function, which the verifier walks once.
 */
__noinline int cpython_take_code(__u64 address, __u32 set)
{
	struct runtime_state *st;
	__u32 place = scratch_place();
	__u64 bytes, hash, id;

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st)
		return 0;
	if (st->code == address && address)
		return 1;
	st->code = 0;
	bytes = st->layout.code_bytes;
	if (bytes > CPYTHON_CODE_BYTES)
		return 0;
	if (bpf_probe_read_user(st->head, bytes, (void *)address))
		return 0;
	if (st->head[CPYTHON_TYPE / 8] != st->layout.code_type)
		return 0;
	hash = cpython_hash(st->who.start_ns ^ (__u64)st->who.tgid << 32,
			    st->who.exec_count);
	hash = cpython_hash(hash, address);
	hash = cpython_hash(hash, cpython_code_word(st, st->layout.code_size));
	hash =
	    cpython_hash(hash, cpython_code_word(st, st->layout.code_consts));
	hash = cpython_hash(hash, cpython_code_word(st, st->layout.code_file));
	hash = cpython_hash(hash, cpython_code_word(st, st->layout.code_name));
	hash = cpython_hash(hash, cpython_code_word(st, st->layout.code_lines));
	hash = cpython_hash(hash, cpython_half(st, st->layout.code_first_line));
	hash = cpython_hash(hash, cpython_code_content(st));
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ull;
	id = hash ^ hash >> 32;
	st->code = address;
	st->code_id = id;
	st->code_size = cpython_code_word(st, st->layout.code_size);
	st->first_traceable = cpython_half(st, st->layout.code_first_traceable);
	if (!bpf_map_lookup_elem(&runtime_codes, &id))
		cpython_send_code(set);
	return 1;
}
