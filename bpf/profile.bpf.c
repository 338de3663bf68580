// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The sampler. One program runs on each overflow of a perf event:
 *
 *   filters -> stack ids -> counts[set]{key} += 1
 *                 |
 *                 `-> frames of a stack not yet seen in this set -> ring
 *
 * sample_exact names a stack by a 64-bit hash of its frames and sends the
 * frames once; sample_stackid leaves both to BPF_MAP_TYPE_STACK_TRACE. User
 * space flips `active_set`, waits until no program can still be in the old
 * set, and drains it. No record wakes the reader (a wakeup costs more than the
 * sample): user space looks on a timer.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/profile_filters.bpf.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/stack_copy.bpf.h"
#include "bpf/stacks.bpf.h"
#include "bpf/unwind.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline __u64 start_time(struct task_struct *task)
{
	struct task_struct *leader = NULL;
	__u64 ns = 0;

	bpf_core_read(&leader, sizeof(leader), &task->group_leader);
	if (bpf_core_field_exists(task->start_boottime)) {
		bpf_core_read(&ns, sizeof(ns), &leader->start_boottime);
	} else {
		struct task_struct___before_5_5 *old = (void *)leader;

		bpf_core_read(&ns, sizeof(ns), &old->real_start_time);
	}
	return ns;
}

/* Fills everything but the stacks; false: the sample is not wanted. */
static __always_inline bool begin_sample(struct sample *s)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	s->task = task;
	s->is_walked = false;
	if (!passes_filters(task, pid_tgid))
		return false;
	s->set = active_set & 1;
	s->stats = bpf_map_lookup_elem(&stats, &s->set);
	if (!s->stats)
		return false;
	s->stats->taken++;

	__builtin_memset(&s->key, 0, sizeof(s->key));
	s->key.tgid = pid_tgid >> 32;
	if (per_thread)
		s->key.tid = (__u32)pid_tgid;
	if ((__u32)pid_tgid == 0) {
		/* The kernel says swapper/CPU; the idle task is one thing. */
		__builtin_memcpy(s->key.comm, "swapper", sizeof("swapper"));
		return true;
	}
	bpf_get_current_comm(s->key.comm, sizeof(s->key.comm));
	s->key.start_ns = start_time(task);
	bpf_core_read(&s->key.exec_count, sizeof(s->key.exec_count),
		      &task->self_exec_id);
	return true;
}

static __always_inline void send_process_hint(struct sample *s)
{
	struct profile_process_record hint = {
	    .header = {.type = PROFILE_RECORD_PROCESS, .set = s->set},
	    .time_ns = bpf_ktime_get_ns(),
	    .start_ns = s->key.start_ns,
	    .cgroup = want_cgroup ? bpf_get_current_cgroup_id() : 0,
	    .tgid = s->key.tgid,
	    .exec_count = s->key.exec_count,
	};

	if (bpf_ringbuf_output(&ring, &hint, sizeof(hint), BPF_RB_NO_WAKEUP))
		s->stats->hints_dropped++;
}

/* True when the key is new in this set. */
static __always_inline bool count_in(void *counts, struct sample *s)
{
	__u64 one = 1;
	__u64 *count = bpf_map_lookup_elem(counts, &s->key);

	if (count) {
		__sync_fetch_and_add(count, 1);
		return false;
	}
	if (bpf_map_update_elem(counts, &s->key, &one, BPF_NOEXIST) == 0)
		return true;
	/* Another CPU was first, or the map is full. */
	count = bpf_map_lookup_elem(counts, &s->key);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		s->stats->lost_counts_full++;
	return false;
}

static __always_inline bool count_sample(struct sample *s)
{
	return s->set ? count_in(&counts_1, s) : count_in(&counts_0, s);
}

/*
 * Sends the frames of a scratch record, whose stack has that id, unless they
 * were sent in this set. 0: there was no room in the ring, so the sample is
 * lost. A global function, which the verifier walks once and not at each call
 * on each path.
 */
__noinline int send_stack(__u32 set, __u32 which, __u64 id)
{
	struct profile_stack_record *record;
	struct profile_stats *counters;
	__u8 present = 1;
	__u32 depth;

	if (id < PROFILE_STACK_FIRST_ID)
		return 1;
	if (set ? bpf_map_lookup_elem(&seen_1, &id)
		: bpf_map_lookup_elem(&seen_0, &id))
		return 1;
	record = bpf_map_lookup_elem(&scratch, &which);
	if (!record)
		return 0;
	depth = record->depth;
	if (depth > PROFILE_MAX_DEPTH)
		depth = PROFILE_MAX_DEPTH;
	if (which == SCRATCH_USER && !runtime_send(PROFILE_RECORD_RUNTIME, id))
		goto full;
	record->header.type = PROFILE_RECORD_STACK;
	record->header.set = set;
	record->id = id;
	if (bpf_ringbuf_output(&ring, record, PROFILE_STACK_RECORD_BYTES(depth),
			       BPF_RB_NO_WAKEUP))
		goto full;
	/* When this map is full the frames are merely sent again. */
	if (set)
		bpf_map_update_elem(&seen_1, &id, &present, BPF_ANY);
	else
		bpf_map_update_elem(&seen_0, &id, &present, BPF_ANY);
	return 1;
full:
	counters = bpf_map_lookup_elem(&stats, &set);
	if (counters)
		counters->lost_ring_full++;
	return 0;
}

/* A key that is in counts already proves that both its stacks were sent. */
static __always_inline void count_exact(struct sample *s)
{
	__u64 *count = s->set ? bpf_map_lookup_elem(&counts_1, &s->key)
			      : bpf_map_lookup_elem(&counts_0, &s->key);

	if (count) {
		__sync_fetch_and_add(count, 1);
		return;
	}
	if (!send_stack(s->set, SCRATCH_USER, s->key.user_stack) ||
	    !send_stack(s->set, SCRATCH_KERNEL, s->key.kernel_stack))
		return;
	if (count_sample(s))
		send_process_hint(s);
}

/* Copies the stack. True: the sample is still to be counted. */
static __always_inline bool take_later(struct bpf_perf_event_data *ctx,
				       struct sample *s)
{
	struct copy_scratch *scratch_copy;
	enum copied how = COPY_REFUSED;
	struct unwind_state *st;
	bool execs = false;
	__u32 zero = 0;

	/* The copy's sample needs them as any other does. */
	if (!send_stack(s->set, SCRATCH_KERNEL, s->key.kernel_stack))
		return false;
	st = bpf_map_lookup_elem(&unwind_scratch, &zero);
	scratch_copy = bpf_map_lookup_elem(&copy_scratch, &zero);
	if (st && scratch_copy) {
		execs = !arch_in_user_mode(ctx) && arch_in_exec(&st->regs);
		scratch_copy->head.key = s->key;
		how = send_copy(s->set, execs);
	}
	if (how == COPIED)
		return false;
	if (how == COPY_REFUSED)
		s->stats->copies_refused++;
	/* What called exec is gone, what it calls is not there yet. */
	if (how == NO_STACK && execs)
		return true;
	return take_rest(ctx, s);
}

static __always_inline int sample(struct bpf_perf_event_data *ctx,
				  enum user_walk how)
{
	enum taken user = TAKEN;
	struct sample s;

	if (!begin_sample(&s))
		return 0;
	if (want_user)
		user = take_user_stack(ctx, &s, how);
	if (user == NOT_TAKEN || !take_kernel_stack(ctx, &s))
		return 0;
	if (user == TAKEN_LATER && !take_later(ctx, &s))
		return 0;
	count_exact(&s);
	return 0;
}

SEC("perf_event")
int sample_exact(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, WALK_BY_KERNEL);
}

SEC("perf_event")
int sample_by_steps(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, WALK_BY_STEPS);
}

SEC("perf_event")
int sample_by_loop(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, WALK_BY_LOOP);
}

static __always_inline void take_stackids(struct bpf_perf_event_data *ctx,
					  void *traces, struct sample *s)
{
	long id;

	if (want_user) {
		id = bpf_get_stackid(ctx, traces, BPF_F_USER_STACK);
		if (id >= 0)
			s->key.user_stack = PROFILE_STACK_FIRST_ID + id;
		else if (id == -EEXIST)
			s->key.user_stack = PROFILE_STACK_COLLIDED;
		else
			s->key.user_stack = user_failure(s);
	}
	if (want_kernel && !arch_in_user_mode(ctx)) {
		id = bpf_get_stackid(ctx, traces, 0);
		if (id >= 0)
			s->key.kernel_stack = PROFILE_STACK_FIRST_ID + id;
		else if (id == -EEXIST)
			s->key.kernel_stack = PROFILE_STACK_COLLIDED;
		else
			s->key.kernel_stack = kernel_failure(id);
	}
}

/* Needs no ring buffer, so it runs on kernels before 5.8; sends no hints. */
SEC("perf_event")
int sample_stackid(struct bpf_perf_event_data *ctx)
{
	struct sample s;

	if (!begin_sample(&s))
		return 0;
	if (s.set)
		take_stackids(ctx, &traces_1, &s);
	else
		take_stackids(ctx, &traces_0, &s);
	count_sample(&s);
	return 0;
}

/*
 * Both are attached only where the kernel has modules. A counter and no record:
 * there is always room for it, and the stackid store has no ring.
 */
SEC("raw_tp/module_load")
int module_loaded(void *ctx __attribute__((unused)))
{
	__sync_fetch_and_add(&module_changes, 1);
	return 0;
}

SEC("raw_tp/module_free")
int module_freed(void *ctx __attribute__((unused)))
{
	__sync_fetch_and_add(&module_changes, 1);
	return 0;
}
