#include "daemon/oneshot/start_line.h"

#include <fmt/format.h>

#include <optional>

#include "daemon/output/text.h"

namespace profd {

std::string StartLine(const ProfileOptions& options,
                      const CaptureMetadata& metadata) {
  TextHeaderOptions header = {
      .frequency_hz = metadata.frequency_hz,
      .count_period = metadata.count_period,
      .pids = options.capture.sampler.pids,
      .tids = options.capture.sampler.tids,
      .cpus = options.capture.cpus ? metadata.cpus : "",
      .duration_seconds = options.duration
                              ? std::optional(options.duration->count())
                              : std::nullopt};
  if (!options.capture.sampler.kernel_stacks) {
    header.stacks = TextHeaderOptions::Stacks::kUser;
  } else if (!options.capture.sampler.user_stacks) {
    header.stacks = TextHeaderOptions::Stacks::kKernel;
  }
  std::string line = TextHeader(header);
  while (line.ends_with('\n')) line.pop_back();
  if (!options.command.empty()) {
    const std::string rate =
        metadata.frequency_hz != 0
            ? fmt::format("at {} Hertz", metadata.frequency_hz)
            : fmt::format("every {} events", metadata.count_period);
    line = fmt::format("Sampling {} of {} and its children until it ends", rate,
                       options.command.front());
  }
  return fmt::format("{} [event {}, CPUs {}, own priority {}]", line,
                     metadata.event, metadata.cpus,
                     OwnPriorityName(options.own_priority));
}

}  // namespace profd
