/* SPDX-License-Identifier: Apache-2.0 */
# The end of .eh_frame, as crtend.o has it.
        .section .eh_frame, "a", @progbits
        .long   0
        .section .note.GNU-stack, "", @progbits
