/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Takes the stack of whoever wakes a thread, if the wait that ends with it will
 * be a sample. It runs at sched_waking, always in the context of the waker and
 * with the lock of the sleeper held that waking it takes: nothing here may wake
 * anybody. The waker's id goes into the sleeper's slot, from where the sample
 * takes it.
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
#include "bpf/waiting_account.bpf.h"
#include "bpf/waiting_maps.bpf.h"

/*
 * From the run queue of a CPU, which is a per-CPU variable, to its
 * preempt_count, which is another one.
 */
const volatile __s64 waker_count_offset = 0;

/* Bits of preempt_count that say what the CPU is in (linux/preempt.h). */
#define WAKER_IN_SOFTIRQ   0x100
#define WAKER_IN_INTERRUPT (WAKER_IN_SOFTIRQ | 0xff0000)
/*
 * Stacks of wakers of a CPU in WAIT_BUDGET_NS. Some are of waits that have no
 * point in the end, or are thinned out where the thread goes on.
 */
#define WAKER_STACKS_AT_ONCE 400
/* Frames of an interrupt's stack; behind its own are those that it hit. */
#define WAKER_INTERRUPT_DEPTH 32
/*
 * A point that lies so shortly behind the waking is looked at, too: the thread
 * is blocked until it is in the queue, some 0.5 to 3 us later.
 */
#define WAKER_SLACK_NS 10000

/* False: that cannot be told. */
static __always_inline bool waker_is_interrupt(bool *is)
{
	struct task_struct___wait *t = (void *)bpf_get_current_task();
	__u64 rq = (__u64)BPF_CORE_READ(t, se.cfs_rq, rq);
	__u32 count = 0;

	if (!rq || bpf_probe_read_kernel(&count, sizeof(count),
					 (void *)(rq + waker_count_offset)))
		return false;
	*is = count & WAKER_IN_INTERRUPT;
	return true;
}

/*
 * Whether this CPU may take one more, for a wait of so many points; counts it.
 * Stacks of waits that will be thinned out would use the budget up and leave
 * none for those that are kept. The thread may go on where fewer are thinned
 * out: a CPU does not know how many another one does.
 */
static __always_inline bool waker_is_in_budget(const struct wait_slot *slot,
					       __u64 points, __u64 now)
{
	struct wait_cpu *cpu = wait_this_cpu();

	if (!cpu)
		return false;
	if (cpu->shift && !wait_is_kept(wait_seed_of(slot->tid), slot->switches,
					points, cpu->shift - 1))
		return false;
	if (now - cpu->wakers_window_ns >= WAIT_BUDGET_NS) {
		cpu->wakers_window_ns = now;
		cpu->wakers = 0;
	}
	return cpu->wakers++ < WAKER_STACKS_AT_ONCE;
}

/* The id of the waker that the key describes. */
static __always_inline __u64 waker_id(const struct profile_key *key, __u64 more)
{
	const __u64 *words = (const __u64 *)key;
	__u64 hash = hash_multiplier ^ more;

	for (__u32 i = 0; i < sizeof(*key) / sizeof(*words); i++)
		hash = (hash ^ words[i]) * hash_multiplier;
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ull;
	hash ^= hash >> 32;
	return hash < WAKER_FIRST_ID ? hash + WAKER_FIRST_ID : hash;
}

/* Sends what the id stands for, once per set. */
static __always_inline __u64 waker_send(struct sample *s)
{
	struct waker_record *record;
	__u64 id = waker_id(&s->key, 0);
	__u8 present = 1;

	if (s->set ? bpf_map_lookup_elem(&seen_1, &id)
		   : bpf_map_lookup_elem(&seen_0, &id))
		return id;
	if (!send_stack(s->set, SCRATCH_USER, s->key.user_stack) ||
	    !send_stack(s->set, SCRATCH_KERNEL, s->key.kernel_stack))
		return WAKER_LOST;
	/* The program's stack has no room for it. */
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record)
		return WAKER_LOST;
	record->header.type = PROFILE_RECORD_WAKER;
	record->header.set = s->set;
	record->id = id;
	record->key = s->key;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	if (s->set)
		bpf_map_update_elem(&seen_1, &id, &present, BPF_ANY);
	else
		bpf_map_update_elem(&seen_0, &id, &present, BPF_ANY);
	if (s->key.kind == PROFILE_KIND_WAKER)
		send_process_hint(s);
	return id;
}

/* Only the kernel's stack says which interrupt it is. */
static __always_inline __u64 waker_take_interrupt(void *ctx, struct sample *s)
{
	struct profile_stack_record *record = scratch_record(SCRATCH_KERNEL);
	long n;

	if (!record)
		return WAKER_LOST;
	__builtin_memset(&s->key, 0, sizeof(s->key));
	s->key.kind = PROFILE_KIND_INTERRUPT;
	if (want_kernel) {
		n = bpf_get_stack(ctx, record->frames,
				  WAKER_INTERRUPT_DEPTH * sizeof(__u64), 0);
		s->key.kernel_stack =
		    n > 0 ? name_kernel_walk(SCRATCH_KERNEL, record, n,
					     UNWIND_END_FRAME_POINTERS)
			  : kernel_failure(n);
	}
	return waker_send(s);
}

/* The stack of a process without tables is walked in user space. */
static __always_inline __u64 waker_take_later(void *ctx, struct sample *s)
{
	struct copy_scratch *scratch_copy;
	__u32 place = scratch_place();
	__u64 id = waker_id(&s->key, bpf_ktime_get_ns());

	scratch_copy = bpf_map_lookup_elem(&copy_scratch, &place);
	if (!scratch_copy ||
	    !send_stack(s->set, SCRATCH_KERNEL, s->key.kernel_stack))
		return WAKER_LOST;
	scratch_copy->head.waker = id;
	return copy_user_stack(ctx, s, NULL) ? waker_send(s) : id;
}

static __always_inline __u64 waker_take(void *ctx, enum user_walk how)
{
	enum taken user = TAKEN;
	bool is_interrupt;
	struct sample s;

	s.in_user_mode = false;
	if (!waker_is_interrupt(&is_interrupt))
		return WAKER_UNTOLD;
	if (!describe_sample(&s))
		return WAKER_LOST;
	if (is_interrupt)
		return waker_take_interrupt(ctx, &s);
	s.key.kind = PROFILE_KIND_WAKER;
	if (want_user)
		user = take_user_stack(ctx, &s, how);
	if (user == NOT_TAKEN || !take_kernel_stack(ctx, &s))
		return WAKER_LOST;
	return user == TAKEN_LATER ? waker_take_later(ctx, &s) : waker_send(&s);
}

/* How many points the wait has that the thread is in; 0: it is not wanted. */
static __always_inline __u64 waker_points(const struct wait_slot *slot,
					  const struct task_struct___wait *t,
					  __u64 now)
{
	struct wait_points points = wait_points_of(slot->tid, now);
	__u64 from = wait_from, begin = slot->began;

	if (slot->switches != wait_switches(t) || !from)
		return 0;
	if (begin < from)
		begin = from;
	return wait_passes_filters(t) ? wait_points_in(&points, begin, now) : 0;
}

static __always_inline int waker_wakes(__u64 *ctx, enum user_walk how)
{
	const struct task_struct___wait *t = (void *)ctx[0];
	struct wait_slot *slot = wait_find(t->pid);
	__u32 interrupted;
	__u64 now, points;

	if (!slot)
		return 0;
	now = bpf_ktime_get_ns() - wait_clock_offset + WAKER_SLACK_NS;
	if (now < slot->next_point)
		return 0;
	points = waker_points(slot, t, now);
	if (!points)
		return 0;
	if (!waker_is_in_budget(slot, points, now)) {
		slot->waker = WAKER_TOO_MANY;
		return 0;
	}
	interrupted = enter_scratch(SCRATCH_WAKER);
	slot->waker = waker_take(ctx, how);
	enter_scratch(interrupted);
	return 0;
}

/* Loaded by the number of that tracepoint's type; see wait_programs.h. */
SEC("ksym_tp/sched_waking")
int waker_by_kernel(__u64 *ctx)
{
	return waker_wakes(ctx, WALK_BY_KERNEL);
}

SEC("ksym_tp/sched_waking")
int waker_by_steps(__u64 *ctx)
{
	return waker_wakes(ctx, WALK_BY_STEPS);
}

SEC("ksym_tp/sched_waking")
int waker_by_loop(__u64 *ctx)
{
	return waker_wakes(ctx, WALK_BY_LOOP);
}
