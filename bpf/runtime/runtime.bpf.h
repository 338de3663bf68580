/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Finds the interpreter of the sampled process, has its frames walked before
 * the native ones, and says to which native frames they belong.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/cpython.bpf.h"
#include "bpf/runtime/runtime_abi.h"
#include "bpf/runtime/runtime_maps.bpf.h"

struct super_block {
	unsigned int s_dev;
} __core;
struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
} __core;
struct file {
	struct inode *f_inode;
} __core;
struct mm_struct___exe_file {
	struct file *exe_file;
} __core;

/* What is known of the program's file; a process's first samples need it. */
static __always_inline struct cpython_process *
runtime_of_file(struct task_struct *task)
{
	struct runtime_file key = {};
	struct mm_struct___exe_file *mm = NULL;
	struct super_block *block = NULL;
	struct inode *inode = NULL;
	struct file *file = NULL;
	unsigned long number = 0;
	unsigned int device = 0;

	bpf_core_read(&mm, sizeof(mm), &task->mm);
	if (!mm || bpf_core_read(&file, sizeof(file), &mm->exe_file) ||
	    bpf_core_read(&inode, sizeof(inode), &file->f_inode) ||
	    bpf_core_read(&number, sizeof(number), &inode->i_ino) ||
	    bpf_core_read(&block, sizeof(block), &inode->i_sb) ||
	    bpf_core_read(&device, sizeof(device), &block->s_dev))
		return NULL;
	key.inode = number;
	key.device = device;
	return bpf_map_lookup_elem(&runtime_files, &key);
}

/* True: there are frames of an interpreter to walk. `is_new`: the process. */
static __always_inline bool runtime_begin(struct task_struct *task,
					  const struct profile_key *key,
					  __u32 set, bool is_new)
{
	struct unwind_process who = {
	    .start_ns = key->start_ns,
	    .tgid = key->tgid,
	    .exec_count = key->exec_count,
	};
	struct cpython_process *process;
	struct runtime_state *st;
	__u32 place = scratch_place();

	if (!walks_runtimes || !runtime_known)
		return false;
	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st)
		return false;
	st->active = 0;
	process = bpf_map_lookup_elem(&runtime_processes, &who);
	if (!process && is_new)
		process = runtime_of_file(task);
	if (!process)
		return false;
	st->layout = *process;
	st->who = who;
	st->anchor = 0;
	st->next_first = RUNTIME_NO_FRAME;
	st->run_frame = 0;
	st->hash = hash_multiplier;
	st->placed = 0;
	st->code = 0;
	st->window_at = 0;
	st->window_bytes = 0;
	st->record.header.set = set;
	st->record.frames = 0;
	st->record.runs = 0;
	if (!cpython_begin(st, task))
		return false;
	st->active = 1;
	return true;
}

/*
 * The native frame before the one at `depth` ends at `sp`, so runs with anchors
 * below belong to it. Returns the next anchor. A global function, which the
 * verifier walks once.
 */
__noinline __u64 runtime_place(__u64 sp, __u32 depth)
{
	struct runtime_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st)
		return RUNTIME_NO_ANCHOR;
	for (int i = 0; i < 4; i++) {
		__u32 at = st->placed;
		struct runtime_run *run;

		if (at >= st->record.runs || at >= RUNTIME_MAX_RUNS)
			return RUNTIME_NO_ANCHOR;
		run = &st->record.run[at];
		if (!run->anchor)
			return RUNTIME_NO_ANCHOR;
		if (run->anchor >= sp)
			return run->anchor;
		if (depth) {
			run->native = depth - 1;
			st->hash = cpython_hash(st->hash, depth);
		}
		st->placed = at + 1;
	}
	return RUNTIME_NO_ANCHOR;
}

static __always_inline void runtime_forget(void)
{
	struct runtime_state *st;
	__u32 place = scratch_place();

	if (!walks_runtimes || !runtime_known)
		return;
	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (st)
		st->active = 0;
}

/* The id of a stack with the frames that an interpreter has in it. */
static __always_inline __u64 runtime_name(__u64 id)
{
	struct runtime_state *st;
	__u32 place = scratch_place();

	if (!walks_runtimes || !runtime_known)
		return id;
	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st || !st->active || !st->record.runs)
		return id;
	id = (id ^ st->hash) * hash_multiplier;
	id ^= id >> 32;
	return id < PROFILE_STACK_FIRST_ID ? id + PROFILE_STACK_FIRST_ID : id;
}

/*
 * Sends the frames of the sample's interpreter, if there are any; 0: there was
 * no room in the ring. A global function, which the verifier walks once.
 */
__noinline int runtime_send(__u32 type, __u64 id)
{
	struct runtime_state *st;
	__u32 place = scratch_place(), frames;

	if (!walks_runtimes || !runtime_known)
		return 1;
	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st || !st->active || !st->record.runs)
		return 1;
	frames = st->record.frames;
	if (frames > RUNTIME_MAX_FRAMES)
		frames = RUNTIME_MAX_FRAMES;
	st->record.header.type = type;
	st->record.id = id;
	return bpf_ringbuf_output(&ring, &st->record,
				  PROFILE_RUNTIME_RECORD_BYTES(frames),
				  BPF_RB_NO_WAKEUP) == 0;
}
