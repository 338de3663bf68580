/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The knobs, maps and state of the walk of user stacks. */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/arch/arch.bpf.h"
#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/unwind_abi.h"

/* Whether code without rows is left by its frame pointer. */
const volatile __u8 unwind_by_frame_pointer = 1;
/* bpf_task_pt_regs() and bpf_get_current_task_btf() (5.15); else the fields of
 * the current task are read by helpers. */
const volatile __u8 has_task_pt_regs = 1;

/* Copies of stacks leave the rest of the ring to other records. */
const volatile __u64 copy_ring_limit = 0;

/*
 * Set by user space as it goes: how much is copied of a stack that ends nobody
 * knows where; of others up to four times that.
 */
__u32 copy_chunks = 64;
/* And how many bytes may have been sent; what is over is refused. */
__u64 copy_bytes_allowed = 0;
__u64 copy_bytes_sent = 0;

struct task_struct___stack {
	void *stack;
} __core;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct unwind_process);
	__type(value, __u64); /* the header's place in unwind_mappings */
} unwind_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_mapping);
} unwind_mappings SEC(".maps");

/*
 * All slots are one element: a search looks it up once and then only reads
 * memory. Sizes and not types: a struct that only an inner map uses has no BTF.
 */
struct unwind_shard {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, UNWIND_SHARD_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
	__array(values, struct unwind_shard);
} unwind_shards SEC(".maps");

struct copy_scratch {
	struct profile_copy_record head;
	struct profile_piece_record piece;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct copy_scratch);
} copy_scratch SEC(".maps");

/*
 * So much of the stack is read at once, some of it below the word that is asked
 * for: a helper's call costs more than all else that is done for a frame.
 */
#define UNWIND_WINDOW_BYTES 1024
#define UNWIND_WINDOW_BELOW 64

_Static_assert(ARCH_REGISTERS == PROFILE_REGISTERS, "registers of a copy");

struct unwind_state {
	struct unwind_process who;
	__u64 ip, sp, fp, extra;
	/* 0: `ip` is where the CPU was, 1: behind a call. */
	__u64 back;
	/* Registers of the innermost frame, or of one that a signal
	 * interrupted. */
	__u64 leaf[ARCH_REGISTERS];
	__u32 first; /* of the list's mappings, behind its header */
	__u32 mappings;
	__u32 depth;
	__u32 limit;
	__u32 end; /* unwind_stack_end */
	__u8 fp_lost, extra_lost, used_frame_pointer;
	__u8 may_have_runtime; /* the process maps an interpreter */
	__u8 code_runtimes;    /* UNWIND_CODE_..., that the process maps */
	__u8 has_runtime;      /* an interpreter has frames in the stack */
	/* The process may have frames of runtimes, and struct runtime_state is
	 * of this sample; 0: it is not looked at. */
	__u8 uses_runtimes;
	struct unwind_mapping at; /* that the last frame was in */
	__u64 row;		  /* that is in force there, or 0 */
	/* The next run of an interpreter's frames has no place yet. */
	__u64 next_anchor;
	struct arch_regs regs;
	/* A part of the stack, valid for one walk; see unwind_memory.bpf.h. */
	__u64 window_at;
	__u64 window_bytes; /* 0: nothing was read */
	__u64 window[UNWIND_WINDOW_BYTES / 8];
	/* The registers of a frame that a signal interrupted are here, as the
	 * stack is short, and behind all that each sample uses. */
	struct arch_signal_regs signal_regs;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_state);
} unwind_scratch SEC(".maps");
