// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/profile/label_set.h"
#include "ksym/base/result.h"

namespace profd {

// Which container a process is in, as its cgroup's path says.
struct ContainerKey {
  std::string pod_uid;       // with hyphens; empty: of no pod
  std::string container_id;  // 64 hexadecimal digits; empty: of the pod only

  bool empty() const { return pod_uid.empty() && container_id.empty(); }
  friend auto operator<=>(const ContainerKey&, const ContainerKey&) = default;
};

// What came of looking for a container's names.
enum class NameResult : uint8_t {
  kFound,
  kPodOnly,        // a pod's names, and none of the container
  kNotFound,       // no entry has that uid or id, perhaps not yet
  kContradictory,  // entries that cannot both be true, or one not within itself
  kNotTrusted,     // somebody else than root could have written it
  kUnreadable,     // the system refused, or it is no JSON of that kind
  kTooLarge,       // a bound of ours was reached
  kNotInTime,      // the disk does not answer
};
inline constexpr size_t kNameResults = 8;

// What it is that reading a file or a directory failed.
NameResult NameResultOf(const ksym::Error& error);

struct ContainerNames {
  NameResult result = NameResult::kNotFound;
  LabelSet labels = {};  // in order
};

}  // namespace profd
