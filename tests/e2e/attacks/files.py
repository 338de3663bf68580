# SPDX-License-Identifier: Apache-2.0
"""Files that are not what they seem: perf maps, links, FIFOs, devices, and
files that change while they are mapped."""

import mmap
import os
import socket
import time

from attacks import EVIL, perf_map, spin, wait
from loads import hostile


def long_perf_map(place):
    place.start_load(place.program("long_names"), 1,
                     hostile.PERF_MAP_FUNCTIONS, hostile.PERF_MAP_NAME_BYTES)
    wait()


def make_strange(path, kind, secret="/etc/shadow"):
    """Something else than a file at a path that is free."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path)
    elif kind == "zero":
        os.symlink("/dev/zero", path)
    elif kind == "terminal":
        os.symlink("/dev/tty", path)
    elif kind == "secret":
        os.symlink(secret, path)
    elif kind == "loop":
        os.symlink(path, path)
    elif kind == "directory":
        os.mkdir(path)
    elif kind == "sparse":
        with open(path, "wb") as file:
            file.truncate(1 << 40)
    else:
        with open(path, "wb") as file:
            file.write(b"0 ffffffffffffffff %s\n" % EVIL.encode() * 100_000)


STRANGE = ["fifo", "socket", "zero", "terminal", "secret", "loop", "directory",
           "sparse", "whole"]


def strange_perf_maps(place):
    """Processes whose perf map is no file, or names all addresses."""
    code = b"\xff\xc7\x81\xff\0\0\0\x10\x75\xf6\xc3"
    while True:
        child = os.fork()
        if child == 0:
            make_strange(perf_map(os.getpid()), place.random.choice(STRANGE))
            run_generated(code)
        place.random.random()  # the child had its own copy
        time.sleep(0.5)
        os.kill(child, 9)
        os.waitpid(child, 0)


def run_generated(code):
    """Stays in code that only a perf map names."""
    import ctypes
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE |
                       mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    while True:
        ctypes.CFUNCTYPE(None, ctypes.c_int)(address)(0)


def maps_of_others(place):
    """Perf maps for the victims, and for who comes next."""
    while True:
        for pid in place.victims + [place.random.randrange(300, 1 << 22)
                                    for _ in range(50)]:
            path = perf_map(pid)
            if not os.path.lexists(path):
                make_strange(path, place.random.choice(["whole", "sparse"]))
        spin(0.2)
        time.sleep(0.5)


def changing_files(place):
    """Files mapped as code that become shorter, longer and others."""
    with open(place.program("calls"), "rb") as file:
        data = file.read()
    path = place.path(EVIL + "-mapped.so")
    while True:
        with open(path, "wb") as file:
            file.write(data)
        fd = os.open(path, os.O_RDWR)
        with mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE,
                       prot=mmap.PROT_READ | mmap.PROT_EXEC):
            spin(0.1)
            for _ in range(20):
                os.truncate(path, place.random.choice([0, 1, 64, 4096,
                                                       len(data), 1 << 40]))
                os.pwrite(fd, os.urandom(64),
                          place.random.randrange(len(data)))
                spin(0.02)
        os.close(fd)
        os.unlink(path)


def mapped_devices(place):
    """Mappings of what is no file, or has none any more."""
    held = []
    for name in ["/dev/zero", "/dev/full", "/proc/self/mem"]:
        try:
            fd = os.open(name, os.O_RDWR)
            held.append(mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE,
                                  prot=mmap.PROT_READ | mmap.PROT_EXEC))
        except (OSError, ValueError):
            continue
    for i in range(500):
        path = place.path("%s-deleted-%d\n; (deleted)" % (EVIL, i))
        with open(path, "wb") as file:
            file.truncate(8192)
        fd = os.open(path, os.O_RDWR)
        held.append(mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE,
                              prot=mmap.PROT_READ | mmap.PROT_EXEC))
        os.close(fd)
        os.unlink(path)
    spin(3600)


def link_traps(place):
    """A path of a mapped file that soon leads elsewhere."""
    directory = place.path(EVIL + "-links")
    os.makedirs(directory)
    program = os.path.join(directory, "program")
    targets = ["/etc/shadow", "/dev/zero", "/proc/self/mem", "/dev/tty",
               "/proc/1/exe", "/"]
    while True:
        with open(place.program("spinners"), "rb") as source, \
                open(program, "wb") as file:
            file.write(source.read())
        os.chmod(program, 0o755)
        process = place.start_load(program, 1)
        time.sleep(0.1)
        os.rename(program, program + "-" + EVIL)
        os.symlink(place.random.choice(targets), program)
        time.sleep(0.4)
        process.kill()
        process.wait()
        os.unlink(program)


KINDS = {"long-perf-map": long_perf_map,
         "strange-perf-maps": strange_perf_maps,
         "maps-of-others": maps_of_others, "changing-files": changing_files,
         "mapped-devices": mapped_devices, "link-traps": link_traps}
