/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause OR Apache-2.0) */
/*
 * What the rows of unwind tables and the ends of stacks are called, for those
 * who follow rows in user space and in the kernel. Plain C that both compilers
 * read: what the kinds mean is in unwind_row.h and stack_walk.h, whose
 * enumerations are made of these.
 *
 * Rows speak of registers by role and not by name: the stack pointer, the frame
 * pointer, and one more that frames are found with, the extra register. Which
 * ones these are is the architecture's (x86_64/registers.h).
 */
#pragma once

/* From which register a frame's CFA is found. Four bits. */
enum unwind_cfa_kind {
  UNWIND_CFA_NO_INFO = 0,
  UNWIND_CFA_END = 1,
  UNWIND_CFA_SP = 2,
  UNWIND_CFA_FP = 3,
  UNWIND_CFA_EXTRA = 4,
  UNWIND_CFA_SP_DEREF = 5,
  UNWIND_CFA_FP_DEREF = 6,
  UNWIND_CFA_PLT = 7,
  UNWIND_CFA_SIGNAL = 8,
  UNWIND_CFA_LEAF_REGISTER = 9,
  UNWIND_CFA_RETURN_REGISTER = 10,
  UNWIND_CFA_CLONE = 11,
  UNWIND_CFA_UNSUPPORTED = 15,
};

/* Where the caller's frame pointer and extra register are. Four bits. */
enum unwind_fp_kind {
  UNWIND_FP_SAME = 0,
  UNWIND_FP_SAVED = 1,
  UNWIND_FP_SAVED_EXTRA_BELOW = 2,
  UNWIND_FP_SAME_EXTRA_SAVED = 3,
  UNWIND_FP_LOST = 4,
  UNWIND_FP_SAVED_EXTRA_LOST = 5,
  UNWIND_FP_SAME_EXTRA_LOST = 6,
  UNWIND_FP_SAVED_AT_FP = 7,
  /* And up to 15: the extra register is one word further below each. */
  UNWIND_FP_SAVED_EXTRA_BELOW_2 = 8,
};

/*
 * How the walk of a user stack ended. Numbers of raw captures, too. The ones
 * from UNWIND_END_FRAME_POINTERS on are the sampler's: what walks by rows has
 * the others.
 */
enum unwind_stack_end {
  UNWIND_END_OUTERMOST = 0,
  UNWIND_END_ZERO_FRAME_POINTER = 1,
  UNWIND_END_DEPTH_LIMIT = 2,
  UNWIND_END_NO_TABLE = 3,
  UNWIND_END_NO_MAPPING = 4,
  UNWIND_END_BAD_READ = 5,
  UNWIND_END_UNSUPPORTED = 6,
  UNWIND_END_NO_PROGRESS = 7,
  UNWIND_END_FRAME_POINTERS = 8, /* by the kernel, which does not tell */
  UNWIND_END_NOT_YET = 9,        /* the same, until there are tables */
  UNWIND_END_NOT_WALKED = 10,    /* only the innermost frame was taken */
  UNWIND_END_BEYOND_COPY = 11,   /* walked in user space, on a copy */
};

/* A frame pointer further above the stack pointer is none. */
#define UNWIND_MAX_FRAME_BYTES (1 << 20)
