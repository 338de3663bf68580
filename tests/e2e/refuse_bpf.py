# SPDX-License-Identifier: Apache-2.0
"""Runs a command to which the kernel refuses one command of bpf(2), by its
number: refuse_bpf.py NUMBER COMMAND [ARGUMENT...]"""

import ctypes
import os
import platform
import struct
import sys

SYS_BPF = {"x86_64": 321, "aarch64": 280}
LINK_CREATE, RAW_TRACEPOINT_OPEN = 28, 17
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE_EPERM = 0x7fff0000, 0x00050001
NUMBER_AT, FIRST_ARGUMENT_AT = 0, 16


def refuse(command):
    steps = [(LOAD, 0, 0, NUMBER_AT),
             (JUMP_IF_EQUAL, 0, 3, SYS_BPF[platform.machine()]),
             (LOAD, 0, 0, FIRST_ARGUMENT_AT),
             (JUMP_IF_EQUAL, 0, 1, command),
             (RETURN, 0, 0, REFUSE_EPERM),
             (RETURN, 0, 0, ALLOW)]
    program = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", *step) for step in steps))
    head = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
            PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
            ctypes.create_string_buffer(head), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    refuse(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
