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

#include "bpf/bell.bpf.h"
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
	unsigned long start_code;
} __core;
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_pgoff;
	struct file *vm_file;
} __core;

static __always_inline bool runtime_identify(struct file *file,
					     struct runtime_file *key)
{
	struct super_block *block = NULL;
	struct inode *inode = NULL;
	unsigned long number = 0;
	unsigned int device = 0;

	if (bpf_core_read(&inode, sizeof(inode), &file->f_inode) ||
	    bpf_core_read(&number, sizeof(number), &inode->i_ino) ||
	    bpf_core_read(&block, sizeof(block), &inode->i_sb) ||
	    bpf_core_read(&device, sizeof(device), &block->s_dev))
		return false;
	key->inode = number;
	key->device = device;
	return true;
}

static __always_inline void runtime_use(struct runtime_state *st,
					const struct cpython_process *process,
					__u64 load_bias)
{
	st->layout = *process;
	st->layout.threads[0].address += load_bias;
	st->layout.threads[1].address += load_bias;
	st->layout.code_type += load_bias;
	st->layout.frame_type += load_bias;
	st->layout.runtime += load_bias;
	if (st->layout.newest_interpreter)
		st->layout.newest_interpreter += load_bias;
	st->outer = 0;
	st->anchor = 0;
	st->next_first = RUNTIME_NO_FRAME;
	st->run_frame = 0;
	st->hash = hash_multiplier;
	st->code = 0;
	st->file = 0;
	st->code_bytes = 0;
	st->window_at = 0;
	st->window_bytes = 0;
	st->last_run = RUNTIME_NO_ITEM;
	st->next_run = RUNTIME_NO_ITEM;
	st->native_end = 0;
	st->record.items = 0;
	st->record.word_below = process->word_below;
	/* Until the last frame is seen. */
	st->record.flags = RUNTIME_FRAMES_CUT;
}

static long runtime_note_place(struct task_struct *task __attribute__((unused)),
			       struct vm_area_struct *vma, void *context)
{
	struct runtime_place *place = context;
	unsigned long start = 0, page = 0;
	struct file *file = NULL;

	if (bpf_core_read(&start, sizeof(start), &vma->vm_start) ||
	    bpf_core_read(&page, sizeof(page), &vma->vm_pgoff) ||
	    bpf_core_read(&file, sizeof(file), &vma->vm_file) || !file ||
	    !runtime_identify(file, &place->file))
		place->file.inode = 0;
	place->begin = start - page * USER_PAGE_BYTES;
	return 0;
}

/*
 * Writes down where a process that user space has not told of yet has the
 * library whose code is at `ip`, if that holds an interpreter. A thread that
 * waits is in the C library's code, and tells nothing. Since 5.17. A global
 * function, which the verifier walks once.
 */
__noinline int runtime_look_at(__u64 ip)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct runtime_place found = {};
	struct unwind_process who;
	struct runtime_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st || place != SCRATCH_CPU)
		return 0;
	who = st->who;
	if (bpf_map_lookup_elem(&runtime_places, &who) ||
	    bpf_find_vma(task, ip, runtime_note_place, &found, 0) ||
	    !found.file.inode ||
	    !bpf_map_lookup_elem(&runtime_files, &found.file))
		return 0;
	return !bpf_map_update_elem(&runtime_places, &who, &found, BPF_ANY);
}

/*
 * Uses what is known of the file of the library whose code the process was seen
 * in, or else of the program; a process's first samples need it.
 */
static __always_inline bool runtime_use_file(struct runtime_state *st,
					     struct task_struct *task)
{
	struct unwind_process who = st->who;
	const struct runtime_program *program;
	struct mm_struct___exe_file *mm = NULL;
	const struct runtime_place *place;
	struct runtime_file key = {};
	unsigned long start_code = 0;
	struct file *file = NULL;

	place = bpf_map_lookup_elem(&runtime_places, &who);
	if (place) {
		key = place->file;
		program = bpf_map_lookup_elem(&runtime_files, &key);
		if (!program)
			return false;
		runtime_use(st, &program->process,
			    place->begin + program->code);
		return true;
	}
	bpf_core_read(&mm, sizeof(mm), &task->mm);
	if (!mm || bpf_core_read(&file, sizeof(file), &mm->exe_file) ||
	    !runtime_identify(file, &key) ||
	    bpf_core_read(&start_code, sizeof(start_code), &mm->start_code))
		return false;
	program = bpf_map_lookup_elem(&runtime_files, &key);
	if (!program)
		return false;
	runtime_use(st, &program->process, start_code - program->start_code);
	return true;
}

/* Results of runtime_try(). */
#define RUNTIME_IS_USED	 1 /* by the thread */
#define RUNTIME_NOT_USED 0
#define RUNTIME_NO_MORE	 -1

/*
 * Looks whether the thread uses the interpreter of that number, of the process
 * in the state. `is_new`: the process. A global function, which the verifier
 * walks once and not for each number.
 */
__noinline int runtime_try(__u32 number, __u32 is_new)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct runtime_interpreter key = {.number = number};
	struct cpython_process *process;
	struct runtime_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st)
		return RUNTIME_NO_MORE;
	key.process = st->who;
	process = bpf_map_lookup_elem(&runtime_processes, &key);
	if (process)
		runtime_use(st, process, 0);
	else if (number || !is_new || !runtime_use_file(st, task))
		return RUNTIME_NO_MORE;
	return cpython_begin(st, task) ? RUNTIME_IS_USED : RUNTIME_NOT_USED;
}

/*
 * Finds the interpreter that the thread uses; 0: none. A global function, so
 * that the verifier walks what comes behind it once and not for each number.
 */
__noinline int runtime_find(__u32 is_new)
{
	for (int i = 0; i < RUNTIME_INTERPRETERS; i++) {
		int found = runtime_try(i, is_new);

		if (found != RUNTIME_NOT_USED)
			return found == RUNTIME_IS_USED;
	}
	return 0;
}

/* The state, with nothing in it of other samples. */
static __always_inline struct runtime_state *
runtime_begin(const struct profile_key *key, __u32 set)
{
	struct runtime_state *st;
	__u32 place = scratch_place();

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st)
		return NULL;
	st->active = 0;
	st->noted = 0;
	st->who.start_ns = key->start_ns;
	st->who.tgid = key->tgid;
	st->who.exec_count = key->exec_count;
	st->record.header.set = set;
	return st;
}

/*
 * The thread is in the kernel, where it waits for the word at that address, but
 * not for ever; 0: it does not. Threads wait for the global lock with a limit,
 * after which they ask for it. They wait for other words of the interpreter's
 * data as long as it takes, or these lie elsewhere.
 */
static __always_inline void runtime_note_wait(struct runtime_state *st,
					      __u64 word)
{
	if (word - st->layout.runtime >= st->layout.runtime_bytes)
		return;
	st->record.flags |= RUNTIME_WAITS_FOR_LOCK;
	st->hash = cpython_hash(st->hash, RUNTIME_WAITS_FOR_LOCK);
}

/* The first run that has no place; NULL: there is none. */
static __always_inline struct runtime_item *
runtime_next_run(struct runtime_state *st)
{
	__u32 at = st->next_run;

	return at < st->record.items ? runtime_item_at(st, at) : NULL;
}

static __always_inline void runtime_place_run(struct runtime_state *st,
					      struct runtime_item *run,
					      __u32 depth)
{
	if (depth) {
		run->native = depth - 1;
		st->hash = cpython_hash(st->hash, depth);
	}
	st->next_run = run->index;
}

/* Runs that are looked at for a word. */
#define RUNTIME_WORDS 4

/*
 * The same as runtime_place() where anchors are words of native frames. A run
 * whose word is in no frame is of a call that begins or ends, or it is torn:
 * user space knows by those that have a place.
 */
static __always_inline __u64 runtime_place_word(struct runtime_state *st,
						__u64 sp, __u32 depth)
{
	__u64 end = st->native_end, word = 0;
	__u32 at = st->next_run, place = scratch_place();
	struct unwind_state *native;
	struct runtime_item *run;

	st->native_end = sp;
	native = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!native || at >= st->record.items)
		return RUNTIME_NO_ANCHOR;
	if (!depth || sp - end < st->layout.word_below ||
	    !unwind_read(native, sp - st->layout.word_below, &word) || !word)
		return 0;
	for (int i = 0; i < RUNTIME_WORDS; i++) {
		run = at < st->record.items ? runtime_item_at(st, at) : NULL;
		if (!run)
			break;
		if (run->word == word) {
			runtime_place_run(st, run, depth);
			break;
		}
		at = run->index;
	}
	return 0;
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
	if (st->layout.runs == CPYTHON_RUNS_EACH)
		return runtime_place_word(st, sp, depth);
	for (int i = 0; i < 4; i++) {
		struct runtime_item *run = runtime_next_run(st);

		if (!run || !run->word)
			return RUNTIME_NO_ANCHOR;
		if (run->word >= sp)
			return run->word;
		runtime_place_run(st, run, depth);
	}
	return RUNTIME_NO_ANCHOR;
}

/* The sample's runtimes have something to say of the stack. */
static __always_inline bool runtime_has_items(const struct runtime_state *st)
{
	return st->noted || (st->active && (st->last_run != RUNTIME_NO_ITEM ||
					    st->record.flags));
}

/* The id of a stack with the frames that runtimes have in it. */
static __always_inline __u64 runtime_name(const struct unwind_state *native,
					  __u64 id)
{
	struct runtime_state *st;
	__u32 place = scratch_place();

	if (!walks_runtimes || !native->uses_runtimes)
		return id;
	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st || !runtime_has_items(st))
		return id;
	id = (id ^ st->hash) * hash_multiplier;
	id ^= id >> 32;
	return id < PROFILE_STACK_FIRST_ID ? id + PROFILE_STACK_FIRST_ID : id;
}

/*
 * Sends the frames of the sample's runtimes, if there are any; 0: there was
 * no room in the ring. A global function, which the verifier walks once.
 */
__noinline int runtime_send(__u32 set, __u32 type, __u64 id)
{
	struct unwind_state *native;
	struct runtime_state *st;
	__u32 place = scratch_place(), items;

	if (!walks_runtimes)
		return 1;
	native = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!native || !native->uses_runtimes)
		return 1;
	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st || !runtime_has_items(st))
		return 1;
	items = st->record.items;
	if (items > RUNTIME_MAX_ITEMS)
		items = RUNTIME_MAX_ITEMS;
	st->record.header.type = type;
	st->record.header.set = set;
	st->record.process = st->who;
	st->record.id = id;
	/* Names of what a runtime made are read while it has them. */
	return bpf_ringbuf_output(&ring, &st->record,
				  PROFILE_RUNTIME_RECORD_BYTES(items),
				  bell_flags(st->noted)) == 0;
}
