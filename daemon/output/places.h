// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/profile/profile.h"

namespace profd {

// Frames as pprof and OpenTelemetry's profiles have them, which is nearly the
// same. Texts are printable, as names of profiled programs may be made to
// deceive.

// It becomes a Mapping.
struct PlaceObject {
  std::string filename;  // empty: no mapping
  std::string build_id;  // lower-case hex, or empty
  auto operator<=>(const PlaceObject&) const = default;
};

// It becomes a Function.
struct PlaceFunction {
  std::string name;
  std::string file;         // empty: not known
  uint32_t first_line = 0;  // 0: not known
  auto operator<=>(const PlaceFunction&) const = default;
};

// It becomes a Line.
struct PlaceLine {
  PlaceFunction function;
  uint32_t line = 0;
  auto operator<=>(const PlaceLine&) const = default;
};

// It becomes a Location: a function with what is inlined there.
struct Place {
  PlaceObject object;
  std::vector<PlaceLine> lines;  // innermost first, at least one
  uint64_t address = 0;
  std::string_view frame_type = {};  // FrameKind::otel_type
  auto operator<=>(const Place&) const = default;
};

// The places of a profile's frames, and of the marks for what is missing of a
// stack, each once and sorted, so that their numbers do not depend on the order
// in which frames came. Inlined frames are at the place of the function that
// they are in.
class Places {
 public:
  // Cost: goes over all stacks and sorts the frames by their texts.
  explicit Places(const Profile& profile);

  // The place at index i has the location id i + 1.
  const std::vector<Place>& all() const { return places_; }
  // Appends the places of both of a sample's stacks, leaf first, with the marks
  // for what is missing of them.
  void AppendLocations(const ProfileSample& sample,
                       std::vector<uint64_t>& out) const;

 private:
  // Inlined frames and the function that they are in, innermost first. Most
  // often that is one frame.
  using Chain = std::vector<FrameId>;
  // Takes the first chain off a stack.
  std::span<const FrameId> TakeChain(
      std::span<const FrameId>& leaf_first) const;
  void CollectChains();
  void AddMarks(const ProfileSample& sample);
  Place PlaceOf(std::span<const FrameId> chain) const;
  uint64_t LocationOf(const Place& place) const;
  void AppendStack(std::span<const FrameId> leaf_first,
                   std::vector<uint64_t>& out) const;

  const Profile& profile_;
  std::vector<Place> places_;
  std::vector<uint64_t> of_frame_;      // of chains of one frame
  std::map<Chain, uint64_t> of_chain_;  // of longer ones
};

// pprof takes a profile's first mapping for the program. That is the file in
// which most user stacks begin; nothing where there are none.
std::optional<PlaceObject> MainModule(const Profile& profile);

}  // namespace profd
