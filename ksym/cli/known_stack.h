// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ksym {

// What a program's threads have, whatever RLIMIT_STACK says: Linux's default.
// Demangling alone may take 1 MiB, see demangle.cc.
inline constexpr size_t kKnownStackBytes = size_t{8} << 20;

using ProgramBody = int (*)(int argc, char** argv);

// Returns body(argc, argv). Where RLIMIT_STACK leaves less than
// kKnownStackBytes it runs in a thread that has them, and the calling one waits
// with all signals blocked. Threads that are started from now on have that
// stack, too. Programs that are executed have the limit as it was. 1 with a
// line on standard error if there can be no such thread, or if the body throws,
// as it does when there is not enough memory. Where another thread throws, the
// program ends at once with the same. Call it in main(), before there are
// threads.
int RunOnKnownStack(ProgramBody body, int argc, char** argv);

}  // namespace ksym
