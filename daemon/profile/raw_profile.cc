// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile/raw_profile.h"

namespace profd {

size_t BytesOf(const RawProfile& profile) {
  constexpr size_t kPerStack = 64;  // its id, its place and those in an index
  size_t bytes = sizeof(profile);
  bytes += profile.samples.size() * sizeof(RawSample);
  bytes += profile.stacks.size() * kPerStack + profile.stacks.bytes().size();
  bytes += profile.wakers.size() * sizeof(RawWakers::value_type);
  for (const auto& [id, image] : profile.images) {
    bytes += sizeof(image) + image.mappings.size() * sizeof(ksym::Mapping);
    // Copies of a path share it; those of one file follow each other.
    ksym::SharedPath last;
    for (const ksym::Mapping& mapping : image.mappings) {
      if (!mapping.path.IsSharedWith(last)) bytes += mapping.path.size();
      last = mapping.path;
    }
  }
  return bytes;
}

}  // namespace profd
