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
        .section .note.GNU-stack, "", @progbits
