// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/grace_period.h"

#include <bpf/bpf.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

// The smallest map of maps that there can be: its update waits, and nothing
// asks for what it holds.
ksym::Status WaitByMapUpdate() {
  const ksym::UniqueFd inner(bpf_map_create(BPF_MAP_TYPE_ARRAY, "ksym_grace_in",
                                            sizeof(uint32_t), sizeof(uint32_t),
                                            1, nullptr));
  if (!inner.valid()) return ksym::FailErrno(errno, "bpf_map_create");
  bpf_map_create_opts options = {};
  options.sz = sizeof(options);
  options.inner_map_fd = static_cast<uint32_t>(inner.get());
  const ksym::UniqueFd outer(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS,
                                            "ksym_grace", sizeof(uint32_t),
                                            sizeof(uint32_t), 1, &options));
  if (!outer.valid()) return ksym::FailErrno(errno, "bpf_map_create");
  const uint32_t key = 0;
  const int value = inner.get();
  if (bpf_map_update_elem(outer.get(), &key, &value, BPF_ANY) != 0) {
    return ksym::FailErrno(errno, "bpf_map_update_elem");
  }
  return {};
}

}  // namespace

ksym::Status WaitForRunningPrograms() {
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0) return {};
  return WaitByMapUpdate();
}

}  // namespace profd
