// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/start_line.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "daemon/output/text.h"

namespace profd {
namespace {

// What else than ids chooses processes: "cgroup /sys/fs/cgroup/a".
std::string FilterOf(const BpfConfig& bpf) {
  std::string text;
  for (const auto& [what, path] :
       {std::pair("cgroup ", &bpf.cgroup_path),
        std::pair("cgroups of map ", &bpf.cgroup_map_path),
        std::pair("mount namespaces of map ", &bpf.mntns_map_path)}) {
    if (path->empty()) continue;
    text += (text.empty() ? "" : " and ") + std::string(what) + *path;
  }
  return text;
}

// "cpu-clock, irq_work_entry": what starts the samples of all kinds.
std::string EventsOf(const CaptureMetadata& metadata) {
  std::string text;
  std::string_view last;
  for (const SampleKind& kind : metadata.kinds) {
    if (kind.event == last) continue;
    last = kind.event;
    text += (text.empty() ? "" : ", ") + kind.event;
  }
  return text;
}

}  // namespace

std::string StartLine(const ProfileOptions& options,
                      const CaptureMetadata& metadata) {
  TextHeaderOptions header = {
      .frequency_hz = metadata.kinds.front().frequency_hz,
      .count_period = metadata.kinds.front().count_period,
      .pids = options.capture.bpf.pids,
      .tids = options.capture.bpf.tids,
      .filter = FilterOf(options.capture.bpf),
      .cpus = options.capture.cpus ? metadata.cpus : "",
      .duration_seconds = options.duration
                              ? std::optional(options.duration->count())
                              : std::nullopt};
  if (!options.capture.bpf.kernel_stacks) {
    header.stacks = TextHeaderOptions::Stacks::kUser;
  } else if (!options.capture.bpf.user_stacks) {
    header.stacks = TextHeaderOptions::Stacks::kKernel;
  }
  std::string line = TextHeader(header);
  while (line.ends_with('\n')) line.pop_back();
  if (!options.command.empty()) {
    const std::string rate =
        metadata.kinds.front().frequency_hz != 0
            ? fmt::format("at {} Hertz", metadata.kinds.front().frequency_hz)
            : fmt::format("every {} events",
                          metadata.kinds.front().count_period);
    line = fmt::format("Sampling {} of {} and its children until it ends", rate,
                       options.command.front());
  }
  return fmt::format("{} [event {}, CPUs {}, own priority {}]", line,
                     EventsOf(metadata), metadata.cpus,
                     OwnPriorityName(options.own_priority));
}

}  // namespace profd
