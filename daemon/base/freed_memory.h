// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace profd {

// Makes blocks of a quarter of a megabyte and more go back to the kernel as
// soon as they are freed. By itself the C library takes a large block that was
// freed for a sign that there will be others, and keeps what each thread used;
// a capture needs such blocks once, to read symbols and tables. Call before
// there are threads.
void ReturnFreedMemory();

// Gives pages that were freed within the heap back to the kernel: what a storm
// took is scattered, and the C library returns only what lies at the end. Cost:
// a look at all free blocks; others who allocate wait meanwhile, some ms for
// 100 MB.
void ReturnUnusedMemory();

// Gives back the pages of this program's and its libraries' files that are
// resident: code and constants, which nobody writes. What is used again comes
// back from the page cache, some microseconds for 16 pages, or from the disk.
// Call it where much was used that is not needed again, from any thread. A
// debugger's breakpoints in them go as well.
void ReturnFilePages();

}  // namespace profd
