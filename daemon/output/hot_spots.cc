// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/hot_spots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "daemon/output/cpu_time.h"
#include "daemon/output/summary.h"
#include "daemon/output/text_columns.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

// Shares from which a line of a table is bold, and coloured.
constexpr double kHotShare = 0.05;

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Folded stacks do not say of which files functions are.
bool HasModules(const Profile& profile) {
  return std::ranges::any_of(profile.frames, [](const Frame& frame) {
    return frame.kind->is_in_file && frame.object != 0;
  });
}

enum class Modules : uint8_t { kShown, kHidden };

std::string FunctionName(const Profile& profile, const Frame& frame,
                         Modules modules) {
  const std::string_view name = profile.String(frame.name);
  std::string text = ksym::Printable(name.empty() ? "[unknown]" : name);
  const std::string module =
      ksym::Printable(BaseName(profile.String(frame.object)));
  // A word in brackets says the module, or that there is none.
  if (modules == Modules::kHidden || module.empty() ||
      frame.reason != ksym::Unresolved::kNone)
    return text;
  return text + (module.front() == '[' ? " " + module : " [" + module + "]");
}

std::string NameOf(const Profile& profile, const Frame& frame, SpotKind kind,
                   Modules modules) {
  const std::string_view file = profile.String(frame.file);
  if (kind == SpotKind::kLine && !file.empty()) {
    return fmt::format("{}:{}", ksym::Printable(file), frame.line);
  }
  if (kind == SpotKind::kModule) {
    const std::string_view module = profile.String(frame.object);
    if (!module.empty()) return ksym::Printable(module);
    return ksym::Printable(profile.String(frame.name));
  }
  return FunctionName(profile, frame, modules);
}

// Adds up the samples of a profile by names.
class Counter {
 public:
  explicit Counter(const Profile& profile) : profile_(profile) {}

  std::vector<HotSpot> Run(SpotKind kind, Modules modules) {
    if (kind == SpotKind::kProcess || kind == SpotKind::kComm) {
      for (const ProfileSample& sample : profile_.samples) {
        std::string name = ksym::Printable(profile_.String(sample.comm));
        // Folded stacks do not tell it.
        if (kind == SpotKind::kProcess && sample.pid != 0) {
          name += fmt::format(" ({})", sample.pid);
        }
        const size_t spot = SpotNamed(std::move(name));
        spots_[spot].self += sample.count;
        spots_[spot].total += sample.count;
      }
    } else {
      spot_of_frame_.reserve(profile_.frames.size());
      for (const Frame& frame : profile_.frames) {
        spot_of_frame_.push_back(
            SpotNamed(NameOf(profile_, frame, kind, modules)));
      }
      for (const ProfileSample& sample : profile_.samples) Add(sample);
    }
    std::erase_if(spots_, [](const HotSpot& spot) { return spot.total == 0; });
    std::ranges::sort(spots_, [](const HotSpot& a, const HotSpot& b) {
      if (a.self != b.self) return a.self > b.self;
      return a.total != b.total ? a.total > b.total : a.name < b.name;
    });
    return std::move(spots_);
  }

 private:
  size_t SpotNamed(std::string name) {
    const auto [at, is_new] = by_name_.try_emplace(name, spots_.size());
    if (is_new) {
      spots_.push_back({.name = std::move(name)});
      last_sample_.push_back(0);
    }
    return at->second;
  }

  void Add(const ProfileSample& sample) {
    ++sample_number_;
    bool is_leaf = true;
    for (const CallStackId stack : {sample.kernel, sample.user}) {
      for (const FrameId frame : profile_.Stack(stack)) {
        const size_t spot = spot_of_frame_[frame];
        if (std::exchange(is_leaf, false)) spots_[spot].self += sample.count;
        // Once, however often a recursion is in the stack.
        if (std::exchange(last_sample_[spot], sample_number_) !=
            sample_number_) {
          spots_[spot].total += sample.count;
        }
      }
    }
    if (is_leaf) {
      HotSpot& spot = spots_[SpotNamed(std::string(kNoStackName))];
      spot.self += sample.count;
      spot.total += sample.count;
    }
  }

  const Profile& profile_;
  std::vector<HotSpot> spots_;
  std::vector<uint64_t> last_sample_;  // by spot: the last that had it
  std::unordered_map<std::string, size_t, ksym::TextHash> by_name_;
  std::vector<size_t> spot_of_frame_;
  uint64_t sample_number_ = 0;
};

double Percent(double part, double whole) {
  return whole == 0 ? 0 : 100 * part / whole;
}

// What the line is drawn with, and what ends it.
std::string_view BeginColour(double share, Colours colours) {
  if (colours == Colours::kOff || std::abs(share) < kHotShare) return "";
  return share > 0 ? "\x1b[1;31m" : "\x1b[1;34m";
}
std::string_view EndColour(double share, Colours colours) {
  return BeginColour(share, colours).empty() ? "" : "\x1b[0m";
}

// In front of a name in a table.
constexpr size_t kNumberColumns = 39;
constexpr size_t kMinNameColumns = 16;

std::string Fitted(const std::string& name, const HotSpotTable& table) {
  if (table.columns == 0) return name;
  return FitName(name,
                 std::max(table.columns, kNumberColumns + kMinNameColumns) -
                     kNumberColumns);
}

size_t RowsOf(size_t all, const HotSpotTable& table) {
  return table.top == 0 ? all : std::min(all, table.top);
}

void WriteRest(size_t all, size_t rows, std::string_view kind,
               OutputBuffer& out) {
  if (rows == all) return;
  out.text() += fmt::format("... and {} more (--top 0 shows every {})\n",
                            all - rows, kind);
}

// What one sample stands for; 0: not known.
double PerSample(const CaptureMetadata& metadata, MeasureUnit unit) {
  const double seconds = SecondsPerSample(metadata).value_or(0);
  if (unit == MeasureUnit::kCpuSeconds) return seconds;
  if (metadata.duration_ns == 0) return 0;
  return seconds / (static_cast<double>(metadata.duration_ns) / 1e9);
}

// Whether chance alone makes so large a difference of two counts; their
// variances are the counts themselves.
bool IsWithinError(const Measure& measure, double before, double after) {
  constexpr double kDeviations = 2;
  const double change = measure.after * after - measure.before * before;
  const double variance = measure.after * measure.after * after +
                          measure.before * measure.before * before;
  return change * change <= kDeviations * kDeviations * variance;
}

// The colour of a change and what ends it.
std::string_view BeginChange(const SpotDifference& spot, double share,
                             Colours colours) {
  if (spot.is_within_error && colours == Colours::kOn) return "\x1b[90m";
  return BeginColour(share, colours);
}

}  // namespace

std::string FunctionOf(const Profile& profile, const Frame& frame) {
  return FunctionName(profile, frame, Modules::kShown);
}

ksym::Result<SpotKind> ParseSpotKind(std::string_view name) {
  for (const SpotKind kind :
       {SpotKind::kFunction, SpotKind::kModule, SpotKind::kComm,
        SpotKind::kProcess, SpotKind::kLine}) {
    if (Name(kind) == name) return kind;
  }
  return ksym::Fail(ksym::ErrorCode::kInvalid,
                    fmt::format("'{}' is none of function, module, comm, "
                                "process, line",
                                name));
}

std::string_view Name(SpotKind kind) {
  switch (kind) {
    case SpotKind::kFunction:
      return "function";
    case SpotKind::kModule:
      return "module";
    case SpotKind::kComm:
      return "comm";
    case SpotKind::kProcess:
      return "process";
    case SpotKind::kLine:
      return "line";
  }
  return "";
}

std::vector<HotSpot> FindHotSpots(const Profile& profile, SpotKind kind) {
  return Counter(profile).Run(
      kind, HasModules(profile) ? Modules::kShown : Modules::kHidden);
}

void WriteHotSpots(const Profile& profile, const HotSpotTable& table,
                   OutputBuffer& out) {
  const std::vector<HotSpot> spots = FindHotSpots(profile, table.kind);
  const auto all = static_cast<double>(SamplesOf(profile));
  out.text() += CaptureLine(profile) + '\n';
  out.text() += fmt::format("{:>7} {:>7} {:>10} {:>10}  {}\n", "self%",
                            "total%", "self", "total", Name(table.kind));
  const size_t rows = RowsOf(spots.size(), table);
  for (const HotSpot& spot : std::span(spots).first(rows)) {
    const double share = static_cast<double>(spot.self) / std::max(all, 1.0);
    out.text() += fmt::format("{}{:7.2f} {:7.2f} {:10} {:10}  {}{}\n",
                              BeginColour(share, table.colours), 100 * share,
                              Percent(static_cast<double>(spot.total), all),
                              spot.self, spot.total, Fitted(spot.name, table),
                              EndColour(share, table.colours));
    if (!out.PassOn()) return;
  }
  WriteRest(spots.size(), rows, Name(table.kind), out);
}

std::string_view Name(MeasureUnit unit) {
  switch (unit) {
    case MeasureUnit::kShares:
      return "share of samples";
    case MeasureUnit::kCpus:
      return "CPUs";
    case MeasureUnit::kCpuSeconds:
      return "CPU seconds";
  }
  return "";
}

Measure MeasureOf(const Profile& before, const Profile& after) {
  const bool are_commands =
      !before.metadata.command.empty() && !after.metadata.command.empty();
  Measure measure;
  measure.unit = are_commands ? MeasureUnit::kCpuSeconds : MeasureUnit::kCpus;
  measure.before = PerSample(before.metadata, measure.unit);
  measure.after = PerSample(after.metadata, measure.unit);
  // One that does not say how it was taken leaves nothing but shares to
  // compare.
  if (measure.before > 0 && measure.after > 0) return measure;
  const auto share = [](const Profile& profile) {
    return 1 / std::max(static_cast<double>(SamplesOf(profile)), 1.0);
  };
  return {.unit = MeasureUnit::kShares,
          .before = share(before),
          .after = share(after)};
}

bool HaveModules(const Profile& before, const Profile& after) {
  return HasModules(before) && HasModules(after);
}

Difference Compare(const Profile& before, const Profile& after, SpotKind kind) {
  const Measure measure = MeasureOf(before, after);
  Difference difference;
  difference.unit = measure.unit;
  difference.before = static_cast<double>(SamplesOf(before)) * measure.before;
  difference.after = static_cast<double>(SamplesOf(after)) * measure.after;
  const Modules modules =
      HaveModules(before, after) ? Modules::kShown : Modules::kHidden;
  struct Counts {
    double before = 0;
    double after = 0;
  };
  std::map<std::string, Counts> by_name;
  for (const HotSpot& spot : Counter(before).Run(kind, modules)) {
    by_name[spot.name].before = static_cast<double>(spot.self);
  }
  for (const HotSpot& spot : Counter(after).Run(kind, modules)) {
    by_name[spot.name].after = static_cast<double>(spot.self);
  }
  for (const auto& [name, counts] : by_name) {
    SpotDifference spot = {.name = name,
                           .before = counts.before * measure.before,
                           .after = counts.after * measure.after};
    // Equal but for rounding.
    constexpr double kSame = 1e-9;
    if (std::abs(spot.change()) <= kSame * std::max(spot.before, spot.after)) {
      continue;
    }
    spot.is_within_error = IsWithinError(measure, counts.before, counts.after);
    difference.spots.push_back(std::move(spot));
  }
  std::ranges::stable_sort(
      difference.spots, [](const SpotDifference& a, const SpotDifference& b) {
        if (a.is_within_error != b.is_within_error) return b.is_within_error;
        return std::abs(a.change()) > std::abs(b.change());
      });
  return difference;
}

void WriteDifference(const Difference& difference, const HotSpotTable& table,
                     OutputBuffer& out) {
  const bool is_share = difference.unit == MeasureUnit::kShares;
  const double scale = is_share ? 100 : 1;
  out.text() +=
      fmt::format("self time in {}; all: {:.3f} before, {:.3f} after\n",
                  is_share ? "% of all samples" : Name(difference.unit),
                  difference.before * scale, difference.after * scale);
  out.text() += fmt::format("{:>10} {:>10} {:>10}   {}\n", "change", "before",
                            "after", Name(table.kind));
  const size_t rows = RowsOf(difference.spots.size(), table);
  const double whole = std::max({difference.before, difference.after, 1e-300});
  size_t uncertain = 0;
  for (const SpotDifference& spot : std::span(difference.spots).first(rows)) {
    uncertain += spot.is_within_error ? 1 : 0;
    const std::string_view colour =
        BeginChange(spot, spot.change() / whole, table.colours);
    out.text() +=
        fmt::format("{}{:+10.3f} {:10.3f} {:10.3f} {} {}{}\n", colour,
                    spot.change() * scale, spot.before * scale,
                    spot.after * scale, spot.is_within_error ? '~' : ' ',
                    Fitted(spot.name, table), colour.empty() ? "" : "\x1b[0m");
    out.PassOn();
  }
  if (difference.spots.empty()) {
    out.text() += fmt::format("no {} differs, in {}\n", Name(table.kind),
                              is_share ? "%" : Name(difference.unit));
  }
  WriteRest(difference.spots.size(), rows, Name(table.kind), out);
  if (uncertain > 0) {
    out.text() += "~ is within the sampling error: it may be chance\n";
  }
}

}  // namespace profd
