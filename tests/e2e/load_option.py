# SPDX-License-Identifier: Apache-2.0
"""--load KIND of the end-to-end tests: what they run beside.

    tests/e2e/test_unwind.py --load spin16 CallsTest.test_callers

KIND is one of loads.KINDS; without it, or with "calm", a test runs as the
machine is.
"""

import contextlib
import os
import sys

import loads

PROGRAMS = os.environ.get("KSYM_E2E_LOADS") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)),
    "../../build/release/tests/e2e/loads")
OPTION = "--load"

_kind = "calm"


def take(arguments):
    """Sets the load that the arguments name, and returns the others."""
    global _kind  # pylint: disable=global-statement
    if OPTION not in arguments:
        return arguments
    place = arguments.index(OPTION)
    _kind = "".join(arguments[place + 1:place + 2])
    if _kind not in loads.KINDS:
        sys.exit(f"{OPTION} {_kind}: there are " + ", ".join(loads.KINDS))
    return arguments[:place] + arguments[place + 2:]


def is_calm():
    return _kind == "calm"


@contextlib.contextmanager
def beside():
    """Runs the load; a group of tests shares one. The test itself, which waits
    for what it tests and then reads much, has a CPU when it wants one; what it
    starts is ordinary."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with loads.running(_kind, PROGRAMS):
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK,
                                  os.sched_param(1))
        try:
            yield
        finally:
            os.sched_setscheduler(0, *before)
