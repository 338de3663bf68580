/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * All threads as they are now, by one walk over them. Nothing is attached to
 * what they do, so they are not delayed. The registers and the stack of a
 * thread that is on a CPU cannot be read: the CPU's samples have those.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/dump_abi.h"
#include "bpf/unwind_begin.bpf.h"
#include "bpf/waiting_threads.bpf.h"

/*
 * A thread that is dumped. `reads`: by a program that can read others' memory
 * (5.18). The compiler knows its value: older kernels refuse code that reads
 * even where it is never run.
 */
struct dump_pass {
	struct seq_file *seq;
	struct wait_scratch *scratch;
	struct task_struct___wait *t;
	bool reads;
};

struct sched_entity___dump {
	unsigned long long exec_start;
	unsigned long long sum_exec_runtime;
	unsigned long long prev_sum_exec_runtime;
} __core;
struct task_struct___dump {
	struct sched_entity___dump se;
	struct pid *thread_pid;
} __core;
/* As in all kernels since 4.15. */
struct upid___dump {
	int nr;
	void *ns;
};
struct pid {
	unsigned int level;
	struct upid___dump numbers[1];
} __core;

/* CLOCK_MONOTONIC less the scheduler's clock, about. */
__u64 dump_clock_offset = 0;

/* The current thread has just woken up, which the scheduler wrote down. */
static __always_inline void dump_set_clock(void)
{
	struct task_struct___wait *t = (void *)bpf_get_current_task();
	__u64 arrival = 0;

	/* Before 5.11 it is not known as a task. */
	if (!bpf_core_read(&arrival, sizeof(arrival),
			   &t->sched_info.last_arrival) &&
	    arrival)
		dump_clock_offset = bpf_ktime_get_ns() - arrival;
}

static __always_inline __u32 dump_own_tid(const struct task_struct___dump *t)
{
	struct pid *pid = NULL;
	__u32 level = 0, tid = 0;

	if (bpf_core_read(&pid, sizeof(pid), &t->thread_pid) || !pid ||
	    bpf_core_read(&level, sizeof(level), &pid->level))
		return 0;
	/* MAX_PID_NS_LEVEL */
	if (level > 32)
		return 0;
	bpf_probe_read_kernel(
	    &tid, sizeof(tid),
	    (void *)__builtin_preserve_access_index(&pid->numbers) +
		level * sizeof(struct upid___dump));
	return tid;
}

static __always_inline bool dump_is_runnable(const struct task_struct___wait *t)
{
	return !(wait_state(t) & 0xffff) || t->sched_info.last_queued;
}

/*
 * For how long it has waited, at the most. A thread in the queue came there at
 * `last_queued`. A blocked one began to run at `last_arrival`, and its own time
 * says for how long, less what was before a change of its class or its group
 * meanwhile. It also ran at `exec_start`, by a clock that is late by what
 * interrupts took. So neither says a later time than that at which it stopped.
 */
static __always_inline void dump_waited(struct dump_thread_record *record,
					const struct task_struct___wait *t)
{
	const struct task_struct___dump *more = (void *)t;
	__u64 now = bpf_ktime_get_ns() - dump_clock_offset;
	__u64 since = t->sched_info.last_queued;

	if (!since && t->sched_info.last_arrival) {
		since = t->sched_info.last_arrival + more->se.sum_exec_runtime -
			more->se.prev_sum_exec_runtime;
		if (since < more->se.exec_start)
			since = more->se.exec_start;
	}
	if (!since)
		return;
	record->flags |= DUMP_WAITED;
	record->waited_ns = since < now ? now - since : 0;
}

static __always_inline void dump_read_lock(struct dump_thread_record *record,
					   struct task_struct___wait *t,
					   __u32 call)
{
	if (record->calls != WAIT_CALLS_X86_64 || call != ARCH_SYSCALL_FUTEX)
		return;
	if (wait_read(record->lock_words, sizeof(record->lock_words),
		      record->arguments[0], t))
		record->flags |= DUMP_LOCK;
}

/* Fills in why it waits, and for which lock. */
static __always_inline void dump_read_call(const struct dump_pass *pass,
					   struct dump_thread_record *record)
{
	struct wait_scratch *scratch = pass->scratch;
	struct task_struct___wait *t = pass->t;
	struct wait w = {.state = wait_state(t)};
	__u32 call = WAIT_NO_CALL;

	if (t->mm && regs_of((void *)t, &scratch->regs) &&
	    arch_is_of_user(&scratch->regs)) {
		record->flags |= DUMP_USER;
		record->calls = arch_system_call(&scratch->regs,
						 t->thread_info.status, &call);
		record->arguments[0] = ARCH_ARGUMENT_0(&scratch->regs);
		record->arguments[1] = ARCH_ARGUMENT_1(&scratch->regs);
		record->arguments[2] = ARCH_ARGUMENT_2(&scratch->regs);
	}
	if (BPF_CORE_READ_BITFIELD_PROBED(t, in_iowait))
		w.flags |= WAIT_IO;
	if (dump_is_runnable(t)) {
		w.flags |= WAIT_RUNNABLE | WAIT_UNSEEN;
		if (!wait_switches(t))
			w.flags |= WAIT_NEW;
	}
	record->reason = wait_reason(w.state, w.flags, call, 0);
	if (pass->reads)
		dump_read_lock(record, t, call);
}

/* Sends its stacks; false: the file is full. */
static __always_inline bool dump_send_stacks(const struct dump_pass *pass,
					     struct dump_thread_record *record)
{
	struct wait_scratch *scratch = pass->scratch;
	struct profile_copy_record *head = &scratch->copy;
	__u32 bytes;

	record->key.kernel_stack =
	    wait_other_kernel(scratch, pass->t, record->calls, record->reason);
	bytes = PROFILE_STACK_RECORD_BYTES(scratch->kernel.depth &
					   (2 * WAIT_OTHER_DEPTH - 1));
	if (bpf_seq_write(pass->seq, &scratch->kernel, bytes))
		return false;
	if (!pass->reads || !(record->flags & DUMP_USER) || !want_user ||
	    !arch_is_walked(&scratch->regs))
		return true;
	head->header = record->header;
	head->key = record->key;
	head->tid = record->tid;
	wait_fill_copy(scratch, pass->t);
	head->time_ns = bpf_ktime_get_ns();
	return wait_send_stack(pass->seq, scratch, pass->t);
}

static __always_inline void dump_fill(struct dump_thread_record *record,
				      const struct task_struct___wait *t)
{
	__builtin_memset(record, 0, sizeof(*record));
	record->header.type = PROFILE_RECORD_DUMP;
	record->header.set = active_set & 1;
	wait_fill_key(&record->key, t);
	record->key.kind = PROFILE_KIND_THREAD;
	record->tid = t->pid;
	record->own_tid = dump_own_tid((void *)t);
}

/*
 * A thread that ran meanwhile had its stack changed while it was read. The
 * pieces that were sent of it then belong to nothing.
 */
static __always_inline void dump_thread(const struct dump_pass *pass)
{
	struct wait_scratch *scratch = pass->scratch;
	struct dump_thread_record *record = &scratch->dump;
	struct task_struct___wait *t = pass->t;
	__u64 switches = wait_switches(t);

	dump_fill(record, t);
	scratch->copy.bytes = 0;
	if (!t->on_cpu) {
		dump_read_call(pass, record);
		if (!dump_send_stacks(pass, record))
			return;
		dump_waited(record, t);
	}
	if (t->on_cpu || wait_switches(t) != switches) {
		dump_fill(record, t);
		record->flags = DUMP_RUNNING;
	} else if (scratch->copy.bytes) {
		if (bpf_seq_write(pass->seq, &scratch->copy,
				  sizeof(scratch->copy)))
			return;
		record->flags |= DUMP_COPIED;
	}
	bpf_seq_write(pass->seq, record, sizeof(*record));
}

static __always_inline void dump_next(struct bpf_iter__task *ctx, bool reads)
{
	int own = bpf_get_current_pid_tgid() >> 32;
	struct task_struct___wait *t = ctx->task;
	struct dump_pass pass = {.t = t, .reads = reads};
	__u32 zero = 0;

	if (!dump_clock_offset)
		dump_set_clock();
	if (!t || !t->pid || t->exit_state || t->tgid == own ||
	    !wait_passes_filters(t))
		return;
	pass.seq = ctx->meta->seq;
	pass.scratch = bpf_map_lookup_elem(&wait_scratch, &zero);
	if (pass.scratch)
		dump_thread(&pass);
}

SEC("ksym_iter/task")
int dump_threads(struct bpf_iter__task *ctx)
{
	dump_next(ctx, true);
	return 0;
}

/* Where programs that read another thread's memory cannot be loaded. */
SEC("ksym_iter_kernel/task")
int dump_kernel_stacks(struct bpf_iter__task *ctx)
{
	dump_next(ctx, false);
	return 0;
}
