// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/own_capabilities.h"

#include <linux/capability.h>
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

}  // namespace profd
