/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The step through code that HotSpot makes. It keeps no frame pointers, but
 * each piece of code, a blob, says how large its frame is, and a map of bytes
 * leads from an address to its blob. All is read from the process: what does
 * not hold up ends the walk.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "bpf/arch/arch_hotspot.bpf.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/hotspot_abi.h"
#include "bpf/runtime/step_results.bpf.h"
#include "bpf/unwind_maps.bpf.h"
#include "bpf/unwind_memory.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct unwind_process);
	__type(value, struct hotspot_process);
} hotspot_processes SEC(".maps");

#define HOTSPOT_CODE_BEFORE 8
struct hotspot_state {
	__u64 pc;
	__u64 blob;
	__u64 code_begin;
	__u32 segment_shift;
	__u32 frame_bytes;
	__u32 frame_complete;
	__u32 reserved;
	__u64 segments;
	__u64 heap;
	__u64 name; /* the first 8 bytes of what the blob is called */
	__u64 head[HOTSPOT_BLOB_BYTES / 8];
	__u8 code[24]; /* HOTSPOT_CODE_BEFORE in front of pc, and behind */
	struct hotspot_process layout;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hotspot_state);
} hotspot_scratch SEC(".maps");

/* Hops in the map of segments; each leads over 254 of them, unless blocks were
 * put together. */
#define HOTSPOT_HOPS 16
#define HOTSPOT_FREE 0xff
/* Arguments that a caller's frame was made larger by: 255 words, and room. */
#define HOTSPOT_ARGUMENT_BYTES 4096

/* Names of blobs, as numbers. */
#define HOTSPOT_NAME(a, b, c, d, e, f, g, h)                                   \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 |  \
	 (__u64)(e) << 32 | (__u64)(f) << 40 | (__u64)(g) << 48 |              \
	 (__u64)(h) << 56)
#define HOTSPOT_NMETHOD	    HOTSPOT_NAME('n', 'm', 'e', 't', 'h', 'o', 'd', 0)
#define HOTSPOT_NATIVE	    HOTSPOT_NAME('n', 'a', 't', 'i', 'v', 'e', ' ', 'n')
#define HOTSPOT_INTERPRETER HOTSPOT_NAME('I', 'n', 't', 'e', 'r', 'p', 'r', 'e')
#define HOTSPOT_VTABLE	    HOTSPOT_NAME('v', 't', 'a', 'b', 'l', 'e', ' ', 'c')

static __always_inline struct hotspot_state *hotspot_state(void)
{
	__u32 place = scratch_place();

	return bpf_map_lookup_elem(&hotspot_scratch, &place);
}

static __always_inline __u64 hotspot_word(const struct hotspot_state *st,
					  __u32 offset)
{
	__u32 at = offset / 8;

	if (at >= HOTSPOT_BLOB_BYTES / 8)
		return 0;
	return st->head[at];
}

static __always_inline __u32 hotspot_half(const struct hotspot_state *st,
					  __u32 offset)
{
	return hotspot_word(st, offset) >> (offset & 4) * 8;
}

/* Finds the heap of st->pc; false: it is in none. */
static __always_inline bool hotspot_find_heap(struct hotspot_state *st)
{
	for (int i = 0; i < HOTSPOT_HEAPS; i++) {
		const struct hotspot_heap *heap = &st->layout.heaps[i];

		if (st->pc - heap->begin >= heap->bytes)
			continue;
		st->heap = heap->begin;
		st->segments = heap->segments;
		return true;
	}
	return false;
}

/*
 * The address of the blob whose code is at the state's pc; 0: there is none. A
 * global function, which the verifier walks once.
 */
__noinline __u64 hotspot_find_blob(void)
{
	struct hotspot_state *st = hotspot_state();
	__u64 segment;
	__u8 back = 0;

	if (!st)
		return 0;
	segment = (st->pc - st->heap) >> (st->layout.segment_shift & 31);
	for (int i = 0; i < HOTSPOT_HOPS; i++) {
		if (bpf_probe_read_user(&back, sizeof(back),
					(void *)(st->segments + segment)) ||
		    back == HOTSPOT_FREE || back > segment)
			return 0;
		if (!back)
			return st->heap +
			       (segment << (st->layout.segment_shift & 31)) +
			       st->layout.block_bytes;
		segment -= back;
	}
	return 0;
}

/* Reads the blob of st->pc; false: it cannot be one. A global function. */
__noinline int hotspot_read_blob(void)
{
	struct hotspot_state *st = hotspot_state();
	__u64 end;
	__u64 name;

	if (!st)
		return 0;
	st->blob = hotspot_find_blob();
	if (!st->blob ||
	    bpf_probe_read_user(st->head, sizeof(st->head), (void *)st->blob))
		return 0;
	name = hotspot_word(st, st->layout.blob_name);
	if (bpf_probe_read_user(&st->name, sizeof(st->name), (void *)name))
		return 0;
	if (st->layout.flags & HOTSPOT_CODE_IS_OFFSET) {
		st->code_begin =
		    st->blob + hotspot_half(st, st->layout.blob_code_begin);
		end = st->blob + hotspot_half(st, st->layout.blob_code_end);
	} else {
		st->code_begin = hotspot_word(st, st->layout.blob_code_begin);
		end = hotspot_word(st, st->layout.blob_code_end);
	}
	st->frame_complete = hotspot_half(st, st->layout.blob_frame_complete);
	if (st->layout.flags & HOTSPOT_COMPLETE_IS_SHORT)
		st->frame_complete =
		    (__s16)(hotspot_word(st, st->layout.blob_frame_complete) >>
			    (st->layout.blob_frame_complete & 6) * 8);
	st->frame_bytes = hotspot_half(st, st->layout.blob_frame_size) * 8;
	return st->pc - st->code_begin < end - st->code_begin &&
	       end - st->code_begin < 1ull << 32;
}

/*
 * To the caller, whose address is in the word below `cfa`, with the frame
 * pointer that is at `fp_at`; 0: it is as it was.
 */
static __always_inline int hotspot_leave(struct unwind_state *native, __u64 cfa,
					 __u64 fp_at)
{
	__u64 fp = native->fp, ip;

	native->end = UNWIND_END_BAD_READ;
	if (!unwind_read(native, cfa - 8, &ip))
		return RUNTIME_STEP_ENDS;
	if (fp_at && !unwind_read(native, fp_at, &fp))
		return RUNTIME_STEP_ENDS;
	native->fp = fp;
	if (fp_at)
		native->fp_lost = 0;
	native->ip = ip;
	native->sp = cfa;
	native->back = 1;
	native->extra_lost = 1;
	return RUNTIME_STEPPED;
}

/* The code at the pc, of which HOTSPOT_CODE_BEFORE bytes are in front. */
#define HOTSPOT_CODE(st) ((st)->code + HOTSPOT_CODE_BEFORE)

/*
 * How many bytes of the frame are left where the CPU is in compiled code; its
 * frame pointer is saved while there are 16 or more.
 */
static __always_inline __u32 hotspot_frame_at(const struct hotspot_state *st)
{
	if (arch_hotspot_pops_fp(HOTSPOT_CODE(st)))
		return 16;
	if (arch_hotspot_popped_fp(HOTSPOT_CODE(st)))
		return 8;
	if (st->pc - st->code_begin >= st->frame_complete)
		return st->frame_bytes;
	return arch_hotspot_pushed_fp(HOTSPOT_CODE(st)) ? 16 : 8;
}

/* The frame is there, and its pointer not yet. */
static __always_inline bool hotspot_saves_fp(const struct hotspot_state *st)
{
	return arch_hotspot_saves_fp(HOTSPOT_CODE(st)) &&
	       st->pc - st->code_begin < st->frame_complete;
}

static __always_inline int hotspot_leave_frame(struct hotspot_state *st,
					       struct unwind_state *native)
{
	__u32 bytes = st->frame_bytes;

	if (!native->back) {
		if (hotspot_saves_fp(st))
			return hotspot_leave(native, native->sp + bytes, 0);
		bytes = hotspot_frame_at(st);
	}
	if (bytes < 8 || bytes > UNWIND_MAX_FRAME_BYTES) {
		native->end = UNWIND_END_UNSUPPORTED;
		return RUNTIME_STEP_ENDS;
	}
	return hotspot_leave(native, native->sp + bytes,
			     bytes >= 16 ? native->sp + bytes - 16 : 0);
}

/* The nmethod's word, or half of one, at that offset is st->pc + 1. */
static __always_inline bool hotspot_returns_to(const struct hotspot_state *st,
					       __u16 offset)
{
	__u64 at = hotspot_word(st, offset);

	if (!offset)
		return false;
	if (st->layout.flags & HOTSPOT_DEOPT_IS_OFFSET)
		at = st->blob + hotspot_half(st, offset);
	return at == st->pc + 1;
}

/*
 * A frame that was deoptimized returns elsewhere: where it would have returned
 * to is in it. Moves st->pc there, if it is that.
 */
static __always_inline void hotspot_undo_deopt(struct hotspot_state *st,
					       struct unwind_state *native)
{
	__u64 original;
	__u32 offset = hotspot_half(st, st->layout.nmethod_original_pc);

	if (!native->back || offset >= UNWIND_MAX_FRAME_BYTES ||
	    (!hotspot_returns_to(st, st->layout.nmethod_deopt) &&
	     !hotspot_returns_to(st, st->layout.nmethod_deopt_mh)) ||
	    !unwind_read(native, native->sp + offset, &original))
		return;
	/* Within the code, which st->pc is. */
	if (original - st->code_begin <= st->pc - st->code_begin)
		st->pc = original - 1;
}

/* A global function, which the verifier walks once. */
__noinline int hotspot_leave_compiled(void)
{
	struct hotspot_state *st = hotspot_state();
	struct unwind_state *native;
	__u32 place = scratch_place();
	__u64 id;

	native = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!st || !native)
		return RUNTIME_STEP_ENDS;
	hotspot_undo_deopt(st, native);
	id = hotspot_half(st, st->layout.nmethod_compile_id);
	runtime_note_code(HOTSPOT_FRAME_COMPILED,
			  st->blob | id << HOTSPOT_TAG_SHIFT,
			  st->pc - st->code_begin);
	return hotspot_leave_frame(st, native);
}

/* Where the interpreter's frame has what, below its frame pointer. */
#define HOTSPOT_SENDER_SP 8
#define HOTSPOT_METHOD	  24

/* Frames that the frame pointer leads through; false: it cannot be one. */
static __always_inline bool hotspot_has_fp(struct unwind_state *native)
{
	if (!native->fp_lost && native->fp >= native->sp && !(native->fp & 7) &&
	    native->fp - native->sp <= UNWIND_MAX_FRAME_BYTES)
		return true;
	native->end = UNWIND_END_NO_TABLE;
	return false;
}

/* Notes the method that is interpreted; false: the frame has none. */
static __always_inline bool
hotspot_note_interpreted(struct hotspot_state *st, struct unwind_state *native)
{
	__u64 method, bcp, code = 0, bytecodes, index;
	__u16 size = 0;

	if (!unwind_read(native, native->fp - HOTSPOT_METHOD, &method) ||
	    !unwind_read(native, native->fp - st->layout.interpreter_bcp,
			 &bcp) ||
	    bpf_probe_read_user(
		&code, sizeof(code),
		(void *)(method + st->layout.method_const_method)) ||
	    bpf_probe_read_user(
		&size, sizeof(size),
		(void *)(code + st->layout.const_method_code_size)))
		return false;
	bytecodes = code + st->layout.const_method_bytes;
	/* In the innermost frame a register has it, if it is in use now. */
	if (!native->back &&
	    native->leaf[ARCH_HOTSPOT_BYTECODE] - bytecodes < size)
		bcp = native->leaf[ARCH_HOTSPOT_BYTECODE];
	index = bcp - bytecodes;
	/* A native method has none: 0 stands there, or where they would be. */
	if (bcp && index >= size && (index | size))
		return false;
	runtime_note_code(HOTSPOT_FRAME_INTERPRETED,
			  (method & ((1ull << HOTSPOT_TAG_SHIFT) - 1)) |
			      (code >> 3) << HOTSPOT_TAG_SHIFT,
			  bcp ? index : 0);
	return true;
}

/* A global function, which the verifier walks once. */
__noinline int hotspot_leave_interpreter(void)
{
	struct hotspot_state *st = hotspot_state();
	struct unwind_state *native;
	__u64 fp, sender;
	__u32 place = scratch_place();

	native = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!st || !native || !hotspot_has_fp(native))
		return RUNTIME_STEP_ENDS;
	fp = native->fp;
	if (!hotspot_note_interpreted(st, native)) {
		native->end = UNWIND_END_NO_TABLE;
		return RUNTIME_STEP_ENDS;
	}
	native->end = UNWIND_END_BAD_READ;
	if (!unwind_read(native, fp - HOTSPOT_SENDER_SP, &sender))
		return RUNTIME_STEP_ENDS;
	if (hotspot_leave(native, fp + 16, fp) != RUNTIME_STEPPED)
		return RUNTIME_STEP_ENDS;
	/* A compiled caller's frame ends where it was before the arguments. */
	if (sender - native->sp <= HOTSPOT_ARGUMENT_BYTES && !(sender & 7))
		native->sp = sender;
	return RUNTIME_STEPPED;
}

/* Stubs without a size of their frame. A global function. */
__noinline int hotspot_leave_stub(void)
{
	struct hotspot_state *st = hotspot_state();
	struct unwind_state *native;
	__u32 place = scratch_place();

	native = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!st || !native)
		return RUNTIME_STEP_ENDS;
	if (!native->back) {
		/* Nothing is in front of the address. */
		if (arch_hotspot_is_outside(HOTSPOT_CODE(st)))
			return hotspot_leave(native, native->sp + 8, 0);
		if (arch_hotspot_sets_fp(HOTSPOT_CODE(st)))
			return hotspot_leave(native, native->sp + 16,
					     native->sp);
	}
	if (!hotspot_has_fp(native))
		return RUNTIME_STEP_ENDS;
	return hotspot_leave(native, native->fp + 16, native->fp);
}

/*
 * The step of a process that maps a JVM. A global function, which the verifier
 * walks once.
 */
__noinline int hotspot_step(void)
{
	struct hotspot_state *st = hotspot_state();
	const struct hotspot_process *process;
	struct unwind_process who;
	struct unwind_state *native;
	__u32 place = scratch_place();
	__u32 frame_size;

	native = bpf_map_lookup_elem(&unwind_scratch, &place);
	if (!st || !native)
		return RUNTIME_NOT_ITS_CODE;
	who = native->who;
	process = bpf_map_lookup_elem(&hotspot_processes, &who);
	if (!process)
		return RUNTIME_NOT_ITS_CODE;
	if (process->flags & HOTSPOT_IS_STARTING) {
		/* User space may know it by the time that it walks a copy. */
		native->end = UNWIND_END_NOT_YET;
		return RUNTIME_STEP_ENDS;
	}
	st->layout = *process;
	st->pc = native->ip - native->back;
	if (!hotspot_find_heap(st))
		return RUNTIME_NOT_ITS_CODE;
	native->end = UNWIND_END_NO_TABLE;
	if (!hotspot_read_blob())
		return RUNTIME_STEP_ENDS;
	if (!native->back &&
	    bpf_probe_read_user(st->code, sizeof(st->code),
				(void *)(st->pc - HOTSPOT_CODE_BEFORE)))
		return RUNTIME_STEP_ENDS;
	if (st->name == HOTSPOT_NMETHOD || st->name == HOTSPOT_NATIVE)
		return hotspot_leave_compiled();
	if (st->name == HOTSPOT_INTERPRETER)
		return hotspot_leave_interpreter();
	runtime_note_code(HOTSPOT_FRAME_STUB, st->blob, 0);
	if (st->name == HOTSPOT_VTABLE)
		return hotspot_leave(native, native->sp + 8, 0);
	frame_size = st->frame_bytes;
	if (frame_size >= 16 && frame_size < UNWIND_MAX_FRAME_BYTES)
		return hotspot_leave_frame(st, native);
	return hotspot_leave_stub();
}
