#include "daemon/output/pprof_places.h"

#include <algorithm>
#include <map>

#include "daemon/output/stack_state.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

// What pprof's own tools call the kernel.
constexpr std::string_view kKernelMapping = "[kernel.kallsyms]";

PprofPlace PlaceOf(const Profile& profile, const Frame& frame) {
  PprofPlace place;
  place.function = PprofText(profile.String(frame.name));
  if (place.function.empty()) place.function = "[unknown]";
  place.module.filename = PprofText(profile.String(frame.module));
  if (frame.kind == FrameKind::kKernel) {
    if (place.module.filename == "[kernel]") {
      place.module.filename = kKernelMapping;
    }
    place.address = frame.address;
    return place;
  }
  if (place.module.filename.empty()) return place;
  place.module.build_id = PprofText(profile.String(frame.build_id));
  place.address = frame.file_offset;
  return place;
}

}  // namespace

std::string PprofText(std::string_view text) {
  std::string out;
  ksym::AppendPrintable(text, out);
  return out;
}

PprofPlaces::PprofPlaces(const Profile& profile) {
  std::vector<PprofPlace> of_frame;
  of_frame.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames) {
    of_frame.push_back(PlaceOf(profile, frame));
  }
  places_ = of_frame;
  for (const ProfileSample& sample : profile.samples) AddMarks(sample);
  std::ranges::sort(places_);
  const auto repeated = std::ranges::unique(places_);
  places_.erase(repeated.begin(), repeated.end());
  of_frame_.reserve(of_frame.size());
  for (const PprofPlace& place : of_frame) {
    of_frame_.push_back(LocationOf(place));
  }
}

void PprofPlaces::AddMarks(const ProfileSample& sample) {
  const auto add = [&](std::string_view mark) {
    places_.push_back({.module = {}, .function = std::string(mark)});
  };
  if (IsMissed(sample.user_state)) add(kMissedUserStack);
  if (IsMissed(sample.kernel_state)) add(kMissedKernelStack);
  if (LacksRoot(sample.user_state) || LacksRoot(sample.kernel_state)) {
    add(kTruncatedMark);
  }
}

uint64_t PprofPlaces::LocationOf(const PprofPlace& place) const {
  const auto at = std::ranges::lower_bound(places_, place);
  return static_cast<uint64_t>(at - places_.begin()) + 1;
}

uint64_t PprofPlaces::LocationOf(std::string_view mark) const {
  return LocationOf(PprofPlace{.module = {}, .function = std::string(mark)});
}

std::optional<PprofModule> MainModule(const Profile& profile) {
  std::map<PprofModule, uint64_t> counts;
  for (const ProfileSample& sample : profile.samples) {
    const auto stack = profile.Stack(sample.user);
    if (stack.empty()) continue;
    PprofModule module = PlaceOf(profile, profile.frames[stack.back()]).module;
    if (!module.filename.empty()) counts[std::move(module)] += sample.count;
  }
  const auto most = std::ranges::max_element(
      counts, {}, [](const auto& entry) { return entry.second; });
  if (most == counts.end()) return std::nullopt;
  return most->first;
}

}  // namespace profd
