// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/own_capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace profd {

ksym::Result<uint64_t> EffectiveCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data = {};
  if (::syscall(SYS_capget, &header, data.data()) != 0) {
    return ksym::FailErrno(errno, "capget");
  }
  return uint64_t{data[1].effective} << 32 | data[0].effective;
}

ksym::Status DropCapabilities() {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return ksym::FailErrno(errno, "prctl");
  }
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none = {};
  if (::syscall(SYS_capset, &header, none.data()) != 0) {
    return ksym::FailErrno(errno, "capset");
  }
  return {};
}

}  // namespace profd
