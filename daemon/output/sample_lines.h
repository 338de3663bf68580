// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/stack_state.h"
#include "daemon/output/text_pieces.h"
#include "daemon/profile/profile.h"

namespace profd {

// The lines of an output in which a sample is a list of them: for each frame,
// for what a sample has besides its stacks, and for marks. Each is made once,
// and a sample is a key of their ranks. No line may begin with another one.
class SampleLines {
 public:
  struct Makers {
    std::function<std::string(const Frame&)> frame;
    std::function<std::string(const ProfileSample&)> head;
    std::function<std::string(std::string_view)> mark;
  };
  // The profile lives longer. O(frames, samples).
  SampleLines(const Profile& profile, const Makers& makers);

  // Adds one of the sample's stacks, leaf first, with its mark.
  void AddStack(const ProfileSample& sample, StackOf of, KeyWriter& key) const;
  // Ranks: of the sample with that index, and of the line between both stacks.
  uint32_t HeadOf(size_t sample) const { return heads_[sample]; }
  uint32_t delimiter() const { return delimiter_; }

  unsigned rank_bits() const { return lines_.rank_bits(); }
  std::string_view Text(uint32_t rank) const { return lines_.Text(rank); }

 private:
  const Profile& profile_;
  TextPieces lines_;
  // Numbers in lines_, and ranks when these are there.
  std::vector<uint32_t> frames_;  // by FrameId
  std::vector<uint32_t> heads_;   // by index of the sample
  std::array<uint32_t, kStackMarks.size()> marks_ = {};
  uint32_t delimiter_ = 0;
};

}  // namespace profd
