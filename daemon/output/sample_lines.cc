// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/sample_lines.h"

namespace profd {

SampleLines::SampleLines(const Profile& profile, const Makers& makers)
    : profile_(profile) {
  frames_.reserve(profile.frames.size());
  for (const Frame& frame : profile.frames) {
    frames_.push_back(lines_.Add(makers.frame(frame)));
  }
  SampleHeads heads;
  heads_.reserve(profile.samples.size());
  for (const ProfileSample& sample : profile.samples) {
    heads_.push_back(
        heads.Find(sample, [&] { return lines_.Add(makers.head(sample)); }));
  }
  for (size_t i = 0; i < marks_.size(); ++i) {
    marks_[i] = lines_.Add(makers.mark(kStackMarks[i]));
  }
  delimiter_ = lines_.Add(makers.mark("--"));
  lines_.Rank();
  for (uint32_t& number : frames_) number = lines_.RankOf(number);
  for (uint32_t& number : heads_) number = lines_.RankOf(number);
  for (uint32_t& number : marks_) number = lines_.RankOf(number);
  delimiter_ = lines_.RankOf(delimiter_);
}

void SampleLines::AddStack(const ProfileSample& sample, StackOf of,
                           KeyWriter& key) const {
  const bool is_user = of == StackOf::kUser;
  const StackState state = is_user ? sample.user_state : sample.kernel_state;
  if (!IsMissed(state)) {
    const CallStackId stack = is_user ? sample.user : sample.kernel;
    for (const FrameId frame : profile_.Stack(stack)) key.Add(frames_[frame]);
  }
  if (const auto mark = MarkOf(state, of)) key.Add(marks_[*mark]);
}

}  // namespace profd
