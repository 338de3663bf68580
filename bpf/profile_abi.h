/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The contract between profile.bpf.c and daemon/capture: every type that
 * crosses the border between the kernel and user space, and nothing else.
 * Plain C that both compilers read; sizes are asserted on both sides.
 */
#pragma once

#include <linux/types.h>

#include "ksym/unwind/unwind_kinds.h"

#ifdef __cplusplus
#define PROFILE_ABI_ASSERT static_assert
#else
#define PROFILE_ABI_ASSERT _Static_assert
#endif

/* Frames of one stack, at the most. */
#define PROFILE_MAX_DEPTH  512
#define PROFILE_COMM_BYTES 16
/* Two sets of counts and stacks: one is written while the other is drained. */
#define PROFILE_SETS 2

/*
 * Whoever takes a sample uses its own place of the scratch maps: one of the CPU
 * interrupts one of a wait, and so does an interrupt that wakes a thread.
 */
enum scratch_place { SCRATCH_CPU, SCRATCH_WAIT, SCRATCH_WAKER, SCRATCH_PLACES };

/* Values of profile_key.*_stack that are states and not the id of a stack. */
enum profile_stack_state {
	PROFILE_STACK_NONE = 0,	    /* none to take, or not asked for */
	PROFILE_STACK_FAULT = 1,    /* the kernel could not walk it */
	PROFILE_STACK_COLLIDED = 2, /* stackid store: the bucket was taken */
	PROFILE_STACK_FIRST_ID = 16,
};

/* The kinds of samples. */
enum profile_kind {
	PROFILE_KIND_CPU = 0,
	PROFILE_KIND_RUNNABLE = 1, /* waited for a CPU */
	PROFILE_KIND_BLOCKED = 2,  /* waited for anything else */
	PROFILE_KIND_THREAD = 3,   /* is there, whatever it does */
	/* No samples, but who ended the waits of some. */
	PROFILE_KIND_WAKER = 4,
	PROFILE_KIND_INTERRUPT = 5,
};
#define PROFILE_WAIT_KINDS 2
#define PROFILE_SLICE_NS   20000000

/* The identity of a sample: equal ones are counted together. */
struct profile_key {
	__u64 user_stack;
	__u64 kernel_stack;
	__u64 start_ns; /* start_boottime of the thread group's leader */
	__u32 tgid;
	__u32 tid;	  /* 0 unless threads are asked for */
	__u32 exec_count; /* low half of task_struct.self_exec_id */
	__u16 kind;	  /* profile_kind */
	/*
	 * The CPU's samples: the low bits of how many PROFILE_SLICE_NS there
	 * were in CLOCK_MONOTONIC and slice_phase_ns; 0 unless asked for.
	 */
	__u16 slice;
	char comm[PROFILE_COMM_BYTES];
};
PROFILE_ABI_ASSERT(sizeof(struct profile_key) == 56, "profile_key");

/* Records of the ring buffer; all start with this header. */
enum profile_record_type {
	PROFILE_RECORD_STACK = 1,
	PROFILE_RECORD_PROCESS = 2,
	PROFILE_RECORD_COPY = 3,
	PROFILE_RECORD_PIECE = 4,
	/* These are in runtime/runtime_abi.h. */
	PROFILE_RECORD_RUNTIME = 5,
	PROFILE_RECORD_RUNTIME_COPY = 6,
	PROFILE_RECORD_CODE = 7,
	/* These are in waiting_abi.h. */
	PROFILE_RECORD_THREAD = 8,
	PROFILE_RECORD_WAITS = 9,
	/* This one is in dump_abi.h. */
	PROFILE_RECORD_DUMP = 10,
	/* These are in waiting_abi.h. */
	PROFILE_RECORD_ASLEEP = 11,
	PROFILE_RECORD_WAKER = 12,
	/* In v8_abi.h. */
	PROFILE_RECORD_V8 = 13,
};

struct profile_record {
	__u32 type;
	__u32 set; /* the set that was being written */
};

/*
 * A frame of native code is its address. In a record that is `mixed` a word
 * whose highest byte is no address's, neither 0 nor 255, begins a frame of
 * another kind: kind and unit, and a second word, the value. Only the code that
 * walks such frames and the FrameNamer of their kind know what they mean.
 */
#define PROFILE_FRAME_HEAD(kind, unit) ((__u64)(kind) << 56 | (unit))
#define PROFILE_FRAME_KIND(word)       ((__u8)((word) >> 56))
#define PROFILE_FRAME_UNIT(word)       ((word) & (((__u64)1 << 56) - 1))

/* A stack's frames, once per set. */
struct profile_stack_record {
	struct profile_record header;
	__u64 id;
	__u32 depth; /* number of words */
	__u16 end;   /* unwind_stack_end; of a kernel stack 2 or 8 */
	__u8 used_frame_pointer;	 /* by unwind.bpf.h, at least once */
	__u8 mixed;			 /* not native code alone */
	__u64 frames[PROFILE_MAX_DEPTH]; /* leaf first; only depth are sent */
};
#define PROFILE_STACK_RECORD_BYTES(depth) (24 + 8 * (depth))
PROFILE_ABI_ASSERT(sizeof(struct profile_stack_record) ==
		       PROFILE_STACK_RECORD_BYTES(PROFILE_MAX_DEPTH),
		   "profile_stack_record");

/*
 * A hint that a process was sampled, sent with each new key, so that user
 * space can look at the process while it lives.
 */
struct profile_process_record {
	struct profile_record header;
	__u64 time_ns; /* of the sample, CLOCK_MONOTONIC */
	__u64 start_ns;
	__u64 cgroup; /* id in the v2 hierarchy; 0: not asked for */
	__u32 tgid;
	__u32 exec_count;
};
PROFILE_ABI_ASSERT(sizeof(struct profile_process_record) == 40,
		   "profile_process_record");

/*
 * A sample of a process that has no tables yet: user space walks its stack and
 * counts it. The stack comes first, in pieces; the copy's own record is the
 * last, so that pieces without one belong to a sample that was counted
 * otherwise. The pieces of one copy follow each other, but those of other CPUs
 * come between. Pages that cannot be read, as those of a large variable to
 * which nobody wrote yet, are in no piece.
 */
#define PROFILE_REGISTERS   16
#define PROFILE_COPY_CHUNK  1024	 /* what is read at once */
#define PROFILE_COPY_CHUNKS 16		 /* of a piece, at the most */
#define PROFILE_COPY_BYTES  (256 * 1024) /* of the stack, at the most */
struct profile_piece_record {
	struct profile_record header;
	/* Which one: CPU and scratch_place in the high 16 bits, then a number.
	 */
	__u64 copy;
	__u64 address; /* of the first byte */
	__u32 bytes;
	__u32 reserved;
	__u8 stack[PROFILE_COPY_CHUNK * PROFILE_COPY_CHUNKS];
};
#define PROFILE_PIECE_RECORD_BYTES(bytes) (32 + (bytes))
PROFILE_ABI_ASSERT(sizeof(struct profile_piece_record) ==
		       PROFILE_PIECE_RECORD_BYTES(PROFILE_COPY_CHUNK *
						  PROFILE_COPY_CHUNKS),
		   "profile_piece_record");

/* How long a thread waited in one of two ways; 0: it did not. */
struct profile_wait {
	__u64 kernel_stack;
	__u64 value_ns;
};

struct profile_copy_record {
	struct profile_record header;
	__u64 copy;		/* of the pieces */
	struct profile_key key; /* without a user stack */
	/*
	 * Runnable, then blocked: instead of the key's kind and kernel stack,
	 * unless both are 0.
	 */
	struct profile_wait waits[PROFILE_WAIT_KINDS];
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 cgroup;  /* as in profile_process_record */
	__u64 ip;
	__u64 registers[PROFILE_REGISTERS]; /* by DWARF number */
	/* Bytes from `address` on that are in no piece could not be read. */
	__u64 address;
	__u64 end; /* the first address that was not tried */
	/*
	 * The same of the outermost part of the thread's own stack, where the
	 * stack pointer is on another one; both 0 where it is not.
	 */
	__u64 home_address;
	__u64 home_end;
	__u64 waker; /* the id of the waker that this is of; 0: a sample */
	/*
	 * Where a walk over all threads found it: its own thread pointer, the
	 * word that it waits for with a time limit, or 0, and how often it had
	 * run, the low 32 bits. Else 0.
	 */
	__u64 thread;
	__u64 timed_wait;
	__u32 runs;
	__u32 bytes; /* of all pieces */
	__u32 tid;
	__u32 reserved;
};
PROFILE_ABI_ASSERT(sizeof(struct profile_copy_record) == 328,
		   "profile_copy_record");

/* One per set and CPU. taken == sum of counts + copies + all lost_*. */
struct profile_stats {
	__u64 taken;		/* samples that passed the filters */
	__u64 lost_counts_full; /* no room for a new key */
	__u64 lost_ring_full;	/* no room for a new stack's frames */
	__u64 hints_dropped;	/* process records that did not fit; no loss */
	__u64 follow_full;	/* children that could not be followed */
	__u64 copies_refused;	/* copies that there was no room for; no loss */
};
PROFILE_ABI_ASSERT(sizeof(struct profile_stats) == 48, "profile_stats");
