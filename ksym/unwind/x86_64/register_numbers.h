/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause OR Apache-2.0) */
/*
 * The general registers of x86-64 by their DWARF numbers (System V ABI, AMD64
 * supplement, figure 3.36), where a signal handler's frame keeps them, and
 * where a thread keeps its own variables, for those who walk stacks in user
 * space and in the kernel. Plain C that both compilers read.
 */
#pragma once

enum x86_register {
  X86_RAX = 0,
  X86_RDX = 1,
  X86_RCX = 2,
  X86_RBX = 3,
  X86_RSI = 4,
  X86_RDI = 5,
  X86_RBP = 6,
  X86_RSP = 7,
  X86_R8 = 8,
  X86_R9 = 9,
  X86_R10 = 10,
  X86_R11 = 11,
  X86_R12 = 12,
  X86_R13 = 13,
  X86_R14 = 14,
  X86_R15 = 15,
  X86_REGISTERS = 16,
  /* The column of the return address. */
  X86_RETURN_ADDRESS = 16,
};

/*
 * The kernel puts the registers of code that a signal interrupted above the
 * stack pointer of the handler's return: struct ucontext and struct
 * sigcontext_64 (arch/x86/include/uapi/asm/sigcontext.h). Offsets in bytes from
 * that stack pointer; the first register is R8.
 */
#define X86_SIGNAL_REGISTERS 40
#define X86_SIGNAL_RBP 120
#define X86_SIGNAL_RBX 128
#define X86_SIGNAL_RSP 160
#define X86_SIGNAL_RIP 168

/* Leaf functions use so many bytes below the stack pointer, the red zone. */
#define X86_RED_ZONE_BYTES 128

/*
 * glibc: where struct pthread, which the thread pointer leads to, has the
 * vector of modules' thread-local storage, its first block of keys, and the
 * addresses of all blocks.
 */
#define X86_GLIBC_DTV 8
#define X86_GLIBC_PTHREAD_KEYS 0x310
#define X86_GLIBC_PTHREAD_KEY_BLOCKS 0x510
