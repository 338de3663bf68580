/* SPDX-License-Identifier: Apache-2.0 */
# Linkage stubs as GNU ld leaves them in static programs.
        .section .plt, "ax", @progbits
        .p2align 3
        .globl  static_stub
static_stub:
        .rept   4
        jmp     *24(%rip)
        xchg    %ax, %ax
        .endr
        .globl  static_stubs_end
static_stubs_end:
        .section .note.GNU-stack, "", @progbits
