/* SPDX-License-Identifier: Apache-2.0 */
# What a Go program is known by.
        .section .gopclntab, "a", @progbits
        .quad   0
        .section .note.GNU-stack, "", @progbits
