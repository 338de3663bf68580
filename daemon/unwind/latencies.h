// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace profd {

// How long things took, in milliseconds: their median, and the longest. The
// size is fixed; longer times than a second are in the median as one second.
class Latencies {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // Negative ones are none.
  void Add(std::chrono::nanoseconds time) {
    const auto whole = std::max(std::chrono::duration_cast<Milliseconds>(time),
                                Milliseconds(0));
    longest_ = std::max(longest_, whole);
    const auto at = static_cast<size_t>(whole.count());
    ++counts_[std::min(at, counts_.size() - 1)];
    ++all_;
  }

  // 0 of none; of an even number the smaller of the middle ones.
  Milliseconds Median() const {
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (2 * seen >= all_) return Milliseconds(i);
    }
    return {};
  }
  Milliseconds longest() const { return longest_; }

 private:
  std::array<uint32_t, 1001> counts_ = {};  // by milliseconds
  uint64_t all_ = 0;
  Milliseconds longest_ = {};
};

}  // namespace profd
