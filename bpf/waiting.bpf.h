/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Samples of threads that wait. One program runs when a thread stops running
 * and writes down in which state, another when it runs again and knows then, by
 * the kernel's own sums, for how long it was blocked and for how long it waited
 * for a CPU. Each period of a thread's life has one random point, and only a
 * wait with a point in it is a sample: it counts as many periods as it has
 * points, which is right on average whatever the waits are in step with. Its
 * stack is still what it was.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/sample.bpf.h"
#include "bpf/stacks.bpf.h"
#include "bpf/waiting_abi.h"
#include "bpf/waiting_maps.bpf.h"
#include "bpf/waiting_points.h"

/* States of task_struct that are the same in all kernels (sched.h). */
#define TASK_STATE_DEAD 0x80

static __always_inline struct wait_cpu *wait_this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&wait_cpus, &zero);
}

/* The two places where a thread's slot can be. */
static __always_inline struct wait_slot *wait_first_place(__u32 tid)
{
	__u32 at = tid & wait_slot_mask;

	return bpf_map_lookup_elem(&wait_slots, &at);
}

static __always_inline struct wait_slot *wait_second_place(__u32 tid)
{
	__u32 at = ((tid * 0x9e3779b1u) >> 8) & wait_slot_mask;

	return bpf_map_lookup_elem(&wait_slots, &at);
}

/* The thread's slot; null: it has none. */
static __always_inline struct wait_slot *wait_find(__u32 tid)
{
	struct wait_slot *slot = wait_first_place(tid);

	if (slot && slot->tid == tid)
		return slot;
	slot = wait_second_place(tid);
	return slot && slot->tid == tid ? slot : NULL;
}

/* A slot for a thread that has none, if need be that of another one. */
static __always_inline struct wait_slot *wait_claim(__u32 tid)
{
	struct wait_slot *slot = wait_first_place(tid);

	if (slot && slot->tid)
		slot = wait_second_place(tid);
	if (slot && slot->tid) {
		struct wait_cpu *cpu = wait_this_cpu();

		if (cpu)
			cpu->stats.crowded++;
	}
	return slot;
}

static __always_inline __u64 wait_switches(const struct task_struct___wait *t)
{
	return t->nvcsw + t->nivcsw;
}

/* The thread has just begun to run. */
static __always_inline void wait_set_slot(struct wait_slot *slot,
					  const struct task_struct___wait *t)
{
	slot->tid = t->pid;
	slot->start_time = t->start_time;
	slot->began = t->sched_info.last_arrival;
	slot->running = t->se.sum_exec_runtime;
	slot->runnable = t->sched_info.run_delay;
	slot->switches = wait_switches(t) + 1;
}

static __always_inline struct wait_points wait_points_of(__u32 tid)
{
	struct wait_points points = {
	    .period = wait_period_ns,
	    .seed = wait_seed ^ tid,
	};

	return points;
}

/* A wait that has ended, or not yet. */
struct wait {
	__u64 points[PROFILE_WAIT_KINDS];
	__u32 state;
	__u16 flags;
};

/*
 * How many points lie in each part of a wait, which was blocked first and then
 * runnable. `running` and `runnable` are what the kernel's sums are now.
 */
static __always_inline void wait_count_points(struct wait *w,
					      const struct wait_slot *slot,
					      const struct wait_span *span)
{
	__u64 from = wait_from, begin, queued;
	struct wait_points points = wait_points_of(slot->tid);

	begin = slot->began + (span->running - slot->running);
	queued = span->end - (span->runnable - slot->runnable);
	if (begin < from)
		begin = from;
	/* What the CPU was taken away for is no wish to wait. */
	if (!(w->flags & WAIT_PREEMPTED) && begin < queued)
		w->points[0] = wait_points_in(&points, queued, span->end);
	else
		w->points[0] = wait_points_in(&points, begin, span->end);
	if (!(w->flags & WAIT_PREEMPTED))
		w->points[1] = wait_points_in(&points, begin, queued);
}

/*
 * How many points the stack of a wait stands for that has so many itself; 0:
 * others stand for it. A wait is kept as likely as it has points, and a long
 * one always: else chance would decide on much time at once. Chance knows only
 * what came before, so the sums stay right on average. A global function, which
 * the verifier walks once.
 */
__noinline __u64 wait_stands_for(__u64 points)
{
	struct wait_cpu *cpu = wait_this_cpu();
	__u64 now = bpf_ktime_get_ns();
	__u64 since, least;

	if (!cpu)
		return 0;
	since = now - cpu->window_ns;
	if (since >= WAIT_BUDGET_NS) {
		cpu->shift = wait_first_shift(
		    since < 2 * WAIT_BUDGET_NS ? cpu->asked : 0,
		    wait_stacks_at_once);
		cpu->window_ns = now;
		cpu->asked = 0;
		cpu->kept = 0;
	}
	cpu->asked++;
	least = (__u64)1 << (cpu->shift & 31);
	if (points < least) {
		if ((bpf_get_prandom_u32() & (least - 1)) >= points) {
			cpu->stats.thinned++;
			return 0;
		}
		points = least;
	}
	if (++cpu->kept >= wait_stacks_at_once) {
		cpu->kept = wait_stacks_at_once / 2;
		if (cpu->shift < WAIT_MOST_SHIFT)
			cpu->shift++;
	}
	return points;
}

/* The value of the frame that says why. */
static __always_inline __u64 wait_reason(const struct wait *w, __u32 call,
					 __u32 kind)
{
	__u16 flags = w->flags;

	if (kind == PROFILE_KIND_RUNNABLE)
		flags |= WAIT_RUNNABLE;
	return (__u64)call | (__u64)(w->state & 0xffff) << 32 |
	       (__u64)flags << 48;
}

/*
 * The kernel's frames in the scratch record, with room for one more. Returns
 * how many words.
 */
static __always_inline __u32 wait_kernel_frames(void *ctx)
{
	struct profile_stack_record *record = scratch_record(SCRATCH_KERNEL);
	long n = 0;

	if (!record)
		return 0;
	record->end = UNWIND_END_FRAME_POINTERS;
	record->used_frame_pointer = 0;
	record->mixed = 1;
	if (want_kernel)
		n = bpf_get_stack(ctx, record->frames,
				  kernel_walk_depth * sizeof(__u64), 0);
	if (n <= 0)
		return 0;
	n /= sizeof(__u64);
	if (n >= kernel_walk_depth)
		record->end = UNWIND_END_DEPTH_LIMIT;
	return n;
}

/*
 * Puts the reason behind the kernel's `depth` frames and returns the stack's
 * id; 0: that failed. A global function, which the verifier walks once.
 */
__noinline __u64 wait_name_stack(__u32 depth, __u64 calls, __u64 reason)
{
	struct profile_stack_record *record = scratch_record(SCRATCH_KERNEL);
	__u64 id;

	if (!record)
		return 0;
	if (depth > PROFILE_MAX_DEPTH - 2)
		depth = PROFILE_MAX_DEPTH - 2;
	record->frames[depth] = PROFILE_FRAME_HEAD(WAIT_FRAME_KIND, calls);
	record->frames[depth + 1] = reason;
	record->depth = depth + 2;
	/* The hash ends with the limit of a stack's depth. */
	id = (hash_scratch(SCRATCH_KERNEL, depth) ^ reason) * hash_multiplier;
	id ^= id >> 32;
	return id < PROFILE_STACK_FIRST_ID ? id + PROFILE_STACK_FIRST_ID : id;
}

static __always_inline void wait_add(struct wait_count *count, __u64 value)
{
	__sync_fetch_and_add(&count->count, 1);
	__sync_fetch_and_add(&count->value_ns, value);
}

static __always_inline void wait_count_in(void *waits, struct sample *s,
					  __u64 value)
{
	struct wait_count first = {.count = 1, .value_ns = value};
	struct wait_count *count = bpf_map_lookup_elem(waits, &s->key);

	s->stats->taken++;
	if (count) {
		wait_add(count, value);
		return;
	}
	if (!send_stack(s->set, SCRATCH_USER, s->key.user_stack) ||
	    !send_stack(s->set, SCRATCH_KERNEL, s->key.kernel_stack))
		return;
	if (bpf_map_update_elem(waits, &s->key, &first, BPF_NOEXIST) == 0) {
		send_process_hint(s);
		return;
	}
	count = bpf_map_lookup_elem(waits, &s->key);
	if (count)
		wait_add(count, value);
	else
		s->stats->lost_counts_full++;
}

static __always_inline void wait_count(struct sample *s, __u64 value)
{
	if (s->set)
		wait_count_in(&waits_1, s, value);
	else
		wait_count_in(&waits_0, s, value);
}

/* What a wait's two samples are made of. */
struct wait_parts {
	struct profile_wait wait[PROFILE_WAIT_KINDS];
	__u64 reason[PROFILE_WAIT_KINDS];
	__u32 calls; /* wait_calls */
	__u32 depth; /* of the kernel's stack */
};

/* Copies the user's stack. True: the samples are still to be counted. */
static __always_inline bool wait_take_later(void *ctx, struct sample *s,
					    struct wait_parts *parts)
{
	__u32 taken = 0;

	for (int i = 0; i < PROFILE_WAIT_KINDS; i++) {
		struct profile_wait *wait = &parts->wait[i];

		if (!wait->value_ns)
			continue;
		wait->kernel_stack = wait_name_stack(parts->depth, parts->calls,
						     parts->reason[i]);
		taken++;
		if (!send_stack(s->set, SCRATCH_KERNEL, wait->kernel_stack)) {
			s->stats->taken++;
			wait->value_ns = 0;
			taken--;
		}
	}
	if (!taken)
		return false;
	if (take_later(ctx, s, parts->wait))
		return true;
	s->stats->taken += taken;
	return false;
}

/* Fills in what led to the wait. */
static __always_inline void wait_fill(struct wait_parts *parts, struct wait *w,
				      __u64 stands_for)
{
	struct task_struct___wait *task = (void *)bpf_get_current_task_btf();
	struct arch_regs regs;
	__u32 call = WAIT_NO_CALL;

	parts->calls = WAIT_CALLS_NONE;
	if (task->mm && user_regs((void *)task, &regs))
		parts->calls =
		    arch_system_call(&regs, task->thread_info.status, &call);
	if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
		w->flags |= WAIT_IO;
	for (int i = 0; i < PROFILE_WAIT_KINDS; i++) {
		parts->wait[i].kernel_stack = 0;
		parts->wait[i].value_ns = w->points[i] * wait_period_ns *
					  stands_for /
					  (w->points[0] + w->points[1]);
		parts->reason[i] = wait_reason(w, call, i + 1);
	}
}

static __always_inline void take_wait(void *ctx, struct wait *w,
				      enum user_walk how)
{
	enum taken user = TAKEN;
	struct wait_parts parts;
	struct sample s;
	__u64 stands_for;

	s.in_user_mode = false;
	if (!begin_sample(&s))
		return;
	stands_for = wait_stands_for(w->points[0] + w->points[1]);
	if (!stands_for)
		return;
	wait_fill(&parts, w, stands_for);
	/* Before it ran only tables tell where its stack begins. */
	if (want_user && (how != WALK_BY_KERNEL || !(w->flags & WAIT_NEW)))
		user = take_user_stack(ctx, &s, how);
	if (user == NOT_TAKEN)
		return;
	parts.depth = wait_kernel_frames(ctx);
	if (user == TAKEN_LATER && !wait_take_later(ctx, &s, &parts))
		return;
	for (int i = 0; i < PROFILE_WAIT_KINDS; i++) {
		if (!parts.wait[i].value_ns)
			continue;
		s.key.kind = i + 1;
		s.key.kernel_stack =
		    wait_name_stack(parts.depth, parts.calls, parts.reason[i]);
		wait_count(&s, parts.wait[i].value_ns);
	}
}

/* It ran for the last time: what it was in all. */
static __always_inline void wait_send_end(const struct task_struct___wait *t)
{
	struct wait_thread_record record = {
	    .header = {.type = PROFILE_RECORD_THREAD},
	    .start_ns = t->start_time,
	    .now_ns = bpf_ktime_get_ns(),
	    .running_ns = t->se.sum_exec_runtime,
	    .runnable_ns = t->sched_info.run_delay,
	    .tgid = t->tgid,
	    .tid = t->pid,
	    .last = 1,
	};
	struct wait_cpu *cpu;

	if (!wait_from ||
	    !passes_filters((void *)t, bpf_get_current_pid_tgid()))
		return;
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	if (!bpf_ringbuf_output(&ring, &record, sizeof(record),
				BPF_RB_NO_WAKEUP))
		return;
	cpu = wait_this_cpu();
	if (cpu)
		cpu->stats.ends_full++;
}

/* The current thread stops running. */
SEC("raw_tp/sched_switch")
int wait_begins(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct___wait *t = (void *)bpf_get_current_task_btf();
	__u32 state = ctx->args[3];
	struct wait_slot *slot;

	if (!t->pid)
		return 0;
	slot = wait_find(t->pid);
	if (slot)
		slot->state = ctx->args[0] ? WAIT_STATE_PREEMPTED : state;
	if (state & TASK_STATE_DEAD) {
		if (slot)
			slot->tid = 0;
		wait_send_end(t);
	}
	return 0;
}

static __always_inline int wait_ended(void *ctx,
				      const struct task_struct___wait *t,
				      struct wait_slot *slot,
				      enum user_walk how)
{
	struct wait_span span = {
	    .end = t->sched_info.last_arrival,
	    .running = t->se.sum_exec_runtime,
	    .runnable = t->sched_info.run_delay,
	};
	struct wait w = {.state = slot->state};
	bool is_new = !slot->switches;
	struct wait_points points;
	__u32 interrupted;

	if (slot->switches != wait_switches(t) ||
	    slot->start_time != t->start_time) {
		struct wait_cpu *cpu = wait_this_cpu();

		if (cpu)
			cpu->stats.unseen++;
		w.state = 0;
	} else if (wait_from && span.end >= slot->next_point) {
		if (!w.state || w.state & WAIT_STATE_PREEMPTED)
			w.flags = WAIT_PREEMPTED;
		if (is_new)
			w.flags |= WAIT_NEW;
		wait_count_points(&w, slot, &span);
	}
	wait_set_slot(slot, t);
	if (span.end >= slot->next_point) {
		points = wait_points_of(slot->tid);
		slot->next_point = wait_next_point(&points, span.end);
	}
	if (!w.points[0] && !w.points[1])
		return 0;
	interrupted = enter_scratch(SCRATCH_WAIT);
	take_wait(ctx, &w, how);
	enter_scratch(interrupted);
	return 0;
}

/* The current thread runs, for the first time that is known of. */
static __always_inline int
wait_first(void *ctx, const struct task_struct___wait *t, enum user_walk how)
{
	struct wait_slot *slot = wait_claim(t->pid);
	struct wait_points points;

	if (!slot)
		return 0;
	slot->next_point = 0;
	if (wait_switches(t) || t->se.sum_exec_runtime) {
		wait_set_slot(slot, t);
		points = wait_points_of(t->pid);
		slot->next_point = wait_next_point(&points, slot->began);
		return 0;
	}
	/* A new one has waited since it came into the queue. */
	slot->tid = t->pid;
	slot->state = 0;
	slot->start_time = t->start_time;
	slot->began = t->sched_info.last_arrival - t->sched_info.run_delay;
	slot->running = 0;
	slot->runnable = 0;
	slot->switches = 0;
	return wait_ended(ctx, t, slot, how);
}

static __always_inline int wait_ends(struct bpf_raw_tracepoint_args *ctx,
				     enum user_walk how)
{
	struct task_struct___wait *t = (void *)bpf_get_current_task_btf();
	struct wait_slot *slot;
	__u32 tid = t->pid;

	/* The scheduler may choose who ran already. */
	if (!tid || !ctx->args[0])
		return 0;
	if (tid == wait_own_tid)
		wait_clock_offset =
		    bpf_ktime_get_ns() - t->sched_info.last_arrival;
	slot = wait_find(tid);
	if (!slot)
		return wait_first(ctx, t, how);
	return wait_ended(ctx, t, slot, how);
}

SEC("raw_tp/sched_exit_tp")
int wait_ends_by_kernel(struct bpf_raw_tracepoint_args *ctx)
{
	return wait_ends(ctx, WALK_BY_KERNEL);
}

SEC("raw_tp/sched_exit_tp")
int wait_ends_by_loop(struct bpf_raw_tracepoint_args *ctx)
{
	return wait_ends(ctx, WALK_BY_LOOP);
}
