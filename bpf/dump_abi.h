/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* All that crosses the border between dump.bpf.h and daemon/capture. */
#pragma once

#include "bpf/profile_abi.h"
#include "bpf/waiting_abi.h"

/* So many words of a lock are read: pthread_mutex_t has its kind at 16. */
#define DUMP_LOCK_WORDS	    6
#define DUMP_CALL_ARGUMENTS 3

enum dump_flags {
	DUMP_RUNNING = 1, /* on a CPU, so its stack cannot be read */
	DUMP_COPIED = 2,  /* a copy of its stack was sent, with the same key */
	DUMP_WAITED = 4,  /* waited_ns is known */
	DUMP_LOCK = 8,	  /* lock_words are */
	DUMP_USER = 16,	  /* it has user code */
};

/*
 * A thread as it is. Its kernel stack and the copy of its user stack are sent
 * before it.
 */
struct dump_thread_record {
	struct profile_record header;
	struct profile_key key; /* kernel_stack: 0 where it runs */
	__u64 waited_ns;	/* at the most; see dump_waited() */
	__u64 reason;		/* as the value of a WAIT_FRAME_KIND's frame */
	__u64 arguments[DUMP_CALL_ARGUMENTS]; /* of the system call */
	__u32 flags;
	__u32 calls; /* wait_calls, of `reason` */
	__u32 tid;
	__u32 own_tid; /* in the thread's own pid namespace; 0: not known */
	__u32 lock_words[DUMP_LOCK_WORDS]; /* at arguments[0] */
};
PROFILE_ABI_ASSERT(sizeof(struct dump_thread_record) == 144,
		   "dump_thread_record");
