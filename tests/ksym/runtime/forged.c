// SPDX-License-Identifier: Apache-2.0
// What an interpreter exports, in as far as it is asked for. VERSION: as
// Py_Version has it, or what the version is known by.

#define EXPORT __attribute__((visibility("default")))

#ifdef VERSION
EXPORT const unsigned long Py_Version = VERSION;
#ifndef CLAIMED_VERSION
#define CLAIMED_VERSION VERSION
#endif
#else
#define CLAIMED_VERSION 0
#endif
#ifndef FREE_THREADED
#define FREE_THREADED 0
#endif
#ifdef NEW_IN_39
EXPORT void PyFrame_GetCode(void) {}
#endif

EXPORT unsigned long PyCode_Type[52];
EXPORT unsigned long PyFrame_Type[52];
// A cookie, the version, and whether there is no global lock.
EXPORT unsigned long _PyRuntime[1024] = {0x7970677562656478, CLAIMED_VERSION,
                                         FREE_THREADED};

EXPORT void* _PyEval_EvalFrameDefault(void* thread, void* frame) {
  return thread == frame ? frame : thread;
}
EXPORT int PyGILState_GetThisThreadState(int number) { return number + 1; }
