// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace profd {

// For a program that fills about so much memory, works on it and ends: grows
// the heap by that at once and asks for large pages in it, so that the kernel
// is not called for each 4 KiB, and what is freed is used again. Parts of it
// that are not used take no memory. Where the C library or the kernel cannot do
// this nothing is changed. Call before there are threads.
void PrepareWorkingMemory(size_t bytes);

}  // namespace profd
