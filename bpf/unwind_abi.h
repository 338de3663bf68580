/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The contract between the stack walk in unwind.bpf.h and daemon/capture: how
 * unwind tables lie in the sampler's maps.
 *
 *   unwind_processes   who -> a place in unwind_mappings, and what is there
 *   unwind_mappings    lists of a header and mappings, sorted by start
 *   unwind_shards      arrays of slots, made as they are needed
 *
 * A mapping without a table has the shard UNWIND_NO_TABLE, or UNWIND_PENDING
 * if it will have one. With one it has a piece of a file's table in one shard:
 * first an index of 16-bit numbers, four to a slot, then the rows. The nth
 * number says which row is in force where the nth block of 256 bytes begins, so
 * that of a table of a million rows a handful is searched. A file with more
 * rows than a shard has slots is several mappings, each with a piece.
 *
 * A list is written before it is published and its place is not used again
 * before no program can still read it; the header says whose it is, because a
 * hash map may give an element to another key while it is read.
 */
#pragma once

#include "bpf/profile_abi.h"
#include "ksym/unwind/unwind_kinds.h"

/* A shard: 512 KiB. */
#define UNWIND_SHARD_SLOTS 65536
#define UNWIND_SHARD_BYTES (UNWIND_SHARD_SLOTS * 8)
#define UNWIND_BLOCK_SHIFT 8
#define UNWIND_NO_TABLE	   0xffffffffu
/* There will be one: until then the stack is walked in user space. */
#define UNWIND_PENDING 0xfffffffeu
/* A list has so many stacks copied that it does not lead through, then one in
 * each period; see copies. */
#define UNWIND_COPIES_PER_LIST 16
#define UNWIND_COPY_PERIOD_NS  1000000000ull
/* A list with more mappings is cut off; 2^16 - 1. */
#define UNWIND_MAX_MAPPINGS 65535

/* A value of unwind_processes: the place, with this bit where the process maps
 * an interpreter, so that others are not looked up among those. */
#define UNWIND_LIST_HAS_RUNTIME (1ull << 32)
/* With this bit and above it is what the process maps. */
#define UNWIND_LIST_RUNTIMES_SHIFT 32
/* And these bits, of UNWIND_CODE_... each, where it maps a runtime that makes
 * code, which has no table. */
#define UNWIND_LIST_CODE_SHIFT 40
#define UNWIND_CODE_HOTSPOT    1
#define UNWIND_CODE_V8	       2

/* ksym::UnwindRow: see ksym/unwind/unwind_row.h for what the kinds mean. */
struct unwind_row {
	__u32 pc;
	__s16 cfa_offset;
	__s8 fp_offset;
	__u8 rule;
};
PROFILE_ABI_ASSERT(sizeof(struct unwind_row) == 8, "unwind_row");

/* Begins a list, in the place of a mapping, and says whose it is. */
struct unwind_list_header {
	__u64 start_ns;
	__u32 tgid;
	__u32 exec_count;
	__u32 mappings; /* that follow */
	/*
	 * A return address in no mapping may be in one that came after the list
	 * was written, as code is that is made at run time, or the unwinder of
	 * exceptions has just written it. So many stacks are still copied
	 * because of it, which the sampler counts down, and then one in each
	 * UNWIND_COPY_PERIOD_NS.
	 */
	__u32 copies;
	__u64 copied_ns; /* CLOCK_MONOTONIC: when that was, last */
};

struct unwind_mapping {
	__u64 start;
	/* The address at run time of the code that the rows' pc 0 means. */
	__u64 base;
	/* From start: 2^32 - 1 at the most, longer ones are several. */
	__u32 size;
	__u32 shard;
	/* The piece's first block: pc >> UNWIND_BLOCK_SHIFT. */
	__u32 first_block;
	__u16 index; /* slot where the piece's index begins */
	__u16 rows;  /* slot where its rows begin */
};
PROFILE_ABI_ASSERT(sizeof(struct unwind_mapping) == 32, "unwind_mapping");
PROFILE_ABI_ASSERT(sizeof(struct unwind_list_header) ==
		       sizeof(struct unwind_mapping),
		   "unwind_list_header");

struct unwind_process {
	__u64 start_ns;
	__u32 tgid;
	__u32 exec_count;
};
PROFILE_ABI_ASSERT(sizeof(struct unwind_process) == 16, "unwind_process");
