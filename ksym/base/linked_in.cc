// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/linked_in.h"

#include <elf.h>
#include <link.h>

namespace ksym {
namespace {

// Is called for the program first, and ends there.
int LookForLoader(dl_phdr_info* info, size_t /*size*/, void* found) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_INTERP)
      *static_cast<bool*>(found) = true;
  }
  return 1;
}

}  // namespace

bool HasLibrariesLinkedIn() {
  bool has_loader = false;
  ::dl_iterate_phdr(LookForLoader, &has_loader);
  return !has_loader;
}

}  // namespace ksym
