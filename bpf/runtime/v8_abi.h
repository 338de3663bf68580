/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The contract between v8.bpf.h and daemon/capture.
 *
 *   runtime_v8   who -> where objects of V8's heap have what
 *
 * Frames of V8 are native frames, whose words say of which function they are.
 */
#pragma once

#include "bpf/profile_abi.h"

/* ksym::V8Layout, as far as it is needed here. */
struct v8_process {
	__u32 layout;		    /* user space's number of the layout */
	__u16 shared_function_info; /* types of objects */
	__u16 bytecode_array;
	/* Offsets in bytes, in JSFunction and SharedFunctionInfo. */
	__u8 function_shared;
	__u8 shared_name;
	__u8 shared_script;
	__u8 shared_literal_id;
	__u8 scope_has_positions_first;
	__u8 reserved;
	__u16 scope_info; /* a type, too */
};
PROFILE_ABI_ASSERT(sizeof(struct v8_process) == 16, "v8_process");

/* kJavaScriptCode of daemon/profile/runtime_frame.h. */
#define V8_FRAME_KIND 0x13

/* Places of a frame's words, from its frame pointer, in all versions. */
#define V8_FRAME_CONTEXT  8 /* below it; or a number, of frames without one */
#define V8_FRAME_FUNCTION 16
#define V8_FRAME_BYTECODE 32
#define V8_FRAME_OFFSET	  40
/* So much of these objects is read, and there is room for so many words. */
#define V8_FUNCTION_BYTES 40
#define V8_FUNCTION_WORDS 8
#define V8_SHARED_BYTES	  72
#define V8_SHARED_WORDS	  16
/* Map::instance_type, of 16 bits; Script::id, of the word's upper half. */
#define V8_MAP_TYPE  12
#define V8_SCRIPT_ID 64
/* Bytes before an address by which code there is told from later code. */
#define V8_CODE_SAMPLE 16

enum v8_code_kind {
	V8_INTERPRETED,
	V8_COMPILED, /* by whatever of its compilers */
};

/* ScopeInfo (src/objects/scope-info.tq): ksym/runtime/v8/scope_info.cc. */
#define V8_SCOPE_FLAGS	       8
#define V8_SCOPE_VARIABLES     24
#define V8_SCOPE_BEGIN	       32 /* of what follows */
#define V8_SCOPE_POSITIONS     16 /* bytes */
#define V8_SCOPE_SAVED_CLASS   (1u << 10)
#define V8_SCOPE_MAX_NAMES     75
#define V8_SCOPE_MAX_VARIABLES 65536

/*
 * What names a function, as it is in memory while the function runs. User space
 * looks later: where it finds the same no object was freed in between and has
 * another one in its place.
 */
struct v8_witness {
	__u64 named[4]; /* the begin of its ScopeInfo, or of its name */
	__u64 names[3]; /* words of the ScopeInfo, where names are */
	__u64 text[4];	/* the begin of the first of these */
};

/* The function of a frame at first sight, which user space looks at. */
struct profile_v8_record {
	struct profile_record header;
	__u64 code; /* as in runtime_item */
	__u64 start_ns;
	__u32 tgid;
	__u32 exec_count;
	__u32 layout;
	__u32 kind;   /* v8_code_kind */
	__u64 shared; /* pointer to the SharedFunctionInfo, with its tag */
	__u64 name;   /* words of that */
	__u64 script;
	__u32 literal_id;
	__u32 script_id;
	__u64 bytecode; /* pointer to the BytecodeArray; of V8_INTERPRETED */
	__u64 pc;	/* of V8_COMPILED: in the code */
	struct v8_witness witness;
};
PROFILE_ABI_ASSERT(sizeof(struct profile_v8_record) == 176,
		   "profile_v8_record");
