/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps and the state of the walk of an interpreter's frames. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/runtime/runtime_abi.h"
#include "bpf/runtime/v8_abi.h"
#include "bpf/unwind_abi.h"

/* Bits that user space sets as it finds runtimes; 0: nothing is looked up. */
__u32 runtime_known = 0;
/* Stacks are walked by tables, which runs are placed in; else no map is there.
 */
const volatile __u8 walks_runtimes = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct runtime_interpreter);
	__type(value, struct cpython_process);
} runtime_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct runtime_file);
	__type(value, struct runtime_program);
} runtime_files SEC(".maps");

/* A process's mapping of code that it was sampled in. */
struct runtime_place {
	struct runtime_file file;
	__u64 begin; /* where the file's first byte would be */
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct unwind_process);
	__type(value, struct runtime_place);
} runtime_places SEC(".maps");

/* An id that was forgotten is merely sent again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u8);
} runtime_codes SEC(".maps");

/* How much code a process had sent; the number runs down with time. */
struct runtime_budget {
	__u64 renewed_ns;
	__u64 bytes;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct runtime_budget);
} runtime_budgets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct unwind_process);
	__type(value, struct v8_process);
} runtime_v8 SEC(".maps");

#define RUNTIME_WINDOW_BYTES 2048
/* Each adds an item, but for the begins of runs of a chain. */
#define RUNTIME_STEPS (RUNTIME_MAX_ITEMS + 256)
/* Without bpf_loop(): the verifier goes through each of them. */
#define RUNTIME_FEW_STEPS 640
#define RUNTIME_NO_ANCHOR 0xffffffffffffffffull
#define RUNTIME_NO_FRAME  0xffffffffffffffffull
#define RUNTIME_NO_ITEM	  0xffffffffu
/* Bytes of a text that tell it from others, where it has no hash. */
#define CPYTHON_TEXT_SAMPLE 128

/* The walk of V8's frames. */
struct v8_state {
	struct unwind_process who; /* whose these are */
	struct v8_process layout;
	/* Maps of objects of these types, that were looked at; 0: none was. */
	__u64 shared_map;
	__u64 bytecode_map;
	/* The script that was looked at last, and its number. */
	__u64 script;
	__u64 script_id;
	/* The objects that were read last. */
	__u64 shared_at; /* with its tag */
	__u64 function[V8_FUNCTION_WORDS];
	__u64 shared[V8_SHARED_WORDS];
	__u64 code[V8_CODE_SAMPLE / 8];
	struct profile_v8_record record;
};

struct runtime_state {
	struct cpython_process layout;
	struct unwind_process who;
	__u64 thread; /* pthread_self() */
	/* The thread's state whose frames come behind the others; 0: none. */
	__u64 outer;
	/* How far a search for its states is: the interpreter that is left out,
	 * the one that is looked into, its next state or 0, and the result. */
	__u64 own_interpreter;
	__u64 at_interpreter;
	__u64 at_state;
	__u64 found_state;
	__u64 cframe; /* the next one of a chain; 0: none */
	__u64 frame;  /* the next one; 0: the run has ended */
	__u64 anchor; /* of the run, where it is known before its end */
	/*
	 * A chain's next run begins with the frame that this one came from;
	 * RUNTIME_NO_FRAME: that is not known.
	 */
	__u64 next_first;
	/* How it was when a chain's run began. */
	__u64 run_frame;
	__u64 run_hash;
	__u32 run_items; /* of the record */
	__u32 run_last;
	__u64 hash;	  /* of frames, runs and their places */
	__u64 native_end; /* of the native frame that was looked at last */
	__u32 active;
	/* Items that end runs. */
	__u32 last_run;
	__u32 next_run; /* behind those that have their place */
	__u32 noted;	/* code of runtimes that make some, in the record */
	/* The last code that was read; a recursion has it many times. */
	__u64 code;
	__u64 code_id;
	__u32 code_size; /* in units */
	__u32 first_traceable;
	__u64 head[CPYTHON_CODE_BYTES / 8];
	/* The str object whose content was looked at last, but for names. */
	__u64 file;
	__u64 file_content;
	__u64 text[CPYTHON_TEXT_SAMPLE / 8];
	__u32 code_bytes; /* of records of code that the sample has sent */
	__u32 reserved_2;
	/* Memory of frames, valid for one walk. */
	__u64 window_at;
	__u64 window_bytes;
	__u64 window[RUNTIME_WINDOW_BYTES / 8];
	struct v8_state v8;
	struct profile_runtime_record record;
};
/* The kernel gives no more to a value of each CPU's. */
_Static_assert(sizeof(struct runtime_state) <= 32768, "runtime_state");

/*
 * That item; NULL: it is beyond the record. The offset is opaque to the
 * compiler, which would else check one copy of it and use another one, or check
 * what it knows of the number before. The verifier of Linux 6.1 follows
 * neither.
 */
static __always_inline struct runtime_item *
runtime_item_at(struct runtime_state *st, __u32 at)
{
	__u64 offset = (__u64)at * sizeof(struct runtime_item);

	asm volatile("" : "+r"(offset));
	if (offset > (RUNTIME_MAX_ITEMS - 1) * sizeof(struct runtime_item))
		return NULL;
	return (void *)st->record.item + offset;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct runtime_state);
} runtime_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct profile_code_record);
} code_scratch SEC(".maps");
