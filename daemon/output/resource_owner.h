// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string>

#include "daemon/output/options.h"
#include "daemon/profile/profile.h"

namespace profd {

// The resource of a sample, as OpenTelemetry has it: all that runs in one
// container, or in one unit, with the same labels. Texts are printable.
struct ResourceOwner {
  std::string container_id;
  std::string pod_uid;
  std::string unit;  // outside of containers only
  LabelSet labels;

  auto operator<=>(const ResourceOwner&) const = default;
};

// As far as `labels` want it told.
ResourceOwner OwnerOf(const Profile& profile, const ProfileSample& sample,
                      const SampleLabels& labels);

// "service.name": what the process says of itself, else what its container is
// called, else its unit; never empty.
std::string ServiceName(const ResourceOwner& owner);

}  // namespace profd
