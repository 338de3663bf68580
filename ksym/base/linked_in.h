// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ksym {

// True where this program has all its libraries linked in and no loader, as
// those of the tar archive have. Such a program must load no library: that
// would bring the C library of the machine, of another version than the one
// inside. Reads the program's own headers. Any thread.
bool HasLibrariesLinkedIn();

}  // namespace ksym
