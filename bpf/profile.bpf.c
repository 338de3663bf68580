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

#include "bpf/dump.bpf.h"
#include "bpf/profile_abi.h"
#include "bpf/profile_filters.bpf.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/sample.bpf.h"
#include "bpf/stacks.bpf.h"
#include "bpf/waiting.bpf.h"
#include "bpf/waiting_threads.bpf.h"
#include "bpf/wakers.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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

/* False: the sample is not wanted. */
static __always_inline bool begin_cpu_sample(struct sample *s)
{
	if (!begin_sample(s))
		return false;
	if (wants_slices)
		s->key.slice =
		    (bpf_ktime_get_ns() + slice_phase_ns) / PROFILE_SLICE_NS;
	s->stats->taken++;
	return true;
}

static __always_inline void take_sample(struct bpf_perf_event_data *ctx,
					enum user_walk how)
{
	enum taken user = TAKEN;
	struct sample s;

	s.in_user_mode = arch_in_user_mode(ctx);
	if (!begin_cpu_sample(&s))
		return;
	if (want_user)
		user = take_user_stack(ctx, &s, how);
	if (user == NOT_TAKEN || !take_kernel_stack(ctx, &s))
		return;
	s.has_no_list = user == TAKEN_LATER;
	if (s.has_no_list && !take_later(ctx, &s, NULL))
		return;
	count_exact(&s);
}

static __always_inline int sample(struct bpf_perf_event_data *ctx,
				  enum user_walk how)
{
	__u32 interrupted = enter_scratch(SCRATCH_CPU);

	take_sample(ctx, how);
	enter_scratch(interrupted);
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

	if (!begin_cpu_sample(&s))
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
