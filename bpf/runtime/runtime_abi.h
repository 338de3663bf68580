/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The contract between cpython.bpf.h and daemon/capture: where an interpreter
 * keeps its frames, and the records that carry what was found there.
 *
 *   runtime_processes   who -> where and how
 *   runtime_files       an executable's inode -> the same, of new processes
 *   runtime_codes       ids of code whose record is in the ring already
 *
 * An interpreter's frames come in runs: those that one call of its evaluation
 * loop works through. An address within that call's native frame, the anchor,
 * says to which native frame a run belongs.
 */
#pragma once

#include "bpf/profile_abi.h"

#define RUNTIME_MAX_FRAMES 512
#define RUNTIME_MAX_RUNS   64
/* runtime_run.native: the run's native frame was not reached. */
#define RUNTIME_NOT_PLACED 0xffff

/* Offsets are in bytes. */
struct cpython_process {
	__u64 key_address; /* of the pthread key of thread states, an int */
	__u64 code_type;   /* of PyCode_Type */
	__u32 layout;	   /* user space's number of the layout */
	/* PyThreadState: the frame, or what points to it; pthread_self(). */
	__u16 thread_frame;
	__u16 thread_id;
	/* _PyCFrame; only used with a chain of them. */
	__u16 cframe_frame;
	__u16 cframe_previous;
	/* _PyInterpreterFrame; below CPYTHON_FRAME_BYTES. */
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instruction;
	__u16 frame_owner;
	__u16 frame_is_entry;
	/* PyCodeObject; below CPYTHON_CODE_BYTES. */
	__u16 code_first_line;
	__u16 code_first_traceable;
	__u16 code_units; /* of the instructions, and the end of what is read */
	/* Text of a str object. */
	__u16 text_ascii;
	__u16 text_other;
	__u8 has_cframe;    /* thread_frame points to a _PyCFrame */
	__u8 ends_at_entry; /* runs end with frame_is_entry, else before a shim
			     */
	__u8 shim_owner;
	__u8 reserved;
	__u32 reserved_2;
};
PROFILE_ABI_ASSERT(sizeof(struct cpython_process) == 56, "cpython_process");

#define CPYTHON_FRAME_BYTES 80
#define CPYTHON_CODE_BYTES  256
/* The same in all versions that are known. */
#define CPYTHON_CODE_TYPE	   8
#define CPYTHON_CODE_SIZE	   16
#define CPYTHON_CODE_CONSTS	   24
#define CPYTHON_CODE_FILE	   112
#define CPYTHON_CODE_NAME	   120
#define CPYTHON_CODE_QUALIFIED	   128
#define CPYTHON_CODE_LINES	   136
#define CPYTHON_TEXT_LENGTH	   16
#define CPYTHON_TEXT_STATE	   32
#define CPYTHON_BYTES_LENGTH	   16
#define CPYTHON_BYTES_DATA	   32
#define CPYTHON_OWNED_BY_GENERATOR 1

struct runtime_file {
	__u64 inode;
	__u64 device; /* as the kernel numbers it: major << 20 | minor */
};

struct runtime_frame {
	__u64 code;  /* a hash of what tells this code from others */
	__u32 index; /* of the instruction, in units of two bytes */
	__u32 reserved;
};
PROFILE_ABI_ASSERT(sizeof(struct runtime_frame) == 16, "runtime_frame");

enum runtime_run_flags {
	RUNTIME_RUN_TORN = 1, /* its frames do not lead to its end */
};

struct runtime_run {
	__u64 anchor; /* 0: not known */
	__u16 end;    /* the number of frames up to its last one */
	__u16 native; /* index in the stack's frames, or RUNTIME_NOT_PLACED */
	__u32 flags;
};
PROFILE_ABI_ASSERT(sizeof(struct runtime_run) == 16, "runtime_run");

/*
 * An interpreter's frames of a stack, before the record of the stack; of a
 * copy, before its last record. Runs and frames are leaf first.
 */
struct profile_runtime_record {
	struct profile_record header;
	__u64 id; /* of the stack, or of the copy */
	__u32 frames;
	__u32 runs;
	struct runtime_run run[RUNTIME_MAX_RUNS];
	struct runtime_frame frame[RUNTIME_MAX_FRAMES]; /* only `frames` sent */
};
#define PROFILE_RUNTIME_RECORD_BYTES(frames)                                   \
	(24 + 16 * RUNTIME_MAX_RUNS + 16 * (frames))
PROFILE_ABI_ASSERT(sizeof(struct profile_runtime_record) ==
		       PROFILE_RUNTIME_RECORD_BYTES(RUNTIME_MAX_FRAMES),
		   "profile_runtime_record");

/* Parts of a process's memory that name code. */
enum runtime_piece {
	RUNTIME_PIECE_CODE,
	RUNTIME_PIECE_NAME,
	RUNTIME_PIECE_FILE,
	RUNTIME_PIECE_LINES,
	RUNTIME_PIECES,
};
#define RUNTIME_NAME_BYTES  256
#define RUNTIME_FILE_BYTES  512
#define RUNTIME_LINES_BYTES 16384

/* Code at first sight. Lines that could not be read have no bytes. */
struct profile_code_record {
	struct profile_record header;
	__u64 code; /* as in runtime_frame */
	__u64 address;
	__u64 start_ns;
	__u32 tgid;
	__u32 exec_count;
	__u32 layout;
	__u32 bytes[RUNTIME_PIECES];
	__u32 reserved;
	__u64 piece[RUNTIME_PIECES]; /* addresses */
	__u8 head[CPYTHON_CODE_BYTES];
	__u8 name[RUNTIME_NAME_BYTES];
	__u8 file[RUNTIME_FILE_BYTES];
	__u8 lines[RUNTIME_LINES_BYTES]; /* only bytes[..LINES] are sent */
};
#define PROFILE_CODE_RECORD_BYTES(lines)                                       \
	(96 + CPYTHON_CODE_BYTES + RUNTIME_NAME_BYTES + RUNTIME_FILE_BYTES +   \
	 (lines))
PROFILE_ABI_ASSERT(sizeof(struct profile_code_record) ==
		       PROFILE_CODE_RECORD_BYTES(RUNTIME_LINES_BYTES),
		   "profile_code_record");
