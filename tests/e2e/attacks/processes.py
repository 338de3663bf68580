# SPDX-License-Identifier: Apache-2.0
"""Processes, threads and mappings without end."""

import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time

from attacks import EVIL, LIBC, spin, wait
from loads import hostile

PR_SET_NAME = 15
FAKE_SYMBOLS = 1_500_000  # a byte of code each


def mappings(place):
    """30,000 mappings of files with paths of 3,900 bytes."""
    far = hostile.long_path(place.path(EVIL))
    shutil.copy(place.program("spinners"), far)
    shutil.copy(place.program("spinners"), far[:-1])
    place.start_load(place.program("mapping_storm"), 1, hostile.MAPPINGS,
                     place.random.choice([0, 200, 20_000]), far, far[:-1])
    wait()


def mapping_storm(place):
    place.start_load(place.program("mapping_storm"), 4, 2000, 0,
                     place.program("spinners"), place.program("calls"))
    wait()


def threads(place):
    place.start_load(place.program("thread_storm"), 2)
    wait()


def forks(place):
    place.start_load(place.program("rounds"), 8, 0, "exec /bin/true")
    wait()


def execs(place):
    """One process that becomes another program again and again."""
    del place
    script = "import os,sys;os.execv(sys.executable,sys.orig_argv)"
    os.execv("/usr/bin/python3", ["/usr/bin/python3", "-S", "-E", "-c",
                                  script])


def names(place):
    """Threads that take new names without end."""
    def flood(number):
        for i in range(1 << 40):
            LIBC.prctl(PR_SET_NAME, b"%s%x" % (EVIL.encode(),
                                               (i << 4 | number) & 0xfffffff))
    for number in range(place.random.randrange(1, 6)):
        threading.Thread(target=flood, args=(number,), daemon=True).start()
    wait()


def signals(place):
    """Processes that are stopped, continued and killed at random."""
    children = [place.start_load(place.program("spinners"), 1)
                for _ in range(10)]
    while True:
        i = place.random.randrange(len(children))
        kind = place.random.choice([signal.SIGSTOP, signal.SIGCONT,
                                    signal.SIGKILL, signal.SIGSEGV])
        children[i].send_signal(kind)
        if kind in (signal.SIGKILL, signal.SIGSEGV):
            children[i].send_signal(signal.SIGKILL)
            children[i].wait()
            children[i] = place.start_load(place.program("spinners"), 1)
        time.sleep(0.01)


def deep_stacks(place):
    """A stack whose frames are deep, and one that is no stack."""
    place.start(place.program("deep"))
    place.start(place.program("rough"))
    place.start(place.program("own_stack"))
    wait()


def fake_debug_file(file, path):
    """With the build-id of a file, and other names for all of its code."""
    hostile.many_symbols(file, path, FAKE_SYMBOLS)
    with open(path, "rb") as made:
        data = made.read()
    with open(path, "wb") as made:
        made.write(data.replace(b"f" * 200, EVIL.encode() * 50))


def namespaces(place):
    """Root of a namespace of its own, with its own debug files: those that the
    victims' programs and libraries would have."""
    files = [place.program("calls"), "/lib/x86_64-linux-gnu/libc.so.6",
             os.path.realpath("/usr/bin/python3")]
    fakes = []
    for i, file in enumerate(files):
        fakes.append(place.path("%s-debug-%d" % (EVIL, i)))
        fake_debug_file(file, fakes[-1])
    script = r"""
mount -t tmpfs tmpfs /usr/lib/debug || exit 1
for pair in "$@"; do
  file=${pair%%=*}
  id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
  directory=/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)
  mkdir -p "$directory"
  cp "${pair#*=}" "$directory/$(echo "$id" | cut -c3-).debug"
done
while :; do
  "${1%%=*}" & child=$!
  ln -s /dev/zero /tmp/perf-$child.map
  /usr/bin/python3 -S -E -c 'for i in range(3000000): pass'
  kill -9 $child
done
"""
    if subprocess.run(["unshare", "-Urmpf", "/bin/true"], check=False,
                      capture_output=True).returncode != 0:
        spin(3600)  # none for such users here
    place.start("unshare", "-Urmpf", "sh", "-c", script, "sh",
                *map("=".join, zip(files, fakes)))
    wait()


def generated_code(place):
    """Code that was mapped where nothing was before, and goes at once."""
    libc = LIBC
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                          ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    code = b"\xff\xc7\x81\xff\0\0\x10\0\x75\xf6\xc3"  # counts, then returns
    while True:
        where = place.random.choice([0, 0x10000, 0x7ff0_0000_0000])
        at = libc.mmap(where + place.random.randrange(1 << 20) * 4096, 4096,
                       7, 0x22, -1, 0)
        ctypes.memmove(at, code, len(code))
        ctypes.CFUNCTYPE(None, ctypes.c_int)(at)(0)
        libc.munmap(at, 4096)


KINDS = {"mappings": mappings, "mapping-storm": mapping_storm,
         "threads": threads, "forks": forks, "execs": execs, "names": names,
         "signals": signals, "deep-stacks": deep_stacks,
         "namespaces": namespaces, "generated-code": generated_code}
