/* SPDX-License-Identifier: Apache-2.0 */
# One function for each form of call-frame information that rows know. The code
# is never run, so each instruction is a nop that stands for one: offset N in a
# function is its Nth instruction.
        .text

.macro FUNCTION name
        .p2align 4, 0xcc
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
.endm
.macro END name
        .cfi_endproc
        .size   \name, . - \name
.endm

# push rbp; push rbx; sub $32, rsp; ...; pop rbx; pop rbp; ret
FUNCTION pushes
        nop
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        nop
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        nop
        .cfi_adjust_cfa_offset 32
        nop
        .cfi_adjust_cfa_offset -32
        nop
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        nop
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        nop
END pushes

# push rbp; mov rsp, rbp; push r15 ... r12; push rbx; ...; leave; ret
FUNCTION frame_pointer
        nop
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        nop
        .cfi_def_cfa_register rbp
        nop
        .cfi_offset rbx, -56
        nop
        .cfi_def_cfa rsp, 8
        nop
END frame_pointer

# An early return in the middle.
FUNCTION remembers
        nop
        .cfi_def_cfa_offset 24
        .cfi_offset rbx, -24
        nop
        .cfi_remember_state
        .cfi_def_cfa_offset 8
        .cfi_restore rbx
        nop
        .cfi_restore_state
        nop
END remembers

# Delta of 63, 64, 256 and 65536 bytes: each size of advance_loc.
FUNCTION advances
        .skip   63, 0x90
        .cfi_def_cfa_offset 16
        .skip   64, 0x90
        .cfi_def_cfa_offset 24
        .skip   256, 0x90
        .cfi_def_cfa_offset 32
        .skip   65536, 0x90
        .cfi_def_cfa_offset 40
        nop
END advances

# A realigned stack: lea 8(rsp), r10; and $-32, rsp; push -8(r10); push rbp;
# mov rsp, rbp; push r10; ...; mov -8(rbp), r10; leave; lea -8(r10), rsp; ret
FUNCTION realigns
        nop
        .cfi_def_cfa r10, 0
        nop
        .cfi_escape 0x10, 6, 2, 0x76, 0        # rbp at rbp
        nop
        .cfi_escape 0x0f, 3, 0x76, 0x78, 0x06  # CFA *(rbp - 8)
        nop
        .cfi_def_cfa r10, 0
        nop
        .cfi_def_cfa rsp, 8
        nop
END realigns

# mov rsp, rax; push rbp; ...; the old rsp saved in the frame (perlasm).
FUNCTION saves_rsp
        nop
        .cfi_def_cfa rax, 8
        nop
        .cfi_offset rbp, -24
        nop
        .cfi_escape 0x0f, 6, 0x77, 0x98, 0x01, 0x06, 0x23, 8  # *(rsp+152) + 8
        nop
        .cfi_escape 0x0f, 3, 0x77, 0x10, 0x06                 # *(rsp+16)
        nop
        .cfi_escape 0x0f, 2, 0x77, 0x18                       # rsp + 24
        nop
END saves_rsp

# vfork: pop rdi; syscall; push rdi. Registers that are saved or lost in a
# caller's frame cannot be told from its own.
FUNCTION returns_by_rdi
        nop
        .cfi_def_cfa_offset 0
        .cfi_register rip, rdi
        nop
        .cfi_def_cfa_offset 8
        .cfi_offset rip, -8
        nop
        .cfi_register rip, rbx
        nop
        .cfi_register rip, r12
        .cfi_def_cfa rbp, 16
        nop
END returns_by_rdi

# The linker's stubs, whose second push is at 11, and at 9.
FUNCTION stubs
        .cfi_escape 0x0f,11,0x77,8,0x80,0,0x3f,0x1a,0x3b,0x2a,0x33,0x24,0x22
        nop
        .cfi_escape 0x0f,11,0x77,8,0x80,0,0x3f,0x1a,0x39,0x2a,0x33,0x24,0x22
        nop
END stubs

FUNCTION trampoline
        .cfi_signal_frame
        nop
        .cfi_def_cfa_offset 16
        nop
END trampoline

FUNCTION outermost
        nop
        .cfi_undefined rip
        nop
END outermost

# RBX as the frame's base, as the dynamic linker's resolver has it.
FUNCTION by_rbx
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        nop
        .cfi_def_cfa_register rbx
        nop
END by_rbx

# What has become of RBP and RBX.
FUNCTION registers
        nop
        .cfi_offset rbp, -16
        .cfi_offset rbx, -24
        nop
        .cfi_offset rbx, -32
        nop
        .cfi_offset rbx, -88
        nop
        .cfi_offset rbx, -96
        nop
        .cfi_offset rbx, -8
        nop
        .cfi_restore rbp
        .cfi_offset rbx, -2048
        nop
        .cfi_undefined rbp
        nop
        .cfi_register rbp, r9
        nop
        .cfi_same_value rbp
        .cfi_same_value rbx
        nop
END registers

# What no row can say, and the limits of what one can.
FUNCTION limits
        .cfi_def_cfa rsp, 12
        nop
        .cfi_def_cfa rsp, 262136
        nop
        .cfi_def_cfa rsp, 262144
        nop
        .cfi_def_cfa rsp, 8
        .cfi_register rip, rdx
        nop
        .cfi_offset rip, -16
        nop
        .cfi_offset rip, -8
        .cfi_offset rbp, -1024
        nop
        .cfi_offset rbp, -1032
        nop
        .cfi_restore rbp
        .cfi_def_cfa r11, 1016
        nop
        .cfi_def_cfa r11, 1024
        nop
        .cfi_escape 0x0f, 4, 0x71, 0, 0x06, 0x06              # *(*(rcx))
        nop
        .cfi_def_cfa_offset 16
        nop
END limits

# A personality and an LSDA make the augmentation longer; args_size is skipped.
FUNCTION throws
        .cfi_personality 0x9b, personality_pointer
        .cfi_lsda 0x1b, lsda
        nop
        .cfi_def_cfa_offset 16
        .cfi_escape 0x2e, 0x10
        nop
END throws

# Code without call-frame information between two functions with it.
        .p2align 4, 0xcc
        .globl  bare
        .type   bare, @function
bare:
        .skip   20, 0x90
        .size   bare, . - bare

FUNCTION last
        nop
END last
        nop

        .data
        .p2align 3
personality_pointer:
        .quad   0
        .section .gcc_except_table, "a", @progbits
lsda:
        .byte   0xff, 0xff, 1, 0
        .section .note.GNU-stack, "", @progbits
