/* SPDX-License-Identifier: Apache-2.0 */
# Linkage stubs without call-frame information, as lld leaves them.
        .section .plt, "ax", @progbits
        .p2align 4
        .globl  first_stub
first_stub:
        pushq   8(%rip)
        jmp     *16(%rip)
        .byte   0x0f, 0x1f, 0x40, 0     # nop
        .globl  lazy_stub
lazy_stub:
        jmp     *24(%rip)
        .byte   0x68                    # push with 4 bytes
        .long   0
        .byte   0xe9                    # jmp with 4 bytes
        .long   first_stub - . - 4
        .section .plt.got, "ax", @progbits
        .p2align 4
        .globl  plain_stub
plain_stub:
        jmp     *24(%rip)
        xchg    %ax, %ax
# As glibc's clone: what the new thread does has an end, what comes before it
# nothing.
        .text
        .globl  clone_function
clone_function:
        .cfi_startproc
        movl    $56, %eax
        .cfi_endproc
        syscall
        testq   %rax, %rax
        jl      .Lerror
        jz      1f
        ret
1:
        .cfi_startproc
        .cfi_undefined %rip
        call    *%rax
        .skip   200, 0x90
.Lerror:
        ret
        .cfi_endproc
# The same, where the new thread begins at a multiple of 16.
        .p2align 5
        .skip   17, 0x90
        .globl  aligned_clone_function
aligned_clone_function:
        .cfi_startproc
        movl    $56, %eax
        .cfi_endproc
        syscall
        testq   %rax, %rax
        jl      2f
        jz      1f
        ret
1:
        .cfi_startproc
        .cfi_undefined %rip
        call    *%rax
2:      ret
        .cfi_endproc
# glibc's __start_context, behind padding.
        .p2align 4
        .globl  before_context
before_context:
        .cfi_startproc
        ret
        .cfi_endproc
        .p2align 4
        .globl  start_context
start_context:
        .cfi_startproc
        movq    %rbx, %rsp
        movq    (%rsp), %rdi
        testq   %rdi, %rdi
        je      1f
        call    2f
        movq    %rax, %rdi
1:      call    2f
        hlt
        .cfi_endproc
        .globl  after_context
after_context:
        .cfi_startproc
2:      ret
        .cfi_endproc
# Not so: any other system call in code that nothing describes.
        .globl  call_function
call_function:
        syscall
        testq   %rax, %rax
        jl      .Lerror
        ret
        .cfi_startproc
        nop
        .cfi_endproc
# As glibc's crti.o begins it, some object file adds to it and crtn.o ends it.
        .section .init, "ax", @progbits
        .globl  init_function
init_function:
        endbr64
        subq    $8, %rsp
        movq    24(%rip), %rax
        testq   %rax, %rax
        je      1f
        call    *%rax
1:      call    1b
        addq    $8, %rsp
        ret
# Not so.
        .section .fini, "ax", @progbits
        .globl  fini_function
fini_function:
        subq    $8, %rsp
        pushq   %rax
        addq    $8, %rsp
        ret
        .section .note.GNU-stack, "", @progbits
