#pragma once

namespace profd {

// Makes blocks of a quarter of a megabyte and more go back to the kernel as
// soon as they are freed. By itself the C library takes a large block that was
// freed for a sign that there will be others, and keeps what each thread used;
// a capture needs such blocks once, to read symbols and tables. Call before
// there are threads.
void ReturnFreedMemory();

}  // namespace profd
