# SPDX-License-Identifier: Apache-2.0
"""What is on the machine, to see what the package leaves behind."""

import ctypes
import os

# What changes with anything that is installed, or by itself.
_OTHERS = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/var/log",
           "/var/cache/apt", "/var/cache/man", "/var/lib/apt",
           "/var/lib/systemd/timers", "/var/lib/systemd/random-seed",
           "/usr/lib/modules",
           # root's own, as any other user's
           "/root")
# These are written anew by whoever installs a package or makes a user.
_OWN_COPIES = ("-old", "passwd-", "group-", "shadow-", "gshadow-", ".lock",
               ".pwd.lock", "ldconfig/aux-cache")
_ACCOUNTS = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow")

SYS_BPF = 321  # x86-64

_before = {}


class _InfoRequest(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_uint32), ("size", ctypes.c_uint32),
                ("info", ctypes.c_uint64)]


def files():
    """Paths of all that is not left out."""
    found = set()
    for directory, directories, names in os.walk("/"):
        directories[:] = [name for name in directories
                      if os.path.join(directory, name) not in _OTHERS]
        found.update(os.path.join(directory, name) for name in names + directories)
    return {path for path in found
            if not path.endswith(_OWN_COPIES) and path not in _OTHERS}


def accounts():
    state = {}
    for path in _ACCOUNTS:
        with open(path, encoding="utf-8") as file:
            state[path] = sorted(file.read().splitlines())
    return state


def program_names():
    """Of the BPF programs that the kernel has, of whomever."""
    libc = ctypes.CDLL(None, use_errno=True)
    names, last = [], 0
    while True:
        request = (ctypes.c_uint32 * 3)(last)
        # BPF_PROG_GET_NEXT_ID
        if libc.syscall(SYS_BPF, 11, request, ctypes.sizeof(request)) != 0:
            return names
        last = request[1]
        request = (ctypes.c_uint32 * 3)(last)
        # BPF_PROG_GET_FD_BY_ID; it may be gone by now
        program = libc.syscall(SYS_BPF, 13, request, ctypes.sizeof(request))
        if program < 0:
            continue
        information = ctypes.create_string_buffer(256)
        # BPF_OBJ_GET_INFO_BY_FD
        request = _InfoRequest(program, len(information),
                               ctypes.addressof(information))
        libc.syscall(SYS_BPF, 15, ctypes.byref(request),
                     ctypes.sizeof(request))
        os.close(program)
        # bpf_prog_info.name
        names.append(information.raw[64:80].split(b"\0")[0].decode())


def remember():
    _before.update(files=files(), accounts=accounts())


def left_behind():
    """What is there now and was not."""
    left = sorted(files() - _before["files"])
    now = accounts()
    for path, lines in _before["accounts"].items():
        left += ["%s: %s" % (path, line) for line in now[path]
                 if line not in lines]
    return left


def gone():
    return sorted(_before["files"] - files())
