/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The contract between cpython.bpf.h and daemon/capture: where an interpreter
 * keeps its frames, and the records that carry what was found there.
 *
 *   runtime_processes   who and the how manieth -> where and how
 *   runtime_files       a file's inode -> the same, of new processes
 *   runtime_places      who -> the file in whose code it was, and where that is
 *   runtime_codes       ids of code whose record is in the ring already
 *
 * An interpreter's frames come in runs: those that one call of its evaluation
 * loop works through. An address within that call's native frame, or a word
 * that is there, says to which native frame a run belongs: its anchor.
 */
#pragma once

#include "bpf/profile_abi.h"
#include "bpf/unwind_abi.h"

/* Frames of a stack and ends of runs, together. */
#define RUNTIME_MAX_ITEMS 1536
/* runtime_item.native: the run's native frame was not reached. */
#define RUNTIME_NOT_PLACED 0xffff

/* Where the address of a thread's state is: ksym::CpythonThreadPlace. */
enum cpython_thread_kind {
	CPYTHON_THREAD_NONE,
	CPYTHON_THREAD_KEY,
	CPYTHON_THREAD_GLOBAL,
	CPYTHON_THREAD_NEAR,
	CPYTHON_THREAD_IN_MODULE,
	CPYTHON_THREAD_BY_OFFSET,
};

struct cpython_thread_place {
	__u64 address;
	__s32 distance;
	__u32 kind;
};

/* Which frames a run has: ksym::CpythonLayout::Runs. */
enum cpython_runs {
	CPYTHON_RUNS_TO_ENTRY,
	CPYTHON_RUNS_TO_SHIM,
	CPYTHON_RUNS_EACH,
};

/* The meaning of frame_instruction: ksym::CpythonLayout::Instruction. */
enum cpython_instruction {
	CPYTHON_INSTRUCTION_ADDRESS,
	CPYTHON_INSTRUCTION_BYTES,
	CPYTHON_INSTRUCTION_UNITS,
};

#define CPYTHON_FRAME_BYTES 112
#define CPYTHON_CODE_BYTES  256

/* Offsets are in bytes. Addresses are a process's own, or the file's. */
struct cpython_process {
	struct cpython_thread_place threads[2];
	__u64 code_type;  /* of PyCode_Type */
	__u64 runtime;	  /* _PyRuntime */
	__u64 frame_type; /* of PyFrame_Type, with CPYTHON_RUNS_EACH */
	/* The word with the address of the newest PyInterpreterState; 0: not
	 * known. */
	__u64 newest_interpreter;
	__u32 layout; /* user space's number of the layout */
	__u32 runtime_bytes;
	/* PyThreadState: the frame, or what points to it; pthread_self(). */
	__u16 thread_frame;
	__u16 thread_id;
	/* _PyCFrame; only used with a chain of them. */
	__u16 cframe_frame;
	__u16 cframe_previous;
	/* _PyInterpreterFrame or PyFrameObject; below frame_bytes, which are
	 * CPYTHON_FRAME_BYTES at the most. */
	__u16 frame_bytes;
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instruction;
	__u16 frame_owner;
	__u16 frame_is_entry;
	/* PyCodeObject; below code_bytes, which are CPYTHON_CODE_BYTES at the
	 * most. */
	__u16 code_bytes;
	__u16 code_size;
	__u16 code_consts;
	__u16 code_first_line;
	__u16 code_first_traceable;
	__u16 code_units; /* of the instructions */
	__u16 code_file;
	__u16 code_name;
	__u16 code_lines;
	__u16 code_version; /* a number that no other code has; 0: none */
	/* Text of a str object. */
	__u16 text_ascii;
	__u16 text_other;
	/* ksym::CpythonFrameWord. */
	__u16 word_below;
	__u16 word_offset;
	__u8 has_cframe; /* thread_frame points to a _PyCFrame */
	__u8 runs;	 /* cpython_runs */
	__u8 shim_owner;
	__u8 instruction; /* cpython_instruction */
	/* PyInterpreterState. */
	__u16 interpreter_next;
	__u16 interpreter_threads;
};
PROFILE_ABI_ASSERT(sizeof(struct cpython_process) == 128, "cpython_process");

/* The same in all versions that are known. */
#define CPYTHON_TYPE		   8
#define CPYTHON_TEXT_LENGTH	   16
#define CPYTHON_TEXT_HASH	   24
#define CPYTHON_TEXT_NO_HASH	   0xffffffffffffffffull
#define CPYTHON_TEXT_STATE	   32
#define CPYTHON_BYTES_LENGTH	   16
#define CPYTHON_BYTES_DATA	   32
#define CPYTHON_OWNED_BY_GENERATOR 1
/* PyThreadState: the next one of its interpreter, and that interpreter. */
#define CPYTHON_NEXT_THREAD 8
#define CPYTHON_INTERPRETER 16
/* Interpreters and thread states that are looked at of a process with several,
 * together. */
#define CPYTHON_MAX_STATES 256

/* A process may have several interpreters, of which a thread uses one. */
#define RUNTIME_INTERPRETERS 4
struct runtime_interpreter {
	struct unwind_process process;
	__u32 number; /* 0 to RUNTIME_INTERPRETERS - 1, without a gap */
	__u32 reserved;
};
PROFILE_ABI_ASSERT(sizeof(struct runtime_interpreter) == 24,
		   "runtime_interpreter");

struct runtime_file {
	__u64 inode;
	__u64 device; /* as the kernel numbers it: major << 20 | minor */
};

/* All that is known of such a file. */
struct runtime_program {
	struct cpython_process process; /* with the file's addresses */
	__u64 start_code;		/* the lowest address of its code */
	__u64 code; /* the offset in the file of code less its address */
};
PROFILE_ABI_ASSERT(sizeof(struct runtime_program) ==
		       sizeof(struct cpython_process) + 16,
		   "runtime_program");

/* Bits of runtime_known: there is something in runtime_processes or
 * runtime_files, and a file that may be anywhere in memory. */
#define RUNTIME_KNOWN	     1
#define RUNTIME_KNOWN_MOVING 2
/* Some process has a runtime that makes code. */
#define RUNTIME_KNOWN_CODE 4

enum runtime_item_kind {
	RUNTIME_ITEM_FRAME = 0,
	RUNTIME_ITEM_RUN = 1,
	/* And a run whose frames do not lead to its end. */
	RUNTIME_ITEM_TORN = 2,
	/*
	 * What one native frame stands for, in code that a runtime made; these
	 * come behind all others. The upper byte is its kind of
	 * daemon/profile/runtime_frame.h.
	 */
	RUNTIME_ITEM_CODE = 4,
};
#define RUNTIME_ITEM_KIND_SHIFT 8

/* A frame, or the end of the run that the frames before it are. */
struct runtime_item {
	/*
	 * A frame has a hash of what tells its code from others here, a run its
	 * anchor; 0: not known. Code that a runtime made has what its step
	 * says.
	 */
	__u64 word;
	/*
	 * A frame has the place of its instruction here, in units of two bytes;
	 * a run has the place of the next run's end, for the sampler. Code that
	 * a runtime made has what its step says.
	 */
	__u32 index;
	__u16 native; /* in the stack's frames; RUNTIME_NOT_PLACED */
	__u16 kind;
};
PROFILE_ABI_ASSERT(sizeof(struct runtime_item) == 16, "runtime_item");

/* There were more frames than could be walked. */
#define RUNTIME_FRAMES_CUT 1
/* The thread waits for the interpreter's global lock. */
#define RUNTIME_WAITS_FOR_LOCK 2

/*
 * An interpreter's frames of a stack, before the record of the stack; of a
 * copy, before its last record. Runs and frames are leaf first.
 */
struct profile_runtime_record {
	struct profile_record header;
	__u64 id; /* of the stack, or of the copy */
	__u32 items;
	/*
	 * 0: anchors are addresses within native frames; else they are the
	 * words that are so many bytes below these frames' ends.
	 */
	__u16 word_below;
	__u16 flags; /* RUNTIME_FRAMES_CUT ... */
	struct unwind_process process;
	struct runtime_item item[RUNTIME_MAX_ITEMS]; /* only `items` are sent */
};
#define PROFILE_RUNTIME_RECORD_BYTES(items) (40 + 16 * (items))
PROFILE_ABI_ASSERT(sizeof(struct profile_runtime_record) ==
		       PROFILE_RUNTIME_RECORD_BYTES(RUNTIME_MAX_ITEMS),
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
	__u64 code; /* as in runtime_item */
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
