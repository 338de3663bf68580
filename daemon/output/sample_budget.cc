// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/sample_budget.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "daemon/output/resource_owner.h"

namespace profd {
namespace {

// Products of two 64-bit numbers.
__extension__ using Wide = unsigned __int128;

// The samples of one service and kind, among which some are drawn.
struct Stratum {
  std::vector<size_t> samples;  // places in the profile
  uint64_t count = 0;
  Wide size = 0;
};

// How much of all sizes a sample stands for; these add up.
uint64_t SizeOf(const SampleKind& kind, const ProfileSample& sample) {
  return kind.has_values ? sample.value : sample.count;
}

class BudgetKeeper {
 public:
  BudgetKeeper(const Profile& profile, const SampleLabels& labels,
               uint64_t budget, std::mt19937_64& random)
      : profile_(profile), labels_(labels), budget_(budget), random_(random) {}

  BudgetedSamples Keep() {
    for (size_t i = 0; i < profile_.samples.size(); ++i) {
      const ProfileSample& sample = profile_.samples[i];
      Stratum& all = services_[{ServiceOf(sample), sample.kind}];
      all.samples.push_back(i);
      all.count += sample.count;
      all.size += SizeOf(KindOf(sample), sample);
    }
    for (const auto& [service, all] : services_) {
      // Values that are all 0 have no parts to draw.
      if (all.count <= budget_ || all.size == 0) {
        for (const size_t i : all.samples) Add(profile_.samples[i]);
      } else {
        Draw(all);
        kept_.left_out += all.count - budget_;
      }
    }
    return std::move(kept_);
  }

 private:
  const SampleKind& KindOf(const ProfileSample& sample) const {
    return profile_.metadata.kinds[sample.kind];
  }

  // By its place in names_.
  uint32_t ServiceOf(const ProfileSample& sample) {
    const auto [known, is_new] =
        service_of_.try_emplace({sample.cgroup, sample.labels});
    if (is_new) {
      known->second =
          names_
              .try_emplace(ServiceName(OwnerOf(profile_, sample, labels_)),
                           static_cast<uint32_t>(names_.size()))
              .first->second;
    }
    return known->second;
  }

  void Add(const ProfileSample& sample) { kept_.samples.push_back(sample); }

  // All sizes one behind the other are cut into as many parts, which differ by
  // 1 at the most. In each one place is drawn, and whose it is gets the part.
  void Draw(const Stratum& all) {
    uint64_t part = 0;
    Wide drawn = DrawIn(all, part);
    Wide end = 0;  // of the sample's
    for (const size_t i : all.samples) {
      const ProfileSample& sample = profile_.samples[i];
      end += SizeOf(KindOf(sample), sample);
      Wide size = 0;
      while (part < budget_ && drawn < end) {
        size += Begin(all, part + 1) - Begin(all, part);
        if (++part < budget_) drawn = DrawIn(all, part);
      }
      if (size > 0) Add(Scaled(sample, static_cast<uint64_t>(size)));
    }
  }

  Wide Begin(const Stratum& all, uint64_t part) const {
    return all.size * part / budget_;
  }
  // Where in a part without a size does not matter: it is nobody's.
  Wide DrawIn(const Stratum& all, uint64_t part) {
    const Wide begin = Begin(all, part);
    const Wide size = Begin(all, part + 1) - begin;
    if (size == 0) return begin;
    return begin + Below(static_cast<uint64_t>(size));
  }
  uint64_t Below(uint64_t bound) {
    return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_);
  }

  ProfileSample Scaled(ProfileSample sample, uint64_t size) {
    if (!KindOf(sample).has_values) {
      sample.count = size;
      return sample;
    }
    // Rounded up as often as the fraction is large, so that it is right on
    // average.
    const Wide scaled = Wide{sample.count} * size;
    uint64_t count = static_cast<uint64_t>(scaled / sample.value);
    if (Below(sample.value) < static_cast<uint64_t>(scaled % sample.value)) {
      ++count;
    }
    sample.count = std::max<uint64_t>(count, 1);
    sample.value = size;
    return sample;
  }

  const Profile& profile_;
  const SampleLabels& labels_;
  const uint64_t budget_;
  std::mt19937_64& random_;
  std::map<std::pair<StringId, LabelSetId>, uint32_t> service_of_;
  std::map<std::string, uint32_t> names_;
  std::map<std::pair<uint32_t, SampleKindId>, Stratum> services_;
  BudgetedSamples kept_;
};

}  // namespace

BudgetedSamples KeepWithinBudget(const Profile& profile,
                                 const SampleLabels& labels, uint64_t per_hour,
                                 std::mt19937_64& random) {
  constexpr uint64_t kNsPerHour = 3'600'000'000'000;
  const Wide budget =
      Wide{per_hour} * profile.metadata.duration_ns / kNsPerHour;
  constexpr Wide kMost = UINT64_MAX;
  return BudgetKeeper(profile, labels,
                      static_cast<uint64_t>(std::clamp<Wide>(budget, 1, kMost)),
                      random)
      .Keep();
}

}  // namespace profd
