/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Code that a runtime makes has no unwind table: the runtime's own step goes to
 * the caller, and notes whose code it was. A step sees the native frame in
 * struct unwind_state, which is that of st->depth - 1 by then.
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/runtime/hotspot.bpf.h"
#include "bpf/runtime/step_results.bpf.h"
#include "bpf/unwind_maps.bpf.h"

/*
 * The step of the runtime that made the code at st->ip. A global function,
 * which the verifier walks once.
 */
__noinline int runtime_step(void)
{
	struct unwind_state *st;
	__u32 place = scratch_place();
	int stepped = RUNTIME_NOT_ITS_CODE;

	st = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!st || !walks_runtimes)
		return RUNTIME_NOT_ITS_CODE;
	if (st->code_runtimes & UNWIND_CODE_HOTSPOT)
		stepped = hotspot_step();
	return stepped;
}
