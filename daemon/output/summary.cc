// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/summary.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <numeric>
#include <set>
#include <string_view>

#include "ksym/base/printable.h"

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
    case DamageCause::kBroken:
      return {};
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

// "\nuser stacks: 99.1 % reach the outermost frame (not-yet 8, bad-read 1); 3
// helped by frame pointers", where they were walked by tables.
void AppendUserStackEnds(const Profile& profile, std::string& out) {
  const std::string& unwind = profile.metadata.unwind;
  const auto& ends = profile.accounting.user_stack_ends;
  const uint64_t total = std::accumulate(ends.begin(), ends.end(), uint64_t{0});
  if ((unwind != "auto" && unwind != "dwarf") || total == 0) return;
  const uint64_t whole = ends[static_cast<size_t>(StackEnd::kOutermost)] +
                         ends[static_cast<size_t>(StackEnd::kZeroFramePointer)];
  fmt::format_to(
      std::back_inserter(out),
      "\nuser stacks: {:.1f} % reach the outermost frame",
      100.0 * static_cast<double>(whole) / static_cast<double>(total));
  std::string_view separator = " (";
  for (size_t i = 0; i < kStackEnds; ++i) {
    const auto end = static_cast<StackEnd>(i);
    if (ends[i] == 0 || end == StackEnd::kOutermost ||
        end == StackEnd::kZeroFramePointer) {
      continue;
    }
    fmt::format_to(std::back_inserter(out), "{}{} {}", separator, Name(end),
                   ends[i]);
    separator = ", ";
  }
  if (separator == ", ") out += ')';
  if (profile.accounting.helped_by_frame_pointers != 0) {
    fmt::format_to(std::back_inserter(out), "; {} helped by frame pointers",
                   profile.accounting.helped_by_frame_pointers);
  }
}

// "\n31 frames of 2 files have no names: they were not read in time".
void AppendLateNames(const Profile& profile, std::string& out) {
  std::set<StringId> files;
  size_t frames = 0;
  for (const Frame& frame : profile.frames) {
    if (frame.reason != ksym::Unresolved::kNotInTime) continue;
    ++frames;
    files.insert(frame.object);
  }
  if (frames == 0) return;
  fmt::format_to(std::back_inserter(out),
                 "\n{} frames of {} files have no names: they were not read in "
                 "time",
                 frames, files.size());
}

}  // namespace

uint64_t SamplesOf(const Profile& profile) {
  uint64_t sum = 0;
  for (const ProfileSample& sample : profile.samples) sum += sample.count;
  return sum;
}

std::string CaptureLine(const Profile& profile) {
  const CaptureMetadata& metadata = profile.metadata;
  const SampleKind& kind = metadata.kinds.front();
  const std::string what = ksym::Printable(UnitName(kind));
  std::string text =
      fmt::format("{} {}, {} lost; {}", SamplesOf(profile), what,
                  profile.accounting.lost(), ksym::Printable(kind.event));
  if (kind.frequency_hz != 0) {
    text += fmt::format(" at {} Hz", kind.frequency_hz);
  }
  if (metadata.duration_ns != 0) {
    text += fmt::format(" for {:.1f} s",
                        static_cast<double>(metadata.duration_ns) / 1e9);
  }
  if (!metadata.hostname.empty()) {
    text += " on " + ksym::Printable(metadata.hostname);
  }
  return text;
}

std::string KindTitle(std::string_view host, const SampleKind& kind,
                      uint64_t sum) {
  std::string title(host);
  if (!host.empty()) title += ": ";
  if (kind.has_values && (AddsUpToThreads(kind) || AddsUpToCpus(kind))) {
    return title + fmt::format("{:.1f} s of time of {}, {}",
                               static_cast<double>(sum) / 1e9,
                               AddsUpToCpus(kind) ? "CPUs" : "threads",
                               kind.name);
  }
  const std::string_view unit = UnitName(kind);
  title += fmt::format("{} {}", sum, unit);
  if (kind.has_values && kind.name != unit) title += " of " + kind.name;
  return title;
}

std::string ProfileTitle(const Profile& profile) {
  return KindTitle(profile.metadata.hostname, profile.metadata.kinds.front(),
                   SamplesOf(profile));
}

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
  AppendUserStackEnds(profile, out);
  AppendLateNames(profile, out);
  if (profile.symbol_tables_evicted > 0) {
    fmt::format_to(std::back_inserter(out),
                   "\n{} symbol tables did not fit and had to make room: raise "
                   "--symbol-cache",
                   profile.symbol_tables_evicted);
  }
  return out;
}

}  // namespace profd
