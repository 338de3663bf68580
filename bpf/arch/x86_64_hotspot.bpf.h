/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How HotSpot's compilers and stubs make frames and leave them: "push %rbp;
 * sub", "sub; mov %rbp,n(%rsp)", and "add; pop %rbp; cmp n(%r15),%rsp; ja;
 * ret", with a test instead of cmp and ja before JDK 16. All look at the code
 * from the pc on, which has 8 bytes in front of it. The same for user space is
 * in ksym/runtime/x86_64.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "ksym/unwind/x86_64/register_numbers.h"

/* The register with the bytecode's address while the interpreter is at work. */
#define ARCH_HOTSPOT_BYTECODE X86_R13

/*
 * In the poll between "pop %rbp" and "ret" of before JDK 16: "test n(%rip)", or
 * "mov n(%r15),%r10; test (%r10)". Loops poll in the same way, and have
 * something else in front.
 */
static __always_inline bool arch_hotspot_polls_with_test(const __u8 *code)
{
	if (code[-1] == 0x5d)
		return (code[0] == 0x85 && code[1] == 0x05) ||
		       (code[0] == 0x4d && code[1] == 0x8b);
	if (code[0] != 0x41 || code[1] != 0x85 || code[2] != 0x02)
		return false;
	return (code[-8] == 0x5d && code[-7] == 0x4d && code[-6] == 0x8b) ||
	       (code[-5] == 0x5d && code[-4] == 0x4d && code[-3] == 0x8b);
}

/* pop %rbp: it and the return address are left of the frame. */
static __always_inline bool arch_hotspot_pops_fp(const __u8 *code)
{
	return code[0] == 0x5d;
}

/* Behind that: the return address alone is left. */
static __always_inline bool arch_hotspot_popped_fp(const __u8 *code)
{
	if (code[0] == 0xc3) /* ret */
		return true;
	/* cmp n(%r15),%rsp; between them, ja */
	if (code[0] == 0x49 && code[1] == 0x3b &&
	    (code[2] == 0xa7 || code[2] == 0x67))
		return true;
	if (code[0] == 0x0f && code[1] == 0x87 && code[-7] == 0x49 &&
	    code[-6] == 0x3b && code[-5] == 0xa7)
		return true;
	return arch_hotspot_polls_with_test(code);
}

/* Behind push %rbp. */
static __always_inline bool arch_hotspot_pushed_fp(const __u8 *code)
{
	return code[-1] == 0x55;
}

/* mov %rbp,n(%rsp) */
static __always_inline bool arch_hotspot_saves_fp(const __u8 *code)
{
	return code[0] == 0x48 && code[1] == 0x89 &&
	       (code[2] == 0x6c || code[2] == 0xac) && code[3] == 0x24;
}

/* push %rbp, or ret: a stub's first or last instruction. */
static __always_inline bool arch_hotspot_is_outside(const __u8 *code)
{
	return code[0] == 0x55 || code[0] == 0xc3;
}

/* mov %rsp,%rbp behind push %rbp */
static __always_inline bool arch_hotspot_sets_fp(const __u8 *code)
{
	return code[-1] == 0x55 && code[0] == 0x48 && code[1] == 0x8b &&
	       code[2] == 0xec;
}
