// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "daemon/profile/profile.h"

namespace profd {

// How long a thread lived while it was sampled, by the kernel's own clock.
struct ThreadLife {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t ns = 0;

  friend bool operator==(const ThreadLife&, const ThreadLife&) = default;
};

// The threads that MarkParked() found.
struct ParkedTime {
  size_t threads = 0;
  uint64_t ns = 0;

  friend bool operator==(const ParkedTime&, const ParkedTime&) = default;
};

// Marks the samples of threads that are parked, by this rule: the thread was
// blocked at one place for more than 90 % of its life. A place is a reason and
// a user stack; the kernel's frames may differ. Waits that nothing ends, "D" of
// ps, or for a disk are never parked: those are what one looks for. Nor is what
// fewer than ten samples' time says, which chance decides. The samples of what
// such a thread does otherwise are not marked.
//
// The samples must have their tids; lives of one pid and tid are added up, and
// a thread without one is not parked. Does nothing where no samples are of
// waits. O(samples and their frames).
ParkedTime MarkParked(std::span<const ThreadLife> lives, Profile& profile);

// The name of a frame that stands for all places where threads are parked.
inline constexpr std::string_view kParkedName = "[parked]";

// Whether that frame stands for the stack of this sample: it is marked, and has
// no waker. Those that have one stay: somebody asked who it is.
bool IsFolded(const Profile& profile, const ProfileSample& sample);

// Puts the frame "[parked]" in the place of the stacks of samples that are
// folded, so that all below one root are one, and takes the marks away. It has
// no number of threads: it is the same however samples are grouped, and in two
// captures. O(samples).
void FoldParked(Profile& profile);

// Takes the marks away: all stacks are shown as those of other threads.
void UnmarkParked(Profile& profile);

}  // namespace profd
