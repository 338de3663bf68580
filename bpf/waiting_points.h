/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The arithmetic of waiting_account.bpf.h, which needs no kernel: the points at
 * which a thread's time is sampled, and what its stacks stand for when there
 * are too many. Tests read it as C++.
 */
#pragma once

#include <linux/types.h>

#ifdef __cplusplus
#define WAIT_INLINE inline
#else
#define WAIT_INLINE static __attribute__((always_inline)) inline
#endif

/* Period k of a thread has one point, (k + hash(seed, k)) * period. */
struct wait_points {
	__u64 period; /* ns, from 1 to 2^32 - 1 */
	__u64 seed;   /* of the thread */
	/* The number of a period near those that are asked for. Another one
	 * gives the same answers, and costs divisions. */
	__u64 near;
};

/* A wait up to now; `running` and `runnable` are the kernel's sums then. */
struct wait_span {
	__u64 end;
	__u64 running;
	__u64 runnable;
};

/* 32 bits. */
WAIT_INLINE __u64 wait_hash(__u64 seed, __u64 k)
{
	__u64 hash = (k ^ seed) * 0x9e3779b97f4a7c15ull;

	/* Two rounds: the numbers of threads and of periods follow each other.
	 */
	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ull;
	hash ^= seed * 0xff51afd7ed558ccdull;
	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ull;
	return hash >> 32;
}

WAIT_INLINE __u64 wait_point_of(const struct wait_points *points, __u64 k)
{
	__u64 hash = wait_hash(points->seed, k);

	return k * points->period + (hash * points->period >> 32);
}

/* The number of the period that `time` is in. */
WAIT_INLINE __u64 wait_period_at(const struct wait_points *points, __u64 time)
{
	__u64 begin = points->near * points->period;

	if (time >= begin && time - begin < points->period)
		return points->near;
	if (time < begin && begin - time <= points->period)
		return points->near - 1;
	return time / points->period;
}

/* The first one that is not before `now`. */
WAIT_INLINE __u64 wait_next_point(const struct wait_points *points, __u64 now)
{
	__u64 k = wait_period_at(points, now);
	__u64 point = wait_point_of(points, k);

	return point >= now ? point : wait_point_of(points, k + 1);
}

/* How many there are from `begin` on and before `end`. */
WAIT_INLINE __u64 wait_points_in(const struct wait_points *points, __u64 begin,
				 __u64 end)
{
	__u64 first, last;

	if (begin >= end)
		return 0;
	first = wait_period_at(points, begin);
	last = wait_period_at(points, end);
	/* Those of the whole periods, and of the last and not yet the first. */
	return last - first + (wait_point_of(points, last) < end) -
	       (wait_point_of(points, first) < begin);
}

#define WAIT_MOST_SHIFT 20

/*
 * Whether a wait of so many points is kept where one of 1 << shift is, if it
 * has fewer. `switches` is the thread's number of them when it stopped, so that
 * all who ask about one wait get one answer, and what is kept with one shift is
 * kept with each smaller one.
 */
WAIT_INLINE int wait_is_kept(__u64 seed, __u64 switches, __u64 points,
			     __u32 shift)
{
	__u64 least = (__u64)1 << (shift & 31);

	return points >= least ||
	       (wait_hash(~seed, switches) & (least - 1)) < points;
}

/* One of how many stacks is kept, as a power of 2, if so many come again. */
WAIT_INLINE __u32 wait_first_shift(__u32 asked, __u32 most)
{
	__u32 shift = 0;

	for (; shift < WAIT_MOST_SHIFT && asked >> shift > most; shift++)
		;
	return shift;
}
