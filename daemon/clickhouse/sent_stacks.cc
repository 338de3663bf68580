// SPDX-License-Identifier: Apache-2.0
#include "daemon/clickhouse/sent_stacks.h"

#include <algorithm>

namespace profd::clickhouse {

SentStacks::Set& SentStacks::SetOf(uint16_t day, uint64_t number) {
  if (sets_.empty() || day != day_) sets_.assign(kSets, Set());
  day_ = day;
  // Numbers are of a hash: each bit of them is as good as any other.
  return sets_[number % kSets];
}

bool SentStacks::Has(uint16_t day, uint64_t number) {
  Set& set = SetOf(day, number);
  const auto found = std::ranges::find(set, number);
  if (number == 0 || found == set.end()) return false;
  std::rotate(set.begin(), found, found + 1);
  return true;
}

void SentStacks::Add(uint16_t day, uint64_t number) {
  if (Has(day, number)) return;
  Set& set = SetOf(day, number);
  std::ranges::rotate(set, set.end() - 1);
  set.front() = number;
}

}  // namespace profd::clickhouse
