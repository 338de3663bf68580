// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/shard_maker.h"

#include <bpf/bpf.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <optional>
#include <system_error>
#include <utility>

#include "bpf/unwind_abi.h"
#include "daemon/base/own_priority.h"
#include "daemon/base/signals_blocked.h"
#include "daemon/unwind/inner_maps.h"

namespace profd {
namespace {

using ksym::FailErrno;
using ksym::Result;

constexpr PriorityAllowance kMakerAllowance = {
    .at_once = std::chrono::milliseconds(50),
    .per_second = std::chrono::milliseconds(10)};

Result<ksym::UniqueFd> CreateShard() {
  bpf_map_create_opts options = {};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  ksym::UniqueFd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_shard",
                                    sizeof(uint32_t), UNWIND_SHARD_BYTES, 1,
                                    &options));
  if (!map.valid()) return FailErrno(errno, "creating an unwind table");
  return map;
}

// As many as the kernel gives.
Result<ShardMaker::Shards> CreateShards(uint32_t count) {
  ShardMaker::Shards shards;
  for (uint32_t i = 0; i < count; ++i) {
    auto shard = CreateShard();
    if (!shard && shards.empty()) return ksym::Fail(std::move(shard.error()));
    if (!shard) break;
    shards.push_back(std::move(*shard));
  }
  return shards;
}

Result<ShardMaker::Shards> MakeShards(int map, uint32_t first, uint32_t count) {
  auto shards = CreateShards(count);
  if (!shards) return shards;
  const size_t added = AddInnerMaps(map, first, *shards);
  if (added == 0) return FailErrno(errno, "adding an unwind table");
  // A piece in a shard that the sampler cannot find would be code without rows.
  shards->erase(shards->begin() + static_cast<ptrdiff_t>(added), shards->end());
  return shards;
}

}  // namespace

void ShardMaker::Begin(uint32_t first, uint32_t count) {
  const auto make = [map = map_, first, count] {
    return MakeShards(map, first, count);
  };
  const SignalsBlocked blocked;
  try {
    made_ = std::async(std::launch::async, [make] {
      const PriorityShare share(kMakerAllowance);
      return make();
    });
  } catch (const std::system_error&) {
    // There can be no more threads: Take() does it, in the caller's, which has
    // its own share.
    made_ = std::async(std::launch::deferred, make);
  }
}

std::optional<Result<ShardMaker::Shards>> ShardMaker::Take() {
  if (!made_.valid() ||
      made_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout) {
    return std::nullopt;
  }
  return made_.get();
}

}  // namespace profd
