// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/findings.h"

#include <string>
#include <string_view>

#include "daemon/oneshot/debian_package.h"
#include "daemon/oneshot/no_samples.h"
#include "daemon/output/cpu_time.h"
#include "daemon/output/obstacles.h"

namespace profd {
namespace {

// Chosen processes that use less of a CPU wait for most of the time.
constexpr double kMostlyWaiting = 0.5;

std::string CpuTime(const Profile& profile, const ProfileOptions& options) {
  std::string line = CpuTimeLine(profile);
  const BpfConfig& bpf = options.capture.bpf;
  const bool is_of_processes =
      !bpf.pids.empty() || !bpf.tids.empty() || !options.command.empty();
  if (is_of_processes && CpusUsed(profile).value_or(1) < kMostlyWaiting) {
    line +=
        "; else it waited: -e context-switches -c 1 shows where it stops "
        "running";
  }
  return line;
}

}  // namespace

void SayFindings(const Profile& profile, const ProfileOptions& options,
                 Progress& progress) {
  if (options.quiet || options.markup) return;
  if (profile.accounting.taken == 0) {
    progress.Say(options.replay_path.empty()
                     ? WhyNoSamples(options)
                     : "no sample: none was taken when this was captured");
    return;
  }
  const std::string time = CpuTime(profile, options);
  if (!time.empty()) progress.Say(time);
  const auto package_of = [](const std::string& path,
                             std::string_view build_id) {
    return DebugPackageOf(path, build_id);
  };
  for (const std::string& line :
       ObstacleLines(FindObstacles(profile), package_of)) {
    progress.Say(line);
  }
}

}  // namespace profd
