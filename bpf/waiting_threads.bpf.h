/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Threads that sleep tell nothing by themselves. One walk over all threads when
 * sampling begins writes down how long each had run by then; one at the end
 * takes the stacks of those that did not wake up. Where sampling goes on and on
 * there is one at the end of each interval, too: a thread that slept then, and
 * has not run since, is told without its stack.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/thread_memory.bpf.h"
#include "bpf/unwind_begin.bpf.h"
#include "bpf/waiting.bpf.h"

static __always_inline void wait_set_first(const struct task_struct___wait *t)
{
	struct wait_slot *slot = wait_find(t->pid);
	struct wait_points points;

	/* It has run since the programs were attached. */
	if (slot)
		return;
	slot = wait_claim(t->pid);
	if (!slot)
		return;
	/* One that runs has no wait: its slot is written anew when it stops. */
	points = wait_points_of(t->pid, wait_from);
	slot->next_point = wait_next_point(&points, wait_from);
	wait_set_slot(slot, t, wait_from);
	slot->state = wait_state(t);
}

/* Up to when a walk counts what waits; 0: sampling begins. */
static __always_inline __u64 wait_open_end(void)
{
	return wait_until ? wait_until : wait_walk_until;
}

/*
 * How often the thread has run, without the time that goes on. One that was
 * just chosen has left the queue and is counted, but may not be on its CPU yet.
 */
static __always_inline __u32 wait_runs(const struct task_struct___wait *t)
{
	__u32 runs = t->sched_info.pcount;

	/* The scheduler takes it out of the queue before it counts. */
	barrier();
	return t->on_rq && !t->sched_info.last_queued ? runs - 1 : runs;
}

static __always_inline void wait_fill_thread(struct wait_thread_record *record,
					     const struct task_struct___wait *t,
					     __u64 now)
{
	struct wait_span span = wait_span_until(t, now);

	record->header.type = PROFILE_RECORD_THREAD;
	record->start_ns = t->start_time;
	record->now_ns = now + wait_clock_offset;
	record->running_ns = span.running;
	record->runnable_ns = span.runnable;
	record->tgid = t->tgid;
	record->tid = t->pid;
	record->last = wait_until ? WAIT_SAMPLING_ENDED : 0;
	record->runs = wait_runs(t);
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), t->comm);
}

static __always_inline void wait_fill_key(struct profile_key *key,
					  const struct task_struct___wait *t)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->start_ns = start_time((void *)t);
	key->tgid = t->tgid;
	if (per_thread)
		key->tid = t->pid;
	key->exec_count = t->self_exec_id;
	bpf_probe_read_kernel_str(key->comm, sizeof(key->comm), t->comm);
}

static __always_inline __u64 wait_cgroup_of(const struct task_struct___wait *t)
{
	return want_cgroup ? BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id) : 0;
}

/* The same of another thread as fill_copy() does of this one. */
static __always_inline void wait_fill_copy(struct wait_scratch *scratch,
					   const struct task_struct___wait *t)
{
	struct profile_copy_record *head = &scratch->copy;
	struct wait_walk *walk = &scratch->walk;

	ARCH_USE_REGS(walk, &scratch->regs);
	head->header.type = PROFILE_RECORD_COPY;
	head->copy = (head->copy + 1) | (__u64)WAIT_COPY_PLACE << 48;
	head->time_ns = wait_open_end() + wait_clock_offset;
	head->cgroup = wait_cgroup_of(t);
	head->ip = walk->ip;
	__builtin_memcpy(head->registers, walk->leaf, sizeof(walk->leaf));
	head->registers[ARCH_EXTRA] = walk->extra;
	head->registers[ARCH_FP] = walk->fp;
	head->registers[ARCH_SP] = walk->sp;
	head->address =
	    (walk->sp - ARCH_RED_ZONE_BYTES) & ~(__u64)(PROFILE_COPY_CHUNK - 1);
	head->end = head->address;
	head->home_address = 0;
	head->home_end = 0;
	head->thread = arch_thread_pointer((void *)t);
	head->timed_wait = arch_timed_wait(&scratch->regs);
	head->runs = wait_runs(t);
	head->bytes = 0;
}

/* Fills in the kernel's frames, the reason behind them and the stack's id. */
static __always_inline __u64 wait_other_kernel(struct wait_scratch *scratch,
					       struct task_struct___wait *t,
					       __u32 calls, __u64 reason)
{
	struct profile_stack_record *record = &scratch->kernel;
	__u64 hash = hash_multiplier ^ reason;
	long n = 0;

	record->header.type = PROFILE_RECORD_STACK;
	record->header.set = active_set & 1;
	record->end = UNWIND_END_FRAME_POINTERS;
	record->used_frame_pointer = 0;
	record->mixed = 1;
	if (want_kernel)
		n = bpf_get_task_stack((void *)t, record->frames,
				       WAIT_OTHER_DEPTH * sizeof(__u64), 0);
	n = n < 0 ? 0 : n / sizeof(__u64);
	if (n >= WAIT_OTHER_DEPTH) {
		n = WAIT_OTHER_DEPTH;
		record->end = UNWIND_END_DEPTH_LIMIT;
	}
	for (int i = 0; i < WAIT_OTHER_DEPTH; i++) {
		if (i >= n)
			break;
		hash = (hash ^ record->frames[i]) * hash_multiplier;
	}
	/* Old verifiers lose a bound over a loop. */
	asm volatile("" : "+r"(n));
	if (n < 0 || n > WAIT_OTHER_DEPTH)
		return 0;
	record->frames[n] = PROFILE_FRAME_HEAD(WAIT_FRAME_KIND, calls);
	record->frames[n + 1] = reason;
	record->depth = n + 2;
	hash ^= hash >> 32;
	record->id = hash < PROFILE_STACK_FIRST_ID
			 ? hash + PROFILE_STACK_FIRST_ID
			 : hash;
	return record->id;
}

/* Reads less than two pages. */
static __always_inline bool wait_read(void *to, __u32 bytes, __u64 from,
				      struct task_struct___wait *t)
{
	return memory_answers(t, from, bytes) &&
	       !bpf_copy_from_user_task(to, bytes, (void *)from, (void *)t, 0);
}

/* Sends what can be read of the stack, in pieces; false: the file is full. */
static __always_inline bool wait_send_stack(struct seq_file *seq,
					    struct wait_scratch *scratch,
					    struct task_struct___wait *t)
{
	struct profile_copy_record *head = &scratch->copy;
	struct wait_piece *piece = &scratch->piece;
	__u64 end = find_ends(head, t);

	piece->header = head->header;
	piece->header.type = PROFILE_RECORD_PIECE;
	piece->copy = head->copy;
	for (int i = 0; i < WAIT_READS && head->end < end; i++) {
		__u32 bytes = WAIT_READ_BYTES;

		if (!wait_read(piece->stack, WAIT_READ_BYTES, head->end, t)) {
			/* All or nothing; there may be a part of that page. */
			bytes = WAIT_READ_BYTES / 4;
			if (!wait_read(piece->stack, WAIT_READ_BYTES / 4,
				       head->end, t))
				break;
		}
		piece->address = head->end;
		piece->bytes = bytes;
		if (bpf_seq_write(seq, piece, WAIT_PIECE_HEAD + bytes))
			return false;
		head->end += bytes;
		head->bytes += bytes;
	}
	return true;
}

/* Counts a thread that has no user stack. */
static __always_inline void wait_count_kernel(struct wait_scratch *scratch,
					      void *waits)
{
	struct wait_count *count;

	count = bpf_map_lookup_elem(waits, &scratch->copy.key);
	if (count)
		wait_add(count, scratch->count.value_ns);
	else if (wait_put(waits, &scratch->copy.key, &scratch->count) ==
		 WAIT_PUT_FULL)
		scratch->lost++;
}

static __always_inline void wait_fill_asleep(struct wait_asleep_record *record,
					     const struct task_struct___wait *t,
					     const struct wait *w)
{
	record->header.type = PROFILE_RECORD_ASLEEP;
	record->header.set = active_set & 1;
	record->tid = t->pid;
	record->is_new = 0;
	record->value_ns = w->points[1] * wait_period_ns;
	record->cgroup = wait_cgroup_of(t);
	record->time_ns = wait_open_end() + wait_clock_offset;
	record->known.switches = wait_switches(t);
	record->known.start_time = t->start_time;
}

enum wait_sent {
	WAIT_SENT,
	WAIT_FILE_FULL, /* all of it is asked for again */
	WAIT_WENT_ON,	/* and counts itself; what was sent may be wrong */
};

/* The copy, whose pieces were sent. */
static __always_inline enum wait_sent
wait_send_copy(struct seq_file *seq, struct wait_scratch *scratch,
	       const struct task_struct___wait *t, const struct wait *w)
{
	if (t->on_cpu || wait_switches(t) != scratch->switches)
		return WAIT_WENT_ON;
	if (bpf_seq_write(seq, &scratch->copy, sizeof(scratch->copy)))
		return WAIT_FILE_FULL;
	if (!wait_walks)
		return WAIT_SENT;
	wait_fill_asleep(&scratch->asleep, t, w);
	scratch->asleep.is_new = 1;
	if (bpf_seq_write(seq, &scratch->asleep, sizeof(scratch->asleep)))
		return WAIT_FILE_FULL;
	if (wait_stacks_left)
		wait_stacks_left--;
	return WAIT_SENT;
}

/* The samples of a wait that goes on, as records. */
static __always_inline enum wait_sent
wait_send_open(struct seq_file *seq, struct wait_scratch *scratch,
	       struct task_struct___wait *t, struct wait *w, bool reads)
{
	struct profile_copy_record *head = &scratch->copy;
	__u32 call = WAIT_NO_CALL, calls = WAIT_CALLS_NONE;
	bool has_user = t->mm && regs_of((void *)t, &scratch->regs);

	if (has_user)
		calls = arch_system_call(&scratch->regs, t->thread_info.status,
					 &call);
	if (BPF_CORE_READ_BITFIELD_PROBED(t, in_iowait))
		w->flags |= WAIT_IO;
	for (int i = 0; i < PROFILE_WAIT_KINDS; i++) {
		__u32 bytes;

		head->waits[i].value_ns = w->points[i] * wait_period_ns;
		head->waits[i].kernel_stack = 0;
		if (!w->points[i])
			continue;
		head->waits[i].kernel_stack = wait_other_kernel(
		    scratch, t, calls,
		    wait_reason(w->state, w->flags, call, i + 1));
		/* Before the copy or the count that names it. */
		bytes = PROFILE_STACK_RECORD_BYTES(scratch->kernel.depth &
						   (2 * WAIT_OTHER_DEPTH - 1));
		if (bpf_seq_write(seq, &scratch->kernel, bytes))
			return WAIT_FILE_FULL;
	}
	if (!has_user || !want_user || !arch_is_walked(&scratch->regs))
		return WAIT_SENT;
	if (!wait_copies_walked) {
		head->key.user_stack = PROFILE_STACK_FAULT;
		return WAIT_SENT;
	}
	wait_fill_copy(scratch, t);
	if (!reads)
		/* User space reads the stack (SleepingStacks). */
		head->end = find_ends(head, t);
	else if (!wait_send_stack(seq, scratch, t))
		return WAIT_FILE_FULL;
	return wait_send_copy(seq, scratch, t, w);
}

static __always_inline void wait_count_open(struct wait_scratch *scratch)
{
	struct profile_copy_record *head = &scratch->copy;
	__u32 set = head->header.set;
	struct profile_stats *counters = bpf_map_lookup_elem(&stats, &set);

	scratch->lost = 0;
	for (int i = 0; i < PROFILE_WAIT_KINDS; i++) {
		if (!head->waits[i].value_ns)
			continue;
		if (counters)
			count_up(&counters->taken, 1);
		/* Else the copy is counted by who reads it. */
		if (head->header.type == PROFILE_RECORD_COPY)
			continue;
		head->key.kind = i + 1;
		head->key.kernel_stack = head->waits[i].kernel_stack;
		scratch->count.count = 1;
		scratch->count.value_ns = head->waits[i].value_ns;
		if (set)
			wait_count_kernel(scratch, &waits_1);
		else
			wait_count_kernel(scratch, &waits_0);
	}
	if (counters)
		count_up(&counters->lost_counts_full, scratch->lost);
}

static __always_inline bool wait_is_known(const struct task_struct___wait *t)
{
	__u32 tid = t->pid;
	const struct wait_known *known =
	    bpf_map_lookup_elem(&wait_known_threads, &tid);

	return known && known->switches == wait_switches(t) &&
	       known->start_time == t->start_time;
}

/*
 * Whether a walk at the end of an interval is done with the thread. What is in
 * the queue for a CPU goes on soon and counts then.
 */
static __always_inline bool wait_is_told(struct seq_file *seq,
					 struct wait_scratch *scratch,
					 struct task_struct___wait *t,
					 struct wait_slot *slot, struct wait *w)
{
	if (t->on_rq && !wait_until)
		return true;
	if (!w->points[0] && wait_is_known(t)) {
		wait_fill_asleep(&scratch->asleep, t, w);
		if (!bpf_seq_write(seq, &scratch->asleep,
				   sizeof(scratch->asleep)))
			slot->began = wait_open_end();
		return true;
	}
	if (wait_stacks_left && slot->began <= wait_began_by)
		return false;
	if (w->points[0] || w->points[1])
		wait_put_off++;
	return true;
}

/*
 * The samples of the wait that a thread is in. One that runs is in none. Who
 * goes on between here and where its slot is written to, some 100 ns, counts
 * twice.
 */
static __always_inline void wait_thread_waits(struct seq_file *seq,
					      struct wait_scratch *scratch,
					      struct task_struct___wait *t,
					      bool reads)
{
	struct wait_slot *slot = wait_find(t->pid);
	__u64 end = wait_open_end();
	struct wait_points points = wait_points_of(t->pid, end);
	struct wait w = {};

	if (t->on_cpu || !slot || !wait_count_slot(&w, slot, &points, t, end))
		return;
	if (wait_walks && wait_is_told(seq, scratch, t, slot, &w))
		return;
	if (!w.points[0] && !w.points[1])
		return;
	scratch->copy.header.type = 0;
	scratch->copy.header.set = active_set & 1;
	wait_fill_key(&scratch->copy.key, t);
	scratch->copy.tid = t->pid;
	scratch->switches = slot->switches;
	if (wait_send_open(seq, scratch, t, &w, reads) != WAIT_SENT)
		return;
	wait_count_open(scratch);
	/* Its wait from here on is counted later. */
	slot->began = end;
}

static __always_inline int wait_thread(struct bpf_iter__task *ctx, bool reads)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct___wait *t = ctx->task;
	struct wait_scratch *scratch;
	__u64 end = wait_open_end();
	__u32 zero = 0;

	if (!t || !t->pid || t->exit_state)
		return 0;
	if (!end)
		wait_set_first(t);
	if (!wait_passes_filters(t))
		return 0;
	scratch = bpf_map_lookup_elem(&wait_scratch, &zero);
	if (!scratch)
		return 0;
	/* User space asks how long a thread ran whose stack it reads. */
	if (wait_tells_threads || !reads) {
		wait_fill_thread(&scratch->thread, t, end ? end : wait_from);
		if (bpf_seq_write(seq, &scratch->thread,
				  sizeof(scratch->thread)))
			return 0;
	}
	if (end)
		wait_thread_waits(seq, scratch, t, reads);
	return 0;
}

/* Attached by its number among the kernel's types; see WaitSampler. */
SEC("ksym_iter/task")
int wait_threads(struct bpf_iter__task *ctx)
{
	return wait_thread(ctx, true);
}

/* Where programs cannot read the stacks of others, before 5.18. */
SEC("ksym_iter_kernel/task")
int wait_kernel_threads(struct bpf_iter__task *ctx)
{
	return wait_thread(ctx, false);
}
