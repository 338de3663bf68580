// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/kind_select.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ksym/base/word_list.h"

namespace profd {

ksym::Result<SampleKindId> PlaceOfKind(std::string_view name,
                                       const std::vector<SampleKind>& kinds) {
  if (name.empty()) return SampleKindId{0};
  auto found = std::ranges::find(kinds, name, &SampleKind::name);
  if (found == kinds.end() && name == "samples") {
    found = std::ranges::find(kinds, false, &SampleKind::has_values);
  }
  if (found != kinds.end()) {
    return static_cast<SampleKindId>(found - kinds.begin());
  }
  std::vector<std::string_view> names;
  names.reserve(kinds.size());
  for (const SampleKind& kind : kinds) names.push_back(kind.name);
  return ksym::Fail(ksym::ErrorCode::kInvalid,
                    "there are no samples of kind \"" + std::string(name) +
                        "\", only of " + ksym::Enumerate(names));
}

ksym::Status KnowsKind(std::string_view name,
                       const std::vector<SampleKind>& kinds) {
  const auto place = PlaceOfKind(name, kinds);
  if (!place) return ksym::Fail(place.error());
  return {};
}

ksym::Status ShowKind(std::string_view name, Profile& profile) {
  std::vector<SampleKind>& kinds = profile.metadata.kinds;
  const auto place = PlaceOfKind(name, kinds);
  if (!place) return ksym::Fail(place.error());
  const SampleKindId chosen = *place;
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
  if (!kinds.front().has_values) return;
  for (ProfileSample& sample : profile.samples) sample.count = sample.value;
  // Samples that lasted no time are none of it.
  std::erase_if(profile.samples,
                [](const ProfileSample& sample) { return sample.count == 0; });
}

}  // namespace profd
