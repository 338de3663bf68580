// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/parked.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/profile/frame_kinds.h"
#include "daemon/profile/sample_kind.h"

namespace profd {
namespace {

// A thread waits at one place for more than that share of its life.
constexpr uint64_t kParkedPercent = 90;
// And for so many samples' time.
constexpr uint64_t kLeastSamples = 10;
constexpr uint64_t kSecondNs = 1'000'000'000;

using ThreadKey = std::pair<uint32_t, uint32_t>;  // pid and tid
using Place = std::pair<FrameId, CallStackId>;    // reason and user stack

// Whether a wait of this name may be one that nobody minds.
bool MayBeParked(std::string_view reason) {
  return !reason.ends_with(", D]") && !reason.ends_with(", iowait]");
}

// Where threads wait.
class Places {
 public:
  explicit Places(const Profile& profile)
      : profile_(profile),
        blocked_(FindKind(profile.metadata.kinds, kBlockedKind)) {}

  // Nothing: the sample is not of a wait that may be parked.
  std::optional<Place> Of(const ProfileSample& sample) {
    if (blocked_ == nullptr || sample.tid == 0 ||
        &profile_.metadata.kinds[sample.kind] != blocked_) {
      return std::nullopt;
    }
    const auto kernel = profile_.Stack(sample.kernel);
    if (kernel.empty()) return std::nullopt;
    const Frame& reason = profile_.frames[kernel.back()];
    if (!reason.kind->is_wait_reason ||
        !MayBeParked(profile_.String(reason.name))) {
      return std::nullopt;
    }
    return Place(kernel.back(), stacks_.Intern(profile_.Stack(sample.user)));
  }

  // Less time than that says nothing.
  uint64_t least_ns() const {
    if (blocked_ == nullptr || blocked_->frequency_hz == 0) return 0;
    return kLeastSamples * kSecondNs / blocked_->frequency_hz;
  }

 private:
  const Profile& profile_;
  const SampleKind* blocked_;
  CallStackTable stacks_;  // equal ones are one, which in a profile need not be
};

// Whether the sample says who ended its wait.
bool HasWaker(const Profile& profile, const ProfileSample& sample) {
  return std::ranges::any_of(profile.Stack(sample.kernel), [&](FrameId id) {
    return profile.frames[id].kind == &kWakerFrame;
  });
}

}  // namespace

ParkedTime MarkParked(std::span<const ThreadLife> lives, Profile& profile) {
  std::map<ThreadKey, uint64_t> life_of;
  for (const ThreadLife& life : lives) {
    life_of[{life.pid, life.tid}] += life.ns;
  }
  Places places(profile);
  std::map<std::pair<ThreadKey, Place>, std::vector<ProfileSample*>> waits;
  for (ProfileSample& sample : profile.samples) {
    const ThreadKey thread(sample.pid, sample.tid);
    const auto place = places.Of(sample);
    if (!place || !life_of.contains(thread)) continue;
    waits[{thread, *place}].push_back(&sample);
  }
  ParkedTime parked;
  ThreadKey last;  // of those that are parked
  for (const auto& [where, samples] : waits) {
    uint64_t waited = 0;
    for (const ProfileSample* sample : samples) waited += sample->value;
    const uint64_t life = life_of[where.first];
    // Divided first: the product could overflow, as a file may claim any life.
    if (waited < places.least_ns() || waited <= life / 100 * kParkedPercent) {
      continue;
    }
    for (ProfileSample* sample : samples) sample->parked = true;
    // Another such place is more than all of its life, so only by chance.
    if (parked.threads == 0 || where.first != last) ++parked.threads;
    last = where.first;
    parked.ns += waited;
  }
  return parked;
}

bool IsFolded(const Profile& profile, const ProfileSample& sample) {
  return sample.parked && !HasWaker(profile, sample);
}

void FoldParked(Profile& profile) {
  std::optional<CallStackId> folded;
  for (ProfileSample& sample : profile.samples) {
    if (!IsFolded(profile, sample)) continue;
    if (!folded) {
      profile.frames.push_back(
          {.name = profile.strings.Intern(kParkedName), .kind = &kWaitFrame});
      const std::array frame = {
          static_cast<FrameId>(profile.frames.size() - 1)};
      folded = profile.stacks.Append(frame);
    }
    sample.user_state = StackState::kNone;
    sample.user = 0;
    sample.kernel_state = StackState::kWhole;
    sample.kernel = *folded;
  }
  UnmarkParked(profile);
}

void UnmarkParked(Profile& profile) {
  for (ProfileSample& sample : profile.samples) sample.parked = false;
}

}  // namespace profd
