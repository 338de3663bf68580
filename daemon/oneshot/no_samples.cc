// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/no_samples.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 10;

// The letter behind "(comm) " in /proc/PID/stat; 0: it does not exist.
char StateOf(uint32_t id) {
  const auto stat = ksym::ReadFile(fmt::format("/proc/{}/stat", id), kMaxBytes);
  if (!stat) return 0;
  // The last one: the command may have parentheses of its own.
  const size_t end = stat->rfind(')');
  return end == std::string::npos || end + 2 >= stat->size() ? 0
                                                             : (*stat)[end + 2];
}

// "process 12 slept (in do_poll)".
std::string DescribeOne(std::string_view what, uint32_t id) {
  const char state = StateOf(id);
  if (state == 0) {
    return fmt::format("{} {} does not exist any more", what, id);
  }
  if (state == 'Z' || state == 'X') {
    return fmt::format("{} {} has ended", what, id);
  }
  if (state == 'T' || state == 't') {
    return fmt::format("{} {} is stopped", what, id);
  }
  if (state == 'R') {
    return fmt::format("{} {} did hardly run: sample longer, or raise -F", what,
                       id);
  }
  const auto place =
      ksym::ReadFile(fmt::format("/proc/{}/wchan", id), kMaxBytes);
  return fmt::format("{} {} slept{}", what, id,
                     place && !place->empty() && *place != "0"
                         ? fmt::format(" (in {})", *place)
                         : "");
}

std::string DescribeIds(std::string_view what,
                        const std::vector<uint32_t>& ids) {
  std::string text = DescribeOne(what, ids.front());
  if (ids.size() > 1) {
    text += fmt::format(", nor did the {} others run", ids.size() - 1);
  }
  return text;
}

std::string DescribeCgroup(const std::string& path) {
  const auto processes = ksym::ReadFile(path + "/cgroup.procs", kMaxBytes);
  if (!processes) return fmt::format("cgroup {} does not exist any more", path);
  const auto state = ksym::ReadFile(path + "/cgroup.events", kMaxBytes);
  const bool is_populated =
      state && state->find("populated 1") != std::string::npos;
  return is_populated ? fmt::format("the processes of cgroup {} slept", path)
                      : fmt::format("there is no process in cgroup {}", path);
}

}  // namespace

std::string WhyNoSamples(const ProfileOptions& options) {
  const BpfConfig& bpf = options.capture.bpf;
  std::string why;
  if (!options.command.empty()) {
    why = fmt::format(
        "{} ran for less than the time between two samples: raise -F",
        options.command.front());
  } else if (!bpf.pids.empty()) {
    why = DescribeIds("process", bpf.pids);
  } else if (!bpf.tids.empty()) {
    why = DescribeIds("thread", bpf.tids);
  } else if (!bpf.cgroup_path.empty()) {
    why = DescribeCgroup(bpf.cgroup_path);
  } else if (!bpf.cgroup_map_path.empty() || !bpf.mntns_map_path.empty()) {
    why =
        "nothing ran that the filter of --cgroupmap or --mntnsmap lets "
        "through";
  } else if (!options.capture.event.empty()) {
    why = fmt::format("event {} did not occur", options.capture.event);
  } else {
    why = "the CPUs were idle: -I samples idle ones, too";
  }
  if (options.capture.cpus) why += ", or other CPUs than those of -C ran it";
  return "no sample: " + why;
}

}  // namespace profd
