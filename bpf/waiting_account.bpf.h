/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Accounts for the time in which threads wait, at each switch of threads. The
 * one that stops has its state and the time written into its slot. For the one
 * that goes on the clock and the kernel's own sums tell then for how long it
 * was blocked and for how long it waited for a CPU. Each period of a thread's
 * life has one random point, and only a wait with a point in it is a sample:
 * it counts as many periods as it has points, which is right on average
 * whatever the waits are in step with. Such a wait leaves a mark, by which
 * waiting.bpf.h takes the sample.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/profile_filters.bpf.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/waiting_abi.h"
#include "bpf/waiting_maps.bpf.h"
#include "bpf/waiting_points.h"

/* States of task_struct that are the same in all kernels (sched.h). */
#define TASK_STATE_DEAD	  0x80
#define TASK_STATE_WAKING 0x200

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

/* Writes down that the thread waits from `now` on. */
static __always_inline void wait_set_slot(struct wait_slot *slot,
					  const struct task_struct___wait *t,
					  __u64 now)
{
	slot->tid = t->pid;
	slot->start_time = t->start_time;
	slot->began = now;
	slot->runnable = t->sched_info.run_delay;
	slot->switches = wait_switches(t);
	if (wants_wakers)
		slot->waker = WAKER_UNSEEN;
}

static __always_inline __u64 wait_seed_of(__u32 tid)
{
	return wait_seed ^ tid;
}

/* A thread's points, which are asked for near `now`. */
static __always_inline struct wait_points wait_points_of(__u32 tid, __u64 now)
{
	struct wait_points points = {
	    .period = wait_period_ns,
	    .seed = wait_seed_of(tid),
	    .near = now / wait_period_ns,
	};

	return points;
}

/* A wait that has ended, or not yet. */
struct wait {
	__u64 points[PROFILE_WAIT_KINDS];
	__u64 waker;
	__u32 state;
	__u16 flags;
};

/* Up to now, of one that waits or is about to go on. */
static __always_inline struct wait_span
wait_span_until(const struct task_struct___wait *t, __u64 now)
{
	struct wait_span span = {
	    .end = now,
	    .running = t->se.sum_exec_runtime,
	    .runnable = t->sched_info.run_delay,
	};
	__u64 queued = t->sched_info.last_queued;

	if (queued && queued < now)
		span.runnable += now - queued;
	return span;
}

/* The time up to which a wait counts that ends now. */
static __always_inline __u64 wait_end(__u64 now)
{
	__u64 until = wait_until;

	return until && until < now ? until : now;
}

/*
 * How many points lie in each part of a wait, which was blocked first and then
 * runnable.
 */
static __always_inline void wait_count_points(struct wait *w,
					      const struct wait_slot *slot,
					      const struct wait_points *points,
					      const struct wait_span *span)
{
	__u64 from = wait_from, begin = slot->began, queued;
	__u64 end = wait_end(span->end);

	queued = span->end - (span->runnable - slot->runnable);
	if (queued > end)
		queued = end;
	if (begin < from)
		begin = from;
	/* A thread whose CPU was taken away did not want to wait. */
	if (!(w->flags & WAIT_PREEMPTED) && begin < queued)
		w->points[0] = wait_points_in(points, queued, end);
	else
		w->points[0] = wait_points_in(points, begin, end);
	if (!(w->flags & WAIT_PREEMPTED))
		w->points[1] = wait_points_in(points, begin, queued);
}

/*
 * How many points the stack of a wait stands for that has so many itself; 0:
 * others stand for it. A wait is kept as likely as it has points, and a long
 * one always: else chance would decide on much time at once. Chance knows only
 * what came before, so the sums stay right on average. `seed` is that of the
 * thread's points, `now` by the clock of this CPU's scheduler. A global
 * function, which the verifier walks once.
 */
__noinline __u64 wait_stands_for(__u64 points, __u64 seed, __u64 switches,
				 __u64 now)
{
	struct wait_cpu *cpu = wait_this_cpu();
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
	if (!wait_is_kept(seed, switches, points, cpu->shift)) {
		cpu->stats.thinned++;
		return 0;
	}
	least = (__u64)1 << (cpu->shift & 31);
	if (points < least)
		points = least;
	if (++cpu->kept >= wait_stacks_at_once) {
		cpu->kept = wait_stacks_at_once / 2;
		if (cpu->shift < WAIT_MOST_SHIFT)
			cpu->shift++;
	}
	return points;
}

/*
 * Whether the thread's cgroup is in the map of those that are selected, and is
 * the selected one or below it.
 */
static __always_inline bool wait_in_cgroup(const struct task_struct___wait *t)
{
	const struct cgroup *cgroup = t->cgroups->dfl_cgrp;
	const struct cgroup_subsys_state *at;
	__u64 id = cgroup->kn->id;

	if (filter_cgroup_ids && !bpf_map_lookup_elem(&cgroup_ids, &id))
		return false;
	if (!filter_cgroup)
		return true;
	at = &cgroup->self;
	for (int i = 0; i < WAIT_CGROUP_LEVELS && at; i++) {
		if (at->cgroup->kn->id == filter_cgroup_id)
			return true;
		at = at->parent;
	}
	return false;
}

/* The same as passes_filters() asks of the current one. */
static __always_inline bool
wait_passes_filters(const struct task_struct___wait *t)
{
	__u32 id = filter_tids ? t->pid : t->tgid;

	if (filter_pids || filter_tids) {
		if (!bpf_map_lookup_elem(&selected_ids, &id))
			return false;
	}
	if ((filter_cgroup || filter_cgroup_ids) && !wait_in_cgroup(t))
		return false;
	return !filter_mntns || in_selected_mntns((void *)t);
}

/* Sends the sums of a thread that ran for the last time. */
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
	    .last = WAIT_THREAD_ENDED,
	};
	struct wait_cpu *cpu;

	if (!wait_tells_threads || !wait_from || !wait_passes_filters(t))
		return;
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	if (!bpf_ringbuf_output(&ring, &record, sizeof(record),
				BPF_RB_NO_WAKEUP))
		return;
	cpu = wait_this_cpu();
	if (cpu)
		cpu->stats.ends_full++;
}

/*
 * The scheduler's clock as of this switch, which it reads once for all of it;
 * 0: the kernel does not tell.
 */
static __always_inline __u64 wait_clock(const struct task_struct___wait *t)
{
	if (!bpf_core_field_exists(t->se.cfs_rq))
		return 0;
	return t->se.cfs_rq->rq->clock;
}

static __always_inline __u32 wait_state(const struct task_struct___wait *t)
{
	const struct task_struct___before_5_14 *old = (void *)t;

	return bpf_core_field_exists(t->__state) ? t->__state : old->state;
}

/*
 * The state in which the thread stops. Before 5.18 the scheduler does not say
 * by which one it decided.
 */
static __always_inline __u32 wait_stop_state(const struct task_struct___wait *t,
					     const __u64 *ctx)
{
	__u32 state;

	if (wait_has_prev_state)
		return ctx[3];
	state = wait_state(t);
	/* It is in no queue: a waker was so quick. */
	return state || t->on_rq ? state : TASK_STATE_WAKING;
}

/*
 * Whether a thread that stops though it could run does so because its cgroup,
 * or one above, has used up its CPU time. It is known only now.
 */
static __always_inline bool
wait_is_throttled(const struct task_struct___wait *t)
{
	const struct task_struct___throttled *one = (void *)t;

	if (bpf_core_field_exists(one->throttled))
		return one->throttled;
	return bpf_core_field_exists(t->se.cfs_rq->throttle_count) &&
	       t->se.cfs_rq->throttle_count;
}

static __always_inline void wait_stops(const struct task_struct___wait *t,
				       __u64 now, __u32 state, bool preempted)
{
	struct wait_slot *slot = wait_find(t->pid);
	struct wait_points points;

	if (state & TASK_STATE_DEAD) {
		if (slot)
			slot->tid = 0;
		wait_send_end(t);
		return;
	}
	if (!slot) {
		slot = wait_claim(t->pid);
		if (!slot)
			return;
		points = wait_points_of(t->pid, now);
		slot->next_point = wait_next_point(&points, now);
	}
	wait_set_slot(slot, t, now);
	slot->state = preempted ? WAIT_STATE_PREEMPTED : state;
	if ((preempted || !state) && wait_is_throttled(t))
		slot->state = WAIT_STATE_PREEMPTED | WAIT_STATE_QUOTA;
}

/*
 * Asks for an interrupt on this CPU, which comes when the switch is done: from
 * there the kernel wakes those who wait for a record. False: there is no room
 * for a record.
 */
static __always_inline bool wait_raise(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	void *bell = bpf_map_lookup_elem(&wait_bells, &cpu);

	return bell &&
	       bpf_ringbuf_output(bell, &cpu, 0, BPF_RB_FORCE_WAKEUP) == 0;
}

/* Leaves the mark of a wait that ends now. */
static __always_inline void wait_mark(const struct task_struct___wait *t,
				      const struct wait *w, __u64 now)
{
	struct wait_cpu *cpu;
	__u64 stands_for;

	if (!wait_passes_filters(t))
		return;
	stands_for =
	    wait_stands_for(w->points[0] + w->points[1], wait_seed_of(t->pid),
			    wait_switches(t), now);
	cpu = wait_this_cpu();
	if (!stands_for || !cpu)
		return;
	/* Nobody came for the one before. */
	if (cpu->mark.tid)
		cpu->stats.untaken++;
	cpu->mark.tid = t->pid;
	cpu->mark.state = w->state;
	cpu->mark.flags = w->flags;
	cpu->mark.switches = wait_switches(t);
	cpu->mark.stands_for = stands_for;
	if (wants_wakers)
		cpu->mark.waker = w->waker;
	cpu->mark.points[0] = w->points[0];
	cpu->mark.points[1] = w->points[1];
	if (wait_by_interrupt && !wait_raise()) {
		cpu->mark.tid = 0;
		cpu->stats.untaken++;
	}
}

/* One that has never run has waited since it came into the queue. */
static __always_inline void
wait_count_new(struct wait *w, const struct task_struct___wait *t, __u64 now)
{
	struct wait_span span = wait_span_until(t, now);
	struct wait_points points = wait_points_of(t->pid, now);
	__u64 begin = now - span.runnable;

	if (begin < wait_from)
		begin = wait_from;
	w->flags = WAIT_PREEMPTED | WAIT_NEW;
	w->points[0] = wait_points_in(&points, begin, wait_end(now));
}

/* False: the slot is not of this thread's last switch. */
static __always_inline bool wait_count_slot(struct wait *w,
					    const struct wait_slot *slot,
					    const struct wait_points *points,
					    const struct task_struct___wait *t,
					    __u64 now)
{
	struct wait_span span = wait_span_until(t, now);

	if (slot->switches != wait_switches(t) ||
	    slot->start_time != t->start_time)
		return false;
	w->state = slot->state;
	if (wants_wakers)
		w->waker = slot->waker;
	if (!w->state || w->state & WAIT_STATE_PREEMPTED)
		w->flags = WAIT_PREEMPTED;
	if (w->state & WAIT_STATE_QUOTA)
		w->flags |= WAIT_QUOTA;
	wait_count_points(w, slot, points, &span);
	return true;
}

static __always_inline void wait_count_known(struct wait *w,
					     struct wait_slot *slot,
					     const struct task_struct___wait *t,
					     __u64 now)
{
	struct wait_points points = wait_points_of(slot->tid, now);
	struct wait_cpu *cpu;

	slot->next_point = wait_next_point(&points, now);
	if (wait_count_slot(w, slot, &points, t, now))
		return;
	cpu = wait_this_cpu();
	if (cpu)
		cpu->stats.unseen++;
}

static __always_inline void wait_goes_on(const struct task_struct___wait *t,
					 __u64 now)
{
	struct wait_slot *slot;
	struct wait w = {};
	__u32 tid = t->pid;

	if (tid == wait_own_tid)
		wait_clock_offset = bpf_ktime_get_ns() - now;
	slot = wait_find(tid);
	if (slot && now < slot->next_point)
		return;
	if (!wait_from)
		return;
	if (slot)
		wait_count_known(&w, slot, t, now);
	else if (!wait_switches(t) && !t->se.sum_exec_runtime)
		wait_count_new(&w, t, now);
	if (w.points[0] || w.points[1])
		wait_mark(t, &w, now);
}

/*
 * The only program that runs at each switch. It is loaded by the number of that
 * tracepoint's type; see wait_programs.h.
 */
SEC("ksym_tp/sched_switch")
int wait_switch(__u64 *ctx)
{
	const struct task_struct___wait *prev = (void *)ctx[1];
	const struct task_struct___wait *next = (void *)ctx[2];
	__u64 now = wait_clock(prev);

	if (!now)
		return 0;
	if (prev->pid)
		wait_stops(prev, now, wait_stop_state(prev, ctx), ctx[0]);
	if (next->pid)
		wait_goes_on(next, now);
	return 0;
}
