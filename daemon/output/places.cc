// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/places.h"

#include <algorithm>
#include <map>

#include "daemon/output/stack_state.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

PlaceLine LineOf(const Profile& profile, const Frame& frame) {
  PlaceLine line;
  line.function.name = ksym::Printable(
      profile.String(frame.function != 0 ? frame.function : frame.name));
  if (line.function.name.empty()) line.function.name = "[unknown]";
  line.function.file = ksym::Printable(profile.String(frame.file));
  line.function.first_line = frame.first_line;
  line.line = frame.line;
  return line;
}

Place PlaceOf(const Profile& profile, const Frame& frame) {
  Place place;
  place.lines = {LineOf(profile, frame)};
  place.frame_type = frame.kind->otel_type;
  place.object.filename = ksym::Printable(profile.String(frame.object));
  if (place.object.filename.empty()) return place;
  if (!frame.kind->is_in_file) {
    if (place.object.filename == "[kernel]" && !frame.kind->image.empty()) {
      place.object.filename = frame.kind->image;
    }
    place.address = frame.address;
    return place;
  }
  place.object.build_id = ksym::Printable(profile.String(frame.build_id));
  place.address = frame.file_offset;
  return place;
}

Place PlaceOf(std::string_view mark) {
  PlaceLine line;
  line.function.name = mark;
  return {.object = {}, .lines = {std::move(line)}};
}

}  // namespace

std::span<const FrameId> Places::TakeChain(
    std::span<const FrameId>& leaf_first) const {
  size_t size = 1;
  while (size < leaf_first.size() &&
         profile_.frames[leaf_first[size - 1]].kind->is_inlined) {
    ++size;
  }
  const auto chain = leaf_first.first(size);
  leaf_first = leaf_first.subspan(size);
  return chain;
}

Place Places::PlaceOf(std::span<const FrameId> chain) const {
  Place place = profd::PlaceOf(profile_, profile_.frames[chain.back()]);
  std::vector<PlaceLine> inlined;
  for (const FrameId frame : chain.first(chain.size() - 1)) {
    inlined.push_back(LineOf(profile_, profile_.frames[frame]));
  }
  place.lines.insert(place.lines.begin(), inlined.begin(), inlined.end());
  return place;
}

void Places::CollectChains() {
  for (CallStackId id = 0; id < profile_.stacks.size(); ++id) {
    auto stack = profile_.Stack(id);
    while (!stack.empty()) {
      const auto chain = TakeChain(stack);
      if (chain.size() < 2) continue;
      of_chain_.try_emplace(Chain(chain.begin(), chain.end()), 0);
    }
  }
}

Places::Places(const Profile& profile) : profile_(profile) {
  std::vector<Place> of_frame;
  of_frame.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames) {
    of_frame.push_back(profd::PlaceOf(profile, frame));
  }
  const bool has_inlined = std::ranges::any_of(
      profile.frames, [](const Frame& f) { return f.kind->is_inlined; });
  if (has_inlined) CollectChains();
  // Inlined frames have no place of their own.
  for (size_t i = 0; i < of_frame.size(); ++i) {
    if (!profile.frames[i].kind->is_inlined) places_.push_back(of_frame[i]);
  }
  for (const auto& [chain, location] : of_chain_) {
    places_.push_back(PlaceOf(chain));
  }
  for (const ProfileSample& sample : profile.samples) AddMarks(sample);
  std::ranges::sort(places_);
  const auto repeated = std::ranges::unique(places_);
  places_.erase(repeated.begin(), repeated.end());
  of_frame_.reserve(of_frame.size());
  for (const Place& place : of_frame) {
    of_frame_.push_back(LocationOf(place));
  }
  for (auto& [chain, location] : of_chain_) {
    location = LocationOf(PlaceOf(chain));
  }
}

void Places::AppendLocations(const ProfileSample& sample,
                             std::vector<uint64_t>& out) const {
  const auto append = [&](StackState state, CallStackId stack, StackOf of) {
    if (!IsMissed(state)) AppendStack(profile_.Stack(stack), out);
    if (const auto mark = MarkOf(state, of)) {
      out.push_back(LocationOf(profd::PlaceOf(kStackMarks[*mark])));
    }
  };
  append(sample.kernel_state, sample.kernel, StackOf::kKernel);
  append(sample.user_state, sample.user, StackOf::kUser);
}

void Places::AppendStack(std::span<const FrameId> leaf_first,
                         std::vector<uint64_t>& out) const {
  while (!leaf_first.empty()) {
    const auto chain = TakeChain(leaf_first);
    out.push_back(chain.size() == 1
                      ? of_frame_[chain.front()]
                      : of_chain_.at(Chain(chain.begin(), chain.end())));
  }
}

void Places::AddMarks(const ProfileSample& sample) {
  for (const auto mark : {MarkOf(sample.user_state, StackOf::kUser),
                          MarkOf(sample.kernel_state, StackOf::kKernel)}) {
    if (mark) places_.push_back(profd::PlaceOf(kStackMarks[*mark]));
  }
}

uint64_t Places::LocationOf(const Place& place) const {
  const auto at = std::ranges::lower_bound(places_, place);
  return static_cast<uint64_t>(at - places_.begin()) + 1;
}

std::optional<PlaceObject> MainModule(const Profile& profile) {
  std::map<PlaceObject, uint64_t> counts;
  for (const ProfileSample& sample : profile.samples) {
    const auto stack = profile.Stack(sample.user);
    if (stack.empty()) continue;
    PlaceObject object = PlaceOf(profile, profile.frames[stack.back()]).object;
    if (!object.filename.empty()) counts[std::move(object)] += sample.count;
  }
  const auto most = std::ranges::max_element(
      counts, {}, [](const auto& entry) { return entry.second; });
  if (most == counts.end()) return std::nullopt;
  return most->first;
}

}  // namespace profd
