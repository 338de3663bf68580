#include "daemon/output/summary.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string_view>

namespace profd {
namespace {

// What helps against it; empty: nothing that an option could do.
std::string_view CureOf(LossCause cause) {
  switch (cause) {
    case LossCause::kCountsFull:
      return "raise --hash-storage-size";
    case LossCause::kRingFull:
    case LossCause::kStackMissing:
      return "raise --stack-storage-size";
  }
  return {};
}

std::string_view CureOf(DamageCause cause) {
  switch (cause) {
    case DamageCause::kStackFault:
      return {};
    case DamageCause::kCollision:
      return "raise --stack-storage-size or use --stack-map=exact";
    case DamageCause::kTruncated:
      return "raise --max-stack-depth";
  }
  return {};
}

// " (counts-full 3: cure, ring-full 1: cure)", or nothing if all are 0.
template <typename Cause, size_t kCauses>
void AppendCauses(const std::array<uint64_t, kCauses>& counts,
                  std::string& out) {
  std::string_view separator = " (";
  for (size_t i = 0; i < kCauses; ++i) {
    if (counts[i] == 0) continue;
    const auto cause = static_cast<Cause>(i);
    fmt::format_to(std::back_inserter(out), "{}{} {}", separator, Name(cause),
                   counts[i]);
    if (!CureOf(cause).empty()) {
      fmt::format_to(std::back_inserter(out), ": {}", CureOf(cause));
    }
    separator = ", ";
  }
  if (separator == ", ") out += ')';
}

}  // namespace

std::string SummaryLine(const Profile& profile) {
  const Accounting& accounting = profile.accounting;
  std::string out =
      fmt::format("{} samples taken, {} emitted, {} lost", accounting.taken,
                  accounting.emitted, accounting.lost());
  AppendCauses<LossCause>(accounting.lost_by_cause, out);
  std::string damaged;
  AppendCauses<DamageCause>(accounting.damaged_by_cause, damaged);
  if (!damaged.empty()) {
    out += "; incomplete stacks";
    out += damaged;
  }
  if (accounting.time_running_ns < accounting.time_enabled_ns) {
    const uint64_t idle_ns =
        accounting.time_enabled_ns - accounting.time_running_ns;
    fmt::format_to(std::back_inserter(out),
                   "\nthe event did not run for {:.2g} % of the time: the "
                   "kernel multiplexed or throttled it, lower the rate",
                   100.0 * static_cast<double>(idle_ns) /
                       static_cast<double>(accounting.time_enabled_ns));
  }
  return out;
}

}  // namespace profd
