// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "daemon/profile/sample_kind.h"

namespace profd {

// What a pprof profile says of the numbers of its samples.
struct PprofTypes {
  struct Type {
    std::string_view name;
    std::string_view unit;
  };
  std::vector<Type> all;  // in the order of a sample's numbers; at least one
  std::string_view default_name;
  Type period_type;
  uint64_t period = 0;
  std::vector<std::string_view> comments;
};

// The kinds of samples that they are of, the one that is shown first in front.
struct PprofKinds {
  // Which of a sample's numbers is of the kind, and what one sample has of it;
  // 0: a value of its own.
  struct Source {
    size_t type = 0;
    uint64_t per_sample = 0;
  };
  std::vector<SampleKind> kinds;
  std::vector<Source> sources;  // of each
  // Types beyond kMaxSampleKinds.
  std::vector<std::string_view> left_out;
};

// Only the type "samples" counts samples, those of the period's type. Any other
// one is a kind whose samples have values, unless a comment of ksym-profile
// tells more: a hundred objects may be of one sample. Cost: types times
// comments.
PprofKinds FindPprofKinds(const PprofTypes& types);

}  // namespace profd
