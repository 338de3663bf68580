# SPDX-License-Identifier: Apache-2.0
"""Who calls whom in calls.cc and own_stack.c of the workloads, and whether a
stack says so."""

# Of each function of calls.cc who calls it; LIBRARY: a frame of no function
# here.
LIBRARY = "a library"
CALLERS = {
    "main": {LIBRARY},
    "Sort": {"main"},
    "Compare": {LIBRARY},
    "Allocate": {"main"},
    "Catch": {"main"},
    "Throw": {"Catch"},
    "Recurse": {"main", "Recurse"},
    "CallLibrary": {"main"},
    "OnSignal": {LIBRARY},
}
# Compare calls no library, but a signal interrupts it.
CALLS_OR_INTERRUPTED = set(CALLERS) | {LIBRARY}
OWN_STACK_FRAMES = ["OnOwnStack"] + ["Ping", "Pong"] * 50


def place(name):
    """A function of calls.cc, or LIBRARY."""
    name = name.split(".cold")[0]
    return name if name in CALLERS else LIBRARY


def is_taken_over(names):
    """When an exception was caught, the unwinder of libgcc writes where it goes
    on into its own frame, as return address, and then jumps. In these
    instructions the sampler cannot walk the stack: the catcher seems to have
    called the unwinder, and its own caller is not to be found. The first 16
    stacks are copied and followed; an emulated machine has more."""
    return names[0] == "Catch" and names[1:2] == ["_Unwind_RaiseException"]


def wrong_callers(names):
    """The (caller, callee) of calls.cc that cannot be, of names from the root
    on."""
    places = [place(name) for name in names]
    return [(caller, callee) for caller, callee in zip(places, places[1:])
            if caller not in CALLERS.get(callee, CALLS_OR_INTERRUPTED)]


def is_right_of_calls(names):
    """Whether a whole stack of calls.cc has its root and legal callers only."""
    return (names[:1] == ["_start"] and "main" in names
            and not wrong_callers(names))


def is_right_of_own_stack(names):
    """Whether a whole stack of own_stack.c is what it must be: all of its
    frames, or those that there are before the innermost is reached."""
    if names[:1] != ["_start"] or "main" not in names:
        return False
    inner = names[names.index("main") + 1:]
    return inner == OWN_STACK_FRAMES[:len(inner)]
