// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/kind_select.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace profd {

ksym::Status KnowsKind(std::string_view name,
                       const std::vector<SampleKind>& kinds) {
  if (name.empty() || FindKind(kinds, name) != nullptr) return {};
  return ksym::Fail(ksym::ErrorCode::kInvalid,
                    "there are no samples of kind \"" + std::string(name) +
                        "\", only of " + KindList(kinds));
}

ksym::Status ShowKind(std::string_view name, Profile& profile) {
  std::vector<SampleKind>& kinds = profile.metadata.kinds;
  auto known = KnowsKind(name, kinds);
  if (!known || name.empty()) return known;
  const SampleKind* found = FindKind(kinds, name);
  const auto chosen = static_cast<SampleKindId>(found - kinds.data());
  if (chosen == 0) return {};
  // The others keep their order behind it.
  std::rotate(kinds.begin(), kinds.begin() + chosen,
              kinds.begin() + chosen + 1);
  for (ProfileSample& sample : profile.samples) {
    if (sample.kind == chosen) {
      sample.kind = 0;
    } else if (sample.kind < chosen) {
      ++sample.kind;
    }
  }
  return {};
}

void SumThreadStates(Profile& profile) {
  std::vector<SampleKind>& kinds = profile.metadata.kinds;
  if (!AreThreadStates(kinds)) return;
  for (ProfileSample& sample : profile.samples) {
    sample.value = ValueOf(kinds[sample.kind], sample.count, sample.value);
    sample.kind = 0;
  }
  kinds = {SumOfThreadStates(kinds)};
}

bool HasSeveralValues(const Profile& profile) {
  const std::vector<SampleKind>& kinds = profile.metadata.kinds;
  return kinds.size() > 1 || kinds.front().has_values;
}

void KeepFirstKind(Profile& profile) {
  if (!HasSeveralValues(profile)) return;
  std::vector<SampleKind>& kinds = profile.metadata.kinds;
  kinds.resize(1);
  std::erase_if(profile.samples,
                [](const ProfileSample& sample) { return sample.kind != 0; });
  SampleKind& kind = kinds.front();
  if (!kind.has_values) return;
  kind.has_values = false;
  kind.frequency_hz = 0;
  kind.count_period = 1;
  for (ProfileSample& sample : profile.samples) {
    sample.count = std::exchange(sample.value, 0);
  }
  // What lasted no time is no sample of it.
  std::erase_if(profile.samples,
                [](const ProfileSample& sample) { return sample.count == 0; });
}

}  // namespace profd
