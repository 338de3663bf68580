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

// All at once for one grace period where the kernel has batches for it.
bool AddBatch(int map, uint32_t first, const ShardMaker::Shards& shards) {
  std::vector<uint32_t> indices;
  std::vector<int> fds;
  indices.reserve(shards.size());
  fds.reserve(shards.size());
  for (const ksym::UniqueFd& shard : shards) {
    indices.push_back(first + static_cast<uint32_t>(indices.size()));
    fds.push_back(shard.get());
  }
  auto added = static_cast<uint32_t>(shards.size());
  return bpf_map_update_batch(map, indices.data(), fds.data(), &added,
                              nullptr) == 0;
}

Result<ShardMaker::Shards> MakeShards(int map, uint32_t first, uint32_t count) {
  auto shards = CreateShards(count);
  if (!shards) return shards;
  if (shards->size() > 1 && AddBatch(map, first, *shards)) return shards;
  for (size_t i = 0; i < shards->size(); ++i) {
    const uint32_t index = first + static_cast<uint32_t>(i);
    const int fd = (*shards)[i].get();
    if (bpf_map_update_elem(map, &index, &fd, BPF_ANY) == 0) continue;
    if (i == 0) return FailErrno(errno, "adding an unwind table");
    // A piece in a shard that the sampler cannot find would be code without
    // rows.
    shards->erase(shards->begin() + static_cast<ptrdiff_t>(i), shards->end());
  }
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
