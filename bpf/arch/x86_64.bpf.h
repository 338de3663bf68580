/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * All that the sampler has to know of x86-64. ksym/unwind/x86_64 is the same
 * for user space.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/waiting_abi.h"
#include "ksym/unwind/x86_64/register_numbers.h"

/* struct pt_regs, whose layout ptrace(2) promises. */
struct arch_regs {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	__u64 ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
/* The part of struct ucontext that has them (asm/sigcontext.h). */
struct arch_signal_regs {
	__u64 r8, r9, r10, r11, r12, r13, r14, r15;
	__u64 di, si, bp, bx, dx, ax, cx, sp, ip;
};
#define ARCH_SIGNAL_REGS_OFFSET X86_SIGNAL_REGISTERS
PROFILE_ABI_ASSERT(ARCH_SIGNAL_REGS_OFFSET +
			   offsetof(struct arch_signal_regs, sp) ==
		       X86_SIGNAL_RSP,
		   "arch_signal_regs");
/* By the roles that rows know (ksym/unwind/unwind_kinds.h). */
#define ARCH_SP	   X86_RSP
#define ARCH_FP	   X86_RBP
#define ARCH_EXTRA X86_RBX
/* The result of a system call, in clone()'s two threads. */
#define ARCH_RESULT    X86_RAX
#define ARCH_REGISTERS X86_REGISTERS

#define ARCH_RED_ZONE_BYTES X86_RED_ZONE_BYTES
/* A kernel stack; its last words are the user's registers. */
#define ARCH_KERNEL_STACK_BYTES 16384

#define ARCH_GLIBC_PTHREAD_KEYS	      X86_GLIBC_PTHREAD_KEYS
#define ARCH_GLIBC_PTHREAD_KEY_BLOCKS X86_GLIBC_PTHREAD_KEY_BLOCKS
#define ARCH_GLIBC_DTV		      X86_GLIBC_DTV

/*
 * Tests of the first bytes of code: "pop %rbp; ret", or "add $n,%rsp; ret" with
 * so many bytes, which are not negative and a number of words.
 */
#define ARCH_POPS_FP(code)  (((code) & 0xffff) == 0xc35d)
#define ARCH_ADDS_SP(code)  (((code) & 0xff87ffffffull) == 0xc300c48348ull)
#define ARCH_ADDED_SP(code) ((code) >> 24 & 0x78)

/*
 * The code at a function's begin or end, with one byte before it: it is about
 * to push the frame pointer, has pushed it, or returns.
 */
#define ARCH_PUSHES_FP(code) (((code) >> 8 & 0xff) == 0x55)
#define ARCH_SETS_FP(code)   (((code) & 0xffffffff) == 0xe5894855)
#define ARCH_RETURNS(code)   (((code) >> 8 & 0xfe) == 0xc2)

#define ARCH_USER_CODE_64     0x33
#define ARCH_SYSCALL_EXECVE   59
#define ARCH_SYSCALL_FUTEX    202
#define ARCH_SYSCALL_EXECVEAT 322
/* The arguments of a system call of the 64-bit ABI. */
#define ARCH_ARGUMENT_0(regs) ((regs)->di)
#define ARCH_ARGUMENT_1(regs) ((regs)->si)
#define ARCH_ARGUMENT_2(regs) ((regs)->dx)
#define ARCH_ARGUMENT_3(regs) ((regs)->r10)

/*
 * Sets a walk's registers, struct unwind_state or another with such members,
 * from either struct above. Those with a role have a member each, the others
 * are in leaf.
 */
#define ARCH_USE_REGS(walk, regs)                                              \
	do {                                                                   \
		(walk)->leaf[X86_RAX] = (regs)->ax;                            \
		(walk)->leaf[X86_RDX] = (regs)->dx;                            \
		(walk)->leaf[X86_RCX] = (regs)->cx;                            \
		(walk)->leaf[X86_RSI] = (regs)->si;                            \
		(walk)->leaf[X86_RDI] = (regs)->di;                            \
		(walk)->leaf[X86_R8] = (regs)->r8;                             \
		(walk)->leaf[X86_R9] = (regs)->r9;                             \
		(walk)->leaf[X86_R10] = (regs)->r10;                           \
		(walk)->leaf[X86_R11] = (regs)->r11;                           \
		(walk)->leaf[X86_R12] = (regs)->r12;                           \
		(walk)->leaf[X86_R13] = (regs)->r13;                           \
		(walk)->leaf[X86_R14] = (regs)->r14;                           \
		(walk)->leaf[X86_R15] = (regs)->r15;                           \
		(walk)->ip = (regs)->ip;                                       \
		(walk)->sp = (regs)->sp;                                       \
		(walk)->fp = (regs)->bp;                                       \
		(walk)->extra = (regs)->bx;                                    \
	} while (0)

struct thread_struct {
	unsigned long fsbase;
} __core;
struct task_struct___thread {
	struct thread_struct thread;
} __core;

/* Asking for a kernel stack only to hear that there is none costs 70 ns. */
static __always_inline bool
arch_in_user_mode(const struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.cs & 3) == 3; /* the privilege level */
}

/* Whether the registers are of code that rows are made for. */
static __always_inline bool arch_is_walked(const struct arch_regs *regs)
{
	return (regs->cs & 0xffff) == ARCH_USER_CODE_64;
}

/* Whether it has user code at all; workers that the kernel made have none. */
static __always_inline bool arch_is_of_user(const struct arch_regs *regs)
{
	return (regs->cs & 3) == 3;
}

/* Whether a thread with these registers, if it is in the kernel, is in exec. */
static __always_inline bool arch_in_exec(const struct arch_regs *regs)
{
	__u64 call = regs->orig_ax & 0xffff;

	return call == ARCH_SYSCALL_EXECVE || call == ARCH_SYSCALL_EXECVEAT;
}

/*
 * The word that a thread with these registers, if it is in the kernel, waits
 * for by futex(2) until some time; 0: it does not.
 */
static __always_inline __u64 arch_timed_wait(const struct arch_regs *regs)
{
	int command = ARCH_ARGUMENT_1(regs) & FUTEX_CMD_MASK;

	if (regs->orig_ax != ARCH_SYSCALL_FUTEX || !ARCH_ARGUMENT_3(regs) ||
	    (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET))
		return 0;
	return ARCH_ARGUMENT_0(regs);
}

/* thread_info.status: in a system call of the 32-bit ABI. */
#define ARCH_STATUS_COMPAT 2

/*
 * The system call that a thread with these registers is in, if it is in any,
 * and whose numbers these are.
 */
static __always_inline enum wait_calls
arch_system_call(const struct arch_regs *regs, __u32 status, __u32 *call)
{
	*call = (__u32)regs->orig_ax;
	if (status & ARCH_STATUS_COMPAT || !arch_is_walked(regs))
		return WAIT_CALLS_OTHER;
	return WAIT_CALLS_X86_64;
}

/*
 * The address by which C libraries find a thread's own data; 0: it cannot be
 * read.
 */
static __always_inline __u64 arch_thread_pointer(void *task)
{
	struct task_struct___thread *with_thread = task;
	unsigned long fsbase = 0;

	bpf_core_read(&fsbase, sizeof(fsbase), &with_thread->thread.fsbase);
	return fsbase;
}
