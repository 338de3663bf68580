/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The contract between hotspot.bpf.h and daemon/capture: where a JVM puts the
 * code that it makes, and what is in front of it there
 * (ksym/runtime/hotspot/layout.h).
 *
 *   hotspot_processes   who -> where and how
 */
#pragma once

#include "bpf/profile_abi.h"
#include "bpf/unwind_abi.h"

#define HOTSPOT_HEAPS	   4
#define HOTSPOT_BLOB_BYTES 352

struct hotspot_heap {
	__u64 begin;
	__u64 bytes;
	__u64 segments; /* a byte for each segment */
};

/* Flags. code_begin and code_end are offsets from the blob, else addresses;
 * nmethod_deopt and nmethod_deopt_mh likewise; frame_complete has 16 bits, else
 * 32. Of a JVM that is starting nothing else is known yet. */
#define HOTSPOT_CODE_IS_OFFSET	  1
#define HOTSPOT_DEOPT_IS_OFFSET	  2
#define HOTSPOT_COMPLETE_IS_SHORT 4
#define HOTSPOT_IS_STARTING	  8

/* Offsets are in bytes, within a blob below HOTSPOT_BLOB_BYTES. */
struct hotspot_process {
	struct hotspot_heap
	    heaps[HOTSPOT_HEAPS]; /* unused ones have no bytes */
	__u32 segment_shift;
	__u16 block_bytes; /* in front of a blob */
	__u16 blob_name;
	__u16 blob_frame_size;
	__u16 blob_frame_complete;
	__u16 blob_code_begin;
	__u16 blob_code_end;
	__u16 nmethod_compile_id;
	/* Where deoptimized frames return to, twice; 0: not known. And where in
	 * such a frame, from its stack pointer on, the address is that they
	 * would have returned to. */
	__u16 nmethod_deopt;
	__u16 nmethod_deopt_mh;
	__u16 nmethod_original_pc;
	__u16 method_const_method;
	__u16 const_method_bytes;
	__u16 const_method_code_size;
	__u16 interpreter_bcp; /* below the frame pointer */
	__u16 flags;	       /* HOTSPOT_CODE_IS_OFFSET ... */
	__u16 reserved[3];
};
PROFILE_ABI_ASSERT(sizeof(struct hotspot_process) == 24 * HOTSPOT_HEAPS + 40,
		   "hotspot_process");

/*
 * Kinds of frames, of daemon/profile/runtime_frame.h.
 *
 * Compiled code: the item's word is the address of the nmethod and, in the
 * upper 16 bits, of its compile id the lower ones; the index is the place in
 * the code. An interpreted method: the address of the Method and, above, 16
 * bits of that of its ConstMethod; the index is that of the bytecode. Others:
 * the address of the blob.
 */
#define HOTSPOT_FRAME_COMPILED	  0x40
#define HOTSPOT_FRAME_INTERPRETED 0x41
#define HOTSPOT_FRAME_STUB	  0x42
#define HOTSPOT_TAG_SHIFT	  48
