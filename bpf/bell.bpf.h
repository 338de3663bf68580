/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Tells user space that something came which it should read soon, so that it
 * need not look often where nothing does. A bell costs an interrupt: it rings
 * once each time that it was asked for.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_maps.bpf.h"

/* What came since the load that should be read soon. Only grows. */
__u64 news = 0;
/* Set by user space, before it looks at `news` for the last time. */
__u32 bell_wanted = 0;

/*
 * The flags to send a record with, which is news or is not. Where the ring has
 * filled up to a quarter everything is.
 */
static __always_inline __u64 bell_flags(bool is_news)
{
	if (!is_news && bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) <=
			    bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 4)
		return BPF_RB_NO_WAKEUP;
	__sync_fetch_and_add(&news, 1);
	if (!bell_wanted)
		return BPF_RB_NO_WAKEUP;
	bell_wanted = 0;
	return BPF_RB_FORCE_WAKEUP;
}
