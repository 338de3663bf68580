# What a Go program is known by.
        .section .gopclntab, "a", @progbits
        .quad   0
        .section .note.GNU-stack, "", @progbits
