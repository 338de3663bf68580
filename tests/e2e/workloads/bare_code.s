/* SPDX-License-Identifier: Apache-2.0 */
# Code without call-frame information and frame pointers, whose RBP is no
# address. BareLoop(rounds) calls the others, which work for some microseconds.
        .text
        .globl  BareLoop
        .type   BareLoop, @function
BareLoop:
        push    %rbp
        push    %rbx
        sub     $24, %rsp
        mov     %rdi, %rbx
        mov     $1, %ebp
1:      mov     %rbx, %rdi
        and     $3, %edi
        call    BareCases
        mov     %ebp, 8(%rsp)
        call    BareAligned
        xor     $3, %ebp
        dec     %rbx
        jne     1b
        add     $24, %rsp
        pop     %rbx
        pop     %rbp
        ret
        .size   BareLoop, . - BareLoop

# A jump table: nothing else leads to what it has.
        .p2align 4
        .type   BareCases, @function
BareCases:
        push    %rbx
        push    %rbp
        lea     cases(%rip), %rax
        movslq  (%rax,%rdi,4), %rdx
        add     %rax, %rdx
        mov     $5000, %ebx
        mov     $3, %ebp
        jmp     *%rdx
        .p2align 4
case0:  dec     %ebx
        jnz     case0
        pop     %rbp
        pop     %rbx
        ret
        .p2align 4
case1:  sub     $40, %rsp
2:      add     %rbx, 8(%rsp)
        dec     %ebx
        jnz     2b
        add     $40, %rsp
        jmp     case0end
        .p2align 4
case2:  push    $7
3:      dec     %ebx
        jnz     3b
        pop     %rcx
case0end:
        pop     %rbp
        pop     %rbx
        ret
        .size   BareCases, . - BareCases
# Data between functions.
cases:  .long   case0 - cases, case1 - cases, case2 - cases, case0 - cases
        .byte   0x06, 0x07, 0x0e, 0xc3, 0x5b, 0xc3

# A stack that is aligned, with the old one in a word of it.
        .p2align 4
        .type   BareAligned, @function
BareAligned:
        mov     %rsp, %rax
        sub     $160, %rsp
        and     $-64, %rsp
        mov     %rax, 136(%rsp)
        xor     %eax, %eax
        mov     $5000, %ecx
4:      add     %rcx, (%rsp)
        dec     %ecx
        jnz     4b
        call    BareLeaf
        mov     136(%rsp), %rsp
        ret
        .size   BareAligned, . - BareAligned

        .p2align 4
        .type   BareLeaf, @function
BareLeaf:
        mov     $5000, %ecx
5:      dec     %ecx
        jnz     5b
        ret
        .size   BareLeaf, . - BareLeaf
        .section .note.GNU-stack, "", @progbits
