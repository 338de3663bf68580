// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ksym {

// A copy of the vdso's ELF image as the kernel mapped it into this process
// (vdso(7)); every process of the same architecture has the same one. Empty
// when the kernel gives none.
std::string OwnVdsoImage();

}  // namespace ksym
