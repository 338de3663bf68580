// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "bpf/profile_abi.h"
#include "daemon/profile/sample_kind.h"
#include "ksym/process/process_image.h"

namespace profd {

inline ksym::ProcessId ProcessOf(const profile_key& key) {
  return {key.tgid, key.exec_count, key.start_ns};
}

// How often one thing was seen.
struct SampledCount {
  profile_key key = {};
  SampleKindId kind = 0;  // place in Sampler::kinds()
  uint64_t count = 0;
  uint64_t value = 0;  // the sum of theirs, of a kind that has them
};

}  // namespace profd
