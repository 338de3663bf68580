// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/output/options.h"
#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd::clickhouse {

// Rows of stacks, and of samples, have so many bytes at the most in a batch.
inline constexpr size_t kMaxStackBytes = size_t{32} << 20;
inline constexpr size_t kMaxSampleBytes = size_t{32} << 20;
// The stack, and all but the kind, of samples beyond them.
inline constexpr std::string_view kNotKept = "[not kept]";

// The rows that one interval adds to the tables: in RowBinary, with the columns
// in the order of the INSERT queries in tables.h.
struct Batch {
  struct Stack {
    uint64_t number = 0;
    std::string row;

    friend bool operator==(const Stack&, const Stack&) = default;
  };

  uint16_t day = 0;           // since 1970, of the stacks
  std::string interval;       // without its last column, the attempt
  std::vector<Stack> stacks;  // all that samples have
  std::string samples;
  uint64_t not_kept = 0;  // samples that have kNotKept; not in a packed batch

  friend bool operator==(const Batch&, const Batch&) = default;
};

// The rows of a profile. Equal texts and stacks are one row, so that no two
// rows of samples differ in their numbers only. `run`: see RunName. O(profile)
// but for the sorting; memory: the batch twice.
Batch MakeBatch(const Profile& profile, const SampleLabels& labels,
                std::string_view run);

// A batch as bytes that wait to be sent, packed, and back. kCorrupt: they are
// none.
std::string PackBatch(const Batch& batch);
ksym::Result<Batch> UnpackBatch(std::string_view packed);

}  // namespace profd::clickhouse
