// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// Makes shards in a thread of its own: the kernel gives an array of maps a new
// map for a grace period, in which whoever empties the sampler's ring cannot
// wait (12 ms, 30 on a busy machine). For one thread, the caller's.
class ShardMaker {
 public:
  using Shards = std::vector<ksym::UniqueFd>;

  // The sampler's map unwind_shards; borrowed.
  explicit ShardMaker(int map) : map_(map) {}
  // Waits for those that are being made.
  ~ShardMaker() = default;
  ShardMaker(const ShardMaker&) = delete;
  ShardMaker& operator=(const ShardMaker&) = delete;

  // Begins to make those of the numbers [first, first + count). Not while
  // others are being made.
  void Begin(uint32_t first, uint32_t count);
  bool is_making() const { return made_.valid(); }
  // Those that the sampler can find now, in order, fewer where the kernel
  // refused one; an error where it refused the first. Nothing: they are still
  // being made, or none are.
  std::optional<ksym::Result<Shards>> Take();
  // Waits until there is something to take.
  void Wait() const {
    if (made_.valid()) made_.wait();
  }

 private:
  int map_;
  std::future<ksym::Result<Shards>> made_;
};

}  // namespace profd
