// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// True for the kernel's "add@/module/NAME" and "remove@/module/NAME".
bool IsModuleUevent(std::string_view message);

// The kernel's broadcasts about modules (netlink(7), NETLINK_KOBJECT_UEVENT).
// Needs no privilege, but reaches only the initial network namespace.
class ModuleUevents {
 public:
  static ksym::Result<ModuleUevents> Open();

  // Whether a module came or went since the last call, or messages were lost.
  // Does not block.
  bool ReadChanged();

 private:
  explicit ModuleUevents(ksym::UniqueFd fd) : fd_(std::move(fd)) {}

  ksym::UniqueFd fd_;
};

}  // namespace profd
