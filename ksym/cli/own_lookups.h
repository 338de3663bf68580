// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ksym {

// Where libraries are linked in, users, groups and hosts are found in
// /etc/passwd, /etc/group, /etc/hosts and by DNS, whatever nsswitch.conf(5)
// says: all else would be loaded. Elsewhere nothing. Call it before there are
// threads.
void KeepLookupsInside();

}  // namespace ksym
