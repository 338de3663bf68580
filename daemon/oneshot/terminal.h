// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace profd {

// The width of the terminal behind a descriptor; 80 where it does not say.
size_t TerminalColumns(int fd);

}  // namespace profd
