// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/capture_settings.h"

#include "daemon/capture/bpf_config.h"
#include "daemon/service/labels.h"

namespace profd {
namespace {

// Stacks of threads that wait, of a CPU in a tenth of a second: 200 in a second
// are half a percent of it, at the most.
constexpr uint32_t kWaitStacksAtOnce = 20;

}  // namespace

CaptureOptions MakeCaptureOptions(const ServiceConfig& config) {
  CaptureOptions options;
  options.rate.frequency_hz = config.frequency_hz;
  options.unwind = ParseUnwind(config.stacks.unwind).value_or(Unwind::kAuto);
  options.runtimes =
      ParseRuntimes(config.stacks.runtimes).value_or(Runtimes::kAuto);
  options.cache_directory = config.stacks.cache_directory;
  options.bpf.unwind_bytes = config.stacks.memory_bytes;
  options.bpf.per_thread = Labels::Of(config.labels).tid;
  options.bpf.tells_slices = config.history.enabled;
  options.bpf.max_stack_depth = static_cast<uint32_t>(config.stacks.max_depth);
  if (config.waiting.enabled) {
    options.bpf.waits = WaitConfig{.frequency_hz = config.waiting.frequency_hz,
                                   .walks = WaitWalks::kIntervals,
                                   .stacks_at_once = kWaitStacksAtOnce};
  }
  return options;
}

}  // namespace profd
