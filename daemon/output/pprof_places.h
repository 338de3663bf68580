#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/profile/profile.h"

namespace profd {

// As ksym::AppendPrintable: names of profiled programs may be made to deceive.
std::string PprofText(std::string_view text);

// What becomes a Mapping.
struct PprofModule {
  std::string filename;  // empty: no mapping
  std::string build_id;  // lower-case hex, or empty
  auto operator<=>(const PprofModule&) const = default;
};

// What becomes a Location.
struct PprofPlace {
  PprofModule module;
  std::string function;
  uint64_t address = 0;
  auto operator<=>(const PprofPlace&) const = default;
};

// The places of a profile's frames, and of the marks for what is missing of a
// stack, each once and sorted, so that their numbers do not depend on the order
// in which frames came.
class PprofPlaces {
 public:
  // Cost: sorts the frames by their texts.
  explicit PprofPlaces(const Profile& profile);

  // The place at index i has the location id i + 1.
  const std::vector<PprofPlace>& all() const { return places_; }
  uint64_t LocationOf(FrameId frame) const { return of_frame_[frame]; }
  // Of a mark that the profile needs, such as kTruncatedMark.
  uint64_t LocationOf(std::string_view mark) const;

 private:
  void AddMarks(const ProfileSample& sample);
  uint64_t LocationOf(const PprofPlace& place) const;

  std::vector<PprofPlace> places_;
  std::vector<uint64_t> of_frame_;
};

// pprof takes a profile's first mapping for the program. That is the file in
// which most user stacks begin; nothing where there are none.
std::optional<PprofModule> MainModule(const Profile& profile);

}  // namespace profd
