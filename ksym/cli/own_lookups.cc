// SPDX-License-Identifier: Apache-2.0
#include "ksym/cli/own_lookups.h"

#include <nss.h>

#include "ksym/base/linked_in.h"

namespace ksym {

void KeepLookupsInside() {
  if (!HasLibrariesLinkedIn()) return;
  (void)::__nss_configure_lookup("passwd", "files");
  (void)::__nss_configure_lookup("group", "files");
  (void)::__nss_configure_lookup("hosts", "files dns");
}

}  // namespace ksym
