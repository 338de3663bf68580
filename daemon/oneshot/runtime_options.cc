// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/runtime_options.h"

#include <fmt/format.h>

namespace profd {

void RuntimeOptions::AddTo(CLI::App& app) {
  app.add_option("--runtimes", runtimes_,
                 "Language runtimes whose functions are shown: java, node, "
                 "python, none, or auto: all that are known")
      ->type_name("auto|none|java|node|python");
  app.add_option("--runtime-frames", frames_,
                 "A runtime's function stands in place of the native frame "
                 "that works through it (merged, the default), or before it "
                 "(all)")
      ->type_name("merged|all");
}

std::optional<std::string> RuntimeOptions::Apply(
    ProfileOptions& options) const {
  const auto runtimes = ParseRuntimes(runtimes_);
  if (!runtimes) {
    return fmt::format(
        "--runtimes '{}' is none of auto, none, java, node, python", runtimes_);
  }
  options.capture.runtimes = *runtimes;
  if (frames_ == "all") {
    options.runtime_frames = RuntimeFrames::kAll;
  } else if (frames_ == "merged") {
    options.runtime_frames = RuntimeFrames::kMerged;
  } else {
    return fmt::format("--runtime-frames '{}' is none of merged, all", frames_);
  }
  return std::nullopt;
}

}  // namespace profd
