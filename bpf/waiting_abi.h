/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * All that crosses the border between waiting.bpf.h and daemon/capture.
 */
#pragma once

#include "bpf/profile_abi.h"

/*
 * The frame between a thread's own and the kernel's, which says why it waited:
 * a frame of this kind whose unit is a wait_calls and whose value is a number
 * of a system call with a state and flags.
 */
#define WAIT_FRAME_KIND 0x20

/*
 * The frame that says who woke the thread: its value is the id of a waker, or 0
 * where that is not known.
 */
#define WAKER_FRAME_KIND 0x21

/* In place of an id: why there is none. */
enum waker_state {
	WAKER_UNSEEN = 0,   /* nobody was seen to wake it */
	WAKER_TOO_MANY = 1, /* the budget was used up */
	WAKER_LOST = 2,	    /* there was no room */
	WAKER_UNTOLD = 3,   /* it may have been an interrupt or not */
	WAKER_FIRST_ID = 16,
};

/* A waker of threads, once per set; its key's kind says what it is. */
struct waker_record {
	struct profile_record header;
	__u64 id;
	struct profile_key key;
};
PROFILE_ABI_ASSERT(sizeof(struct waker_record) == 72, "waker_record");

/* By which table system calls are numbered. */
enum wait_calls {
	WAIT_CALLS_NONE = 0, /* the thread has no user code */
	WAIT_CALLS_X86_64 = 1,
	WAIT_CALLS_OTHER = 2, /* one that nobody here has names for */
};

#define WAIT_FRAME_CALL(value)	((__u32)(value))
#define WAIT_FRAME_STATE(value) ((__u16)((value) >> 32))
#define WAIT_FRAME_FLAGS(value) ((__u16)((value) >> 48))

enum wait_flags {
	WAIT_RUNNABLE = 1,
	WAIT_PREEMPTED = 2,  /* it did not want to wait */
	WAIT_NEW = 4,	     /* it had not run yet */
	WAIT_IO = 8,	     /* the kernel counts it as waiting for a disk */
	WAIT_QUOTA = 0x10,   /* its cgroup had used up its CPU time */
	WAIT_UNSEEN = 0x100, /* nobody saw how it came to want a CPU */
};

/* Not in a system call. */
#define WAIT_NO_CALL 0xffffffffu

/* Why these are the last ones; 0: they are not. */
enum wait_thread_last {
	WAIT_THREAD_ENDED = 1,
	WAIT_SAMPLING_ENDED = 2, /* what it did then may be in another one */
};

/* The kernel's own sums for a thread since it began. */
struct wait_thread_record {
	struct profile_record header;
	__u64 start_ns; /* CLOCK_MONOTONIC, when it began */
	__u64 now_ns;	/* CLOCK_MONOTONIC, when this was read */
	__u64 running_ns;
	__u64 runnable_ns;
	__u32 tgid;
	__u32 tid;
	__u32 last; /* wait_thread_last */
	__u32 runs; /* by a walk: how often it had run, the low 32 bits */
	char comm[PROFILE_COMM_BYTES];
};
PROFILE_ABI_ASSERT(sizeof(struct wait_thread_record) == 72,
		   "wait_thread_record");

/*
 * Tells whether a thread sleeps on since its stack was taken. User space writes
 * it down under the thread's id.
 */
struct wait_known {
	__u64 switches;	  /* from a CPU */
	__u64 start_time; /* the kernel's own */
};

/*
 * A thread that a walk found asleep, when an interval ends: one that is known,
 * or behind its PROFILE_RECORD_COPY one that may be written down.
 */
struct wait_asleep_record {
	struct profile_record header;
	__u32 tid;
	__u32 is_new;	/* its samples are the copy's */
	__u64 value_ns; /* for which it was blocked since the last walk */
	__u64 cgroup;	/* as in profile_process_record */
	__u64 time_ns;	/* CLOCK_MONOTONIC, of the walk */
	struct wait_known known;
};
PROFILE_ABI_ASSERT(sizeof(struct wait_asleep_record) == 56,
		   "wait_asleep_record");

/* In place of the CPU's number in that of a copy by a walk over threads. */
#define WAIT_COPY_PLACE 0xffff

struct wait_count {
	__u64 count;
	__u64 value_ns;
};

/* One per CPU; nothing of it is a loss of samples. */
struct wait_stats {
	__u64 thinned;	 /* stacks that others stand for, by the budget */
	__u64 unseen;	 /* waits whose begin or end was not seen */
	__u64 crowded;	 /* waits of threads that lost their slot to another */
	__u64 untaken;	 /* waits whose threads went on without a sample */
	__u64 ends_full; /* threads that ended and are in no total */
	/* Sampled waits without a waker, by waker_state. */
	__u64 wakers_unseen;
	__u64 wakers_too_many;
	__u64 wakers_lost;
	__u64 wakers_untold;
};
PROFILE_ABI_ASSERT(sizeof(struct wait_stats) == 72, "wait_stats");

/* A wait that has just ended, of the thread that the CPU goes on with. */
struct wait_mark {
	__u32 tid; /* 0: there is none */
	__u32 state;
	__u64 switches; /* of the thread from a CPU, up to now */
	__u64 points[PROFILE_WAIT_KINDS];
	__u64 stands_for; /* so many points */
	__u64 waker;	  /* as in its slot */
	__u32 flags;
	__u32 reserved;
};

/* The state of a CPU. */
struct wait_cpu {
	struct wait_mark mark;
	struct wait_stats stats;
	/* The budget's window of time. */
	__u64 window_ns; /* when it began, by the scheduler's clock */
	__u32 asked;	 /* for stacks in this window */
	__u32 kept;
	__u32 shift; /* one of 2^shift is kept */
	/* The same of wakers. */
	__u32 wakers;
	__u64 wakers_window_ns;
};

/* Walks over threads when intervals end. */
struct wait_walk_stats {
	__u64 walks;
	__u64 skipped; /* walks that would have cost too much */
	__u64 walk_ns; /* CPU time of them */
	__u64 put_off; /* stacks that a later walk, or their thread, tells */
};

/* Their sum, when a walk or sampling has ended; made in user space. */
struct wait_stats_record {
	struct profile_record header;
	struct wait_stats stats;
	struct wait_walk_stats walks;
};
