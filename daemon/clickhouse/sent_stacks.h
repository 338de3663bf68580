// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace profd::clickhouse {

// The numbers of stacks that a server has of one day, as far as 2 MiB hold
// them: the last few of each 65,536th part. One that is forgotten is sent once
// more, which does no harm. Not thread-safe.
class SentStacks {
 public:
  static constexpr size_t kSets = size_t{1} << 16;
  static constexpr size_t kWays = 4;

  // Whether it was added for that day; it stays longer then. Another day than
  // the last one begins with none.
  bool Has(uint16_t day, uint64_t number);
  void Add(uint16_t day, uint64_t number);
  void Clear() { sets_.clear(); }

 private:
  // The one used last is the first; 0: none.
  using Set = std::array<uint64_t, kWays>;
  Set& SetOf(uint16_t day, uint64_t number);

  uint16_t day_ = 0;
  std::vector<Set> sets_;  // empty until one is needed
};

}  // namespace profd::clickhouse
