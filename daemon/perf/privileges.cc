// SPDX-License-Identifier: Apache-2.0
#include "daemon/perf/privileges.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "daemon/base/own_capabilities.h"
#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {

ksym::Status CheckCapturePrivileges() {
  const auto capabilities = EffectiveCapabilities();
  if (!capabilities) return ksym::Fail(capabilities.error());
  // It stands for both of those below (capabilities(7)).
  if (HasCapability(*capabilities, CAP_SYS_ADMIN)) return {};
  std::string missing;
  if (!HasCapability(*capabilities, CAP_BPF)) missing += " CAP_BPF";
  if (!HasCapability(*capabilities, CAP_PERFMON)) missing += " CAP_PERFMON";
  if (missing.empty()) return {};
  return ksym::Fail(ksym::ErrorCode::kPermission,
                    fmt::format("missing{}: run as root, or give the program "
                                "cap_bpf,cap_perfmon,cap_syslog,cap_sys_ptrace,"
                                "cap_dac_read_search with setcap",
                                missing));
}

std::string WhyNoEvents(std::string_view paranoid) {
  // Debian's own step: other kernels let CAP_PERFMON pass whatever it is.
  constexpr unsigned kLastCommonStep = 2;
  const auto value =
      ksym::ParseUnsigned<unsigned>(ksym::TakeField(paranoid, '\n'), 10);
  if (!value || *value <= kLastCommonStep) return {};
  return fmt::format(
      "; kernel.perf_event_paranoid is {}, with which this kernel wants "
      "CAP_SYS_ADMIN: run as root, or set it to {} with sysctl",
      *value, kLastCommonStep);
}

std::string WhyNoProgram(std::string_view lockdown) {
  if (!lockdown.contains("[confidentiality]")) return {};
  return "; the kernel is locked down (lockdown=confidentiality), so that no "
         "BPF program may read its memory: lockdown=integrity lets it work";
}

std::string WhyNoEventsHere() {
  return WhyNoEvents(
      ksym::ReadFile("/proc/sys/kernel/perf_event_paranoid", 64).value_or(""));
}

std::string WhyNoProgramHere() {
  return WhyNoProgram(
      ksym::ReadFile("/sys/kernel/security/lockdown", 256).value_or(""));
}

void RaiseLimits() {
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 &&
      files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_MEMLOCK, &unlimited);
}

}  // namespace profd
