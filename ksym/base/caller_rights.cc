// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/caller_rights.h"

#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace ksym {
namespace {

struct Capabilities {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets = {};

  bool Get() { return ::syscall(SYS_capget, &header, sets.data()) == 0; }
  bool Set() { return ::syscall(SYS_capset, &header, sets.data()) == 0; }
};

// Whether the file that was executed added rights, as the kernel says.
bool HasMoreThanCaller() { return ::getauxval(AT_SECURE) != 0; }

}  // namespace

// That a process may lower its own cannot fail; if it did, going on with them
// is what must not be.
void GiveUpFileCapabilities() {
  if (!HasMoreThanCaller()) return;
  Capabilities none;
  if (!none.Set()) std::abort();
}

CallerRights::CallerRights() {
  Capabilities capabilities;
  if (!HasMoreThanCaller() || !capabilities.Get()) return;
  // The permitted set stays, from which the destructor takes them back.
  for (auto& set : capabilities.sets) set.effective = 0;
  if (!capabilities.Set()) std::abort();
  lowered_ = true;
}

CallerRights::~CallerRights() {
  Capabilities capabilities;
  if (!lowered_ || !capabilities.Get()) return;
  for (auto& set : capabilities.sets) set.effective = set.permitted;
  capabilities.Set();
}

}  // namespace ksym
