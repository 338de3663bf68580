/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Frames of V8's JavaScript. They are native frames that keep the frame pointer
 * (src/execution/frame-constants.h): below it is the context, or a number in
 * frames of other kinds, and the function; in interpreted ones the byte code
 * and how far it is.
 *
 * Code in the file is the interpreter and what else V8 brings along; code that
 * no file has was compiled for the function.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "bpf/arch/arch.bpf.h"
#include "bpf/bell.bpf.h"
#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/cpython_code.bpf.h"
#include "bpf/runtime/runtime_abi.h"
#include "bpf/runtime/runtime_maps.bpf.h"
#include "bpf/runtime/step_results.bpf.h"
#include "bpf/unwind_maps.bpf.h"
#include "bpf/unwind_memory.bpf.h"

#define V8_OBJECT_TAG 1ull
#define V8_TAGS	      3ull

static __always_inline bool v8_is_object(__u64 word)
{
	return (word & V8_TAGS) == V8_OBJECT_TAG;
}

/* Whether objects with that map are of the type. `known` has the last one. */
static __always_inline bool v8_has_type(__u64 map, __u16 type, __u64 *known)
{
	__u16 found = 0;

	if (map == *known)
		return true;
	if (!v8_is_object(map) ||
	    bpf_probe_read_user(&found, sizeof(found),
				(void *)(map - V8_OBJECT_TAG + V8_MAP_TYPE)) ||
	    found != type)
		return false;
	*known = map;
	return true;
}

/* The word of the SharedFunctionInfo at that offset, and 32 bits of it. */
static __always_inline __u64 v8_shared_word(const struct v8_state *v8,
					    __u32 offset)
{
	return v8->shared[offset / 8 & (V8_SHARED_WORDS - 1)];
}

static __always_inline __u32 v8_shared_half(const struct v8_state *v8,
					    __u32 offset)
{
	return v8_shared_word(v8, offset) >> 8 * (offset & 4);
}

/* Where the words of a ScopeInfo are that name its function. */
static __always_inline __u64 v8_names_in(const struct v8_state *v8,
					 const __u64 *scope)
{
	__u32 flags = scope[V8_SCOPE_FLAGS / 8] >> 32;
	__u32 variables = scope[V8_SCOPE_VARIABLES / 8] >> 32;
	__u64 at = V8_SCOPE_BEGIN;

	if (v8->layout.scope_has_positions_first) {
		flags = scope[V8_SCOPE_FLAGS / 8];
		at += V8_SCOPE_POSITIONS;
	}
	if (variables > V8_SCOPE_MAX_VARIABLES)
		return 0;
	at += 8ull * variables;
	at += 8ull * (variables < V8_SCOPE_MAX_NAMES ? variables : 1);
	if (flags & V8_SCOPE_SAVED_CLASS)
		at += 8;
	return at;
}

/*
 * The first four words of an object, or two, where a text ends with the memory:
 * what is behind them stays 0.
 */
static __always_inline bool v8_read_begin(__u64 *words, __u64 object)
{
	void *at = (void *)(object - V8_OBJECT_TAG);

	return !bpf_probe_read_user(words, 4 * sizeof(*words), at) ||
	       !bpf_probe_read_user(words, 2 * sizeof(*words), at);
}

/*
 * Writes down what names the function in the state. A global function, which
 * the verifier walks once.
 */
__noinline int v8_take_witness(void)
{
	struct v8_witness *witness;
	struct runtime_state *st;
	__u32 place = scratch_place();
	__u64 name, at;
	__u16 type = 0;

	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!st)
		return 0;
	witness = &st->v8.record.witness;
	__builtin_memset(witness, 0, sizeof(*witness));
	name = v8_shared_word(&st->v8, st->v8.layout.shared_name);
	if (!v8_is_object(name))
		return 1; /* it has none */
	if (!v8_read_begin(witness->named, name) ||
	    bpf_probe_read_user(
		&type, sizeof(type),
		(void *)(witness->named[0] - V8_OBJECT_TAG + V8_MAP_TYPE)))
		return 0;
	if (type != st->v8.layout.scope_info)
		return 1;
	at = v8_names_in(&st->v8, witness->named);
	if (!at || bpf_probe_read_user(witness->names, sizeof(witness->names),
				       (void *)(name - V8_OBJECT_TAG + at)))
		return 0;
	if (!v8_is_object(witness->names[0]))
		return 1;
	return v8_read_begin(witness->text, witness->names[0]);
}

/* Sends the code at first sight; what is not sent now may be the next time. */
static __always_inline void v8_send(struct runtime_state *st, __u64 id,
				    __u32 kind, __u64 bytecode, __u64 pc)
{
	struct profile_v8_record *record = &st->v8.record;
	__u8 present = 1;

	if (bpf_map_lookup_elem(&runtime_codes, &id) || !cpython_may_send(st) ||
	    !v8_take_witness())
		return;
	record->header.type = PROFILE_RECORD_V8;
	record->header.set = 0; /* it is of all of them */
	record->code = id;
	record->start_ns = st->who.start_ns;
	record->tgid = st->who.tgid;
	record->exec_count = st->who.exec_count;
	record->layout = st->v8.layout.layout;
	record->kind = kind;
	record->shared = st->v8.shared_at;
	record->name = v8_shared_word(&st->v8, st->v8.layout.shared_name);
	record->script = v8_shared_word(&st->v8, st->v8.layout.shared_script);
	record->literal_id =
	    v8_shared_half(&st->v8, st->v8.layout.shared_literal_id);
	record->script_id = st->v8.script_id;
	record->bytecode = bytecode;
	record->pc = pc;
	if (bpf_ringbuf_output(&ring, record, sizeof(*record),
			       bell_flags(true)))
		return;
	cpython_note_sent(st, sizeof(*record));
	bpf_map_update_elem(&runtime_codes, &id, &present, BPF_ANY);
}

/*
 * A function that was freed may have all addresses of another one; but no
 * script has another one's number.
 */
static __always_inline bool v8_read_script_id(struct v8_state *v8)
{
	__u64 script = v8_shared_word(v8, v8->layout.shared_script), id = 0;

	if (script == v8->script)
		return true;
	if (!v8_is_object(script) ||
	    bpf_probe_read_user(
		&id, sizeof(id),
		(void *)(script - V8_OBJECT_TAG + V8_SCRIPT_ID)))
		return false;
	v8->script = script;
	v8->script_id = id >> 32;
	return true;
}

/* Reads the function's SharedFunctionInfo; false: it is none. */
static __always_inline bool v8_read_shared(struct v8_state *v8, __u64 function)
{
	__u32 at = v8->layout.function_shared / 8;

	if (!v8_is_object(function) ||
	    bpf_probe_read_user(v8->function, V8_FUNCTION_BYTES,
				(void *)(function - V8_OBJECT_TAG)))
		return false;
	v8->shared_at = v8->function[at & (V8_FUNCTION_WORDS - 1)];
	if (!v8_is_object(v8->shared_at) ||
	    bpf_probe_read_user(v8->shared, V8_SHARED_BYTES,
				(void *)(v8->shared_at - V8_OBJECT_TAG)))
		return false;
	return v8_has_type(v8->shared[0], v8->layout.shared_function_info,
			   &v8->shared_map) &&
	       v8_read_script_id(v8);
}

/* A number for the function in the state; other processes' differ. */
static __always_inline __u64 v8_function_id(const struct runtime_state *st)
{
	const struct v8_process *layout = &st->v8.layout;
	__u64 hash;

	hash = cpython_hash(st->who.start_ns ^ (__u64)st->who.tgid << 32,
			    st->who.exec_count);
	hash = cpython_hash(hash, st->v8.shared_at);
	hash = cpython_hash(hash, v8_shared_word(&st->v8, layout->shared_name));
	hash =
	    cpython_hash(hash, v8_shared_word(&st->v8, layout->shared_script));
	hash = cpython_hash(hash,
			    v8_shared_half(&st->v8, layout->shared_literal_id));
	return cpython_hash(hash, st->v8.script_id);
}

static __always_inline __u64 v8_mix(__u64 hash)
{
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ull;
	return hash ^ hash >> 32;
}

static __always_inline void v8_note_interpreted(struct runtime_state *st,
						struct unwind_state *native)
{
	__u64 bytecode = 0, offset = 0, map = 0, id;

	if (!native->back && native->fp - native->sp < V8_FRAME_OFFSET)
		return;
	if (!unwind_read(native, native->fp - V8_FRAME_BYTECODE, &bytecode) ||
	    !unwind_read(native, native->fp - V8_FRAME_OFFSET, &offset))
		return;
	/* Else it is a function that V8 brings along, which is native code. */
	if (offset << 32 || !v8_is_object(bytecode) ||
	    bpf_probe_read_user(&map, sizeof(map),
				(void *)(bytecode - V8_OBJECT_TAG)) ||
	    !v8_has_type(map, st->v8.layout.bytecode_array,
			 &st->v8.bytecode_map))
		return;
	id = v8_mix(cpython_hash(v8_function_id(st), bytecode));
	runtime_note_code(V8_FRAME_KIND, id, offset >> 32);
	v8_send(st, id, V8_INTERPRETED, bytecode, 0);
}

static __always_inline void v8_note_compiled(struct runtime_state *st,
					     struct unwind_state *native)
{
	__u64 pc = native->ip - native->back, id;
	__u64 *code = st->v8.code;

	/* Code is freed and moved, too: it is told from what comes later. */
	if (bpf_probe_read_user(code, V8_CODE_SAMPLE,
				(void *)(native->ip - V8_CODE_SAMPLE)))
		code[0] = code[1] = 0;
	id = cpython_hash(v8_function_id(st), pc);
	id = cpython_hash(id, code[0]);
	id = v8_mix(cpython_hash(id, code[1]));
	runtime_note_code(V8_FRAME_KIND, id, !native->back);
	v8_send(st, id, V8_COMPILED, 0, pc);
}

/*
 * The CPU is at a function's first or last instruction: the frame pointer is
 * the caller's, or pushed and not set yet.
 */
static __always_inline bool v8_leave_leaf(struct unwind_state *native)
{
	__u64 at = native->sp, fp = native->fp, code = 0, ip;

	if (bpf_probe_read_user(&code, sizeof(code), (void *)(native->ip - 1)))
		return false;
	if (ARCH_SETS_FP(code)) {
		if (!unwind_read(native, at, &fp))
			return false;
		at += 8;
	} else if (!ARCH_PUSHES_FP(code) && !ARCH_RETURNS(code)) {
		return false;
	}
	if (!unwind_read(native, at, &ip))
		return false;
	native->ip = ip;
	native->fp = fp;
	native->sp = at + 8;
	native->back = 1;
	native->extra_lost = 1;
	native->used_frame_pointer = 1;
	return true;
}

/* Takes what is known of V8 in the process into the state; false: nothing. */
static __always_inline bool v8_begin(struct runtime_state *st,
				     const struct unwind_state *native)
{
	struct unwind_process who = native->who;
	const struct v8_process *layout;

	/* The first of its frames in this sample. */
	if (!st->noted) {
		st->v8.script = 0;
		if (!st->active)
			st->code_bytes = 0;
	}
	st->who = who;
	if (st->v8.who.tgid == who.tgid &&
	    st->v8.who.exec_count == who.exec_count &&
	    st->v8.who.start_ns == who.start_ns)
		return true;
	layout = bpf_map_lookup_elem(&runtime_v8, &who);
	if (!layout)
		return false;
	st->v8.who = who;
	st->v8.layout = *layout;
	st->v8.shared_map = 0;
	st->v8.bytecode_map = 0;
	return true;
}

/*
 * The native frame is of code without rows in a process with V8. Writes its
 * function down, if it has one, and leaves it where the frame pointer is not
 * its own. A global function, which the verifier walks once.
 */
__noinline int v8_step(void)
{
	struct unwind_state *native;
	struct runtime_state *st;
	__u32 place = scratch_place();
	__u64 context = 0, function = 0;

	native = bpf_map_lookup_elem(&unwind_scratch, &place);
	st = bpf_map_lookup_elem(&runtime_scratch, &place);
	if (!native || !st || !unwind_by_frame_pointer || !v8_begin(st, native))
		return RUNTIME_NOT_ITS_CODE;
	if (!native->back) {
		if (v8_leave_leaf(native))
			return RUNTIME_STEPPED;
		/* It has not put its function there yet. */
		if (native->fp - native->sp < V8_FRAME_FUNCTION)
			return RUNTIME_NOT_ITS_CODE;
	}
	if (native->fp_lost || native->fp & 7 || native->fp < native->sp ||
	    !unwind_read(native, native->fp - V8_FRAME_CONTEXT, &context) ||
	    !v8_is_object(context) ||
	    !unwind_read(native, native->fp - V8_FRAME_FUNCTION, &function) ||
	    !v8_read_shared(&st->v8, function))
		return RUNTIME_NOT_ITS_CODE;
	if (native->at.shard != UNWIND_NO_TABLE)
		v8_note_interpreted(st, native);
	else
		v8_note_compiled(st, native);
	return RUNTIME_NOT_ITS_CODE;
}
