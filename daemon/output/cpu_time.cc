// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/cpu_time.h"

#include <fmt/format.h>

#include <string_view>

#include "daemon/profile/profile_terms.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
// More are no list of this machine's.
constexpr uint32_t kMaxCpus = 1u << 16;

// CPU seconds of the first kind's samples but those of idle CPUs, which have no
// process.
std::optional<double> CpuSeconds(const Profile& profile) {
  const auto each = SecondsPerSample(profile.metadata);
  if (!each) return std::nullopt;
  uint64_t samples = 0;
  for (const ProfileSample& sample : profile.samples) {
    const bool is_idle =
        sample.pid == 0 && profile.String(sample.comm).starts_with("swapper");
    if (sample.kind == 0 && !is_idle) samples += sample.count;
  }
  return static_cast<double>(samples) * *each;
}

double Duration(const Profile& profile) {
  return static_cast<double>(profile.metadata.duration_ns) / kNsPerSecond;
}

}  // namespace

std::optional<double> SecondsPerSample(const CaptureMetadata& metadata) {
  const auto ns = NanosecondsPerSample(metadata);
  if (!ns) return std::nullopt;
  return static_cast<double>(*ns) / kNsPerSecond;
}

size_t CountCpus(const CaptureMetadata& metadata) {
  size_t cpus = 0;
  std::string_view rest = metadata.cpus;
  while (!rest.empty()) {
    std::string_view range = ksym::TakeField(rest, ',');
    const bool is_one = range.find('-') == std::string_view::npos;
    const std::string_view first = ksym::TakeField(range, '-');
    const auto low = ksym::ParseUnsigned<uint32_t>(first, 10);
    const auto high = is_one ? low : ksym::ParseUnsigned<uint32_t>(range, 10);
    if (!low || !high || *high < *low || *high > kMaxCpus) return 0;
    cpus += *high - *low + 1;
  }
  return cpus;
}

std::optional<double> CpusUsed(const Profile& profile) {
  const auto seconds = CpuSeconds(profile);
  if (!seconds || profile.metadata.duration_ns == 0) return std::nullopt;
  return *seconds / Duration(profile);
}

std::string CpuTimeLine(const Profile& profile) {
  const auto used = CpusUsed(profile);
  if (!used) return {};
  const double seconds = Duration(profile);
  std::string line = fmt::format("ran {:.2f} s of CPU time in {:.1f} s: {:.2f}",
                                 *used * seconds, seconds, *used);
  if (const size_t cpus = CountCpus(profile.metadata); cpus > 0) {
    line += fmt::format(" of {}", cpus);
  }
  return line + (line.ends_with(" 1") ? " CPU" : " CPUs");
}

}  // namespace profd
