/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * All that the sampler has to know of x86-64. ksym/unwind/x86_64/registers.h
 * is the same for user space.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/waiting_abi.h"

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
/* From the stack pointer of a handler's return on. */
#define ARCH_SIGNAL_REGS_OFFSET 40

/* Numbers of the ABI's DWARF registers. */
enum arch_register {
	ARCH_RAX = 0,
	ARCH_RDX = 1,
	ARCH_RCX = 2,
	ARCH_RBX = 3,
	ARCH_RSI = 4,
	ARCH_RDI = 5,
	ARCH_RBP = 6,
	ARCH_RSP = 7,
	ARCH_R8 = 8,
	ARCH_REGISTERS = 16,
};
/* By the roles that rows know (ksym/unwind/unwind_kinds.h). */
#define ARCH_SP	   ARCH_RSP
#define ARCH_FP	   ARCH_RBP
#define ARCH_EXTRA ARCH_RBX
/* What a system call returns, in clone()'s two threads. */
#define ARCH_RESULT ARCH_RAX

/* Below the stack pointer is what leaf functions use. */
#define ARCH_RED_ZONE_BYTES 128
/* Of a kernel stack, whose last words are the user's registers. */
#define ARCH_KERNEL_STACK_BYTES 16384

/* glibc: where struct pthread has its first block of keys. */
#define ARCH_GLIBC_PTHREAD_KEYS 0x310

#define ARCH_USER_CODE_64     0x33
#define ARCH_SYSCALL_EXECVE   59
#define ARCH_SYSCALL_EXECVEAT 322

/*
 * Sets a walk's registers, struct unwind_state or another with such members,
 * from either struct above. Those with a role have a member each, the others
 * are in leaf.
 */
#define ARCH_USE_REGS(walk, regs)                                              \
	do {                                                                   \
		(walk)->leaf[ARCH_RAX] = (regs)->ax;                           \
		(walk)->leaf[ARCH_RDX] = (regs)->dx;                           \
		(walk)->leaf[ARCH_RCX] = (regs)->cx;                           \
		(walk)->leaf[ARCH_RSI] = (regs)->si;                           \
		(walk)->leaf[ARCH_RDI] = (regs)->di;                           \
		(walk)->leaf[ARCH_R8] = (regs)->r8;                            \
		(walk)->leaf[9] = (regs)->r9;                                  \
		(walk)->leaf[10] = (regs)->r10;                                \
		(walk)->leaf[11] = (regs)->r11;                                \
		(walk)->leaf[12] = (regs)->r12;                                \
		(walk)->leaf[13] = (regs)->r13;                                \
		(walk)->leaf[14] = (regs)->r14;                                \
		(walk)->leaf[15] = (regs)->r15;                                \
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

/* Whether a thread with these registers, if it is in the kernel, is in exec. */
static __always_inline bool arch_in_exec(const struct arch_regs *regs)
{
	__u64 call = regs->orig_ax & 0xffff;

	return call == ARCH_SYSCALL_EXECVE || call == ARCH_SYSCALL_EXECVEAT;
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

/* What C libraries find a thread's own data by; 0: it cannot be read. */
static __always_inline __u64 arch_thread_pointer(void *task)
{
	struct task_struct___thread *with_thread = task;
	unsigned long fsbase = 0;

	bpf_core_read(&fsbase, sizeof(fsbase), &with_thread->thread.fsbase);
	return fsbase;
}
