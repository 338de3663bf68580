/* SPDX-License-Identifier: Apache-2.0 */
# Linkage stubs without call-frame information, as mold leaves them.
        .section .plt, "ax", @progbits
        .p2align 4
        .globl  mold_first_stub
mold_first_stub:
        endbr64
        pushq   %r11
        pushq   8(%rip)
        jmp     *16(%rip)
        .p2align 5, 0xcc
        .globl  mold_stub
mold_stub:
        endbr64
        movl    $0, %r11d
        jmp     *24(%rip)
        .section .plt.got, "ax", @progbits
        .p2align 4
        .globl  mold_plain_stub
mold_plain_stub:
        endbr64
        jmp     *24(%rip)
        .p2align 4, 0xcc
        .section .note.GNU-stack, "", @progbits
