// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/missing_ids.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>

namespace profd {

ksym::Result<std::vector<uint32_t>> MissingIds(const BpfConfig& bpf) {
  const auto& ids = bpf.tids.empty() ? bpf.pids : bpf.tids;
  std::vector<uint32_t> missing;
  for (const uint32_t id : ids) {
    // EPERM says that it is there, and another user's (kill(2)).
    if (::kill(static_cast<pid_t>(id), 0) != 0 && errno == ESRCH) {
      missing.push_back(id);
    }
  }
  if (!ids.empty() && missing.size() == ids.size()) {
    return ksym::Fail(
        ksym::ErrorCode::kNotFound,
        fmt::format("there is no {} {}{}",
                    bpf.tids.empty() ? "process" : "thread", missing.front(),
                    missing.size() > 1 ? " nor any other of the list" : ""));
  }
  return missing;
}

std::string MissingText(const std::vector<uint32_t>& missing) {
  if (missing.empty()) return {};
  return fmt::format("there is no {}{}", missing.front(),
                     missing.size() > 1
                         ? fmt::format(" nor {} others", missing.size() - 1)
                         : "");
}

}  // namespace profd
