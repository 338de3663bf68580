// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bpf/unwind_abi.h"
#include "daemon/unwind/shard_maker.h"
#include "daemon/unwind/slot_space.h"
#include "daemon/unwind/unwind_maps.h"
#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"
#include "ksym/process/process_image.h"

namespace profd {

// Descriptors of the sampler's maps of that name; borrowed. -1: not loaded.
struct UnwindMapFds {
  int processes = -1;
  int mappings = -1;
  int shards = -1;
};

// How large those maps are; see bpf/unwind_abi.h.
struct UnwindMapSizes {
  uint32_t processes = 0;
  uint32_t mappings = 0;  // with the headers of the lists
  uint32_t shards = 0;

  // As much as that memory is worth.
  static UnwindMapSizes ForMemory(uint64_t bytes);
};

// Writes to array maps that can be mapped. The places of writes lie together
// for the most part, so 512 KiB around it stay mapped until something else is
// written: mapping and unmapping would cost ten times the writing. The whole
// would count as this process's memory. Not thread-safe.
class ArrayWindow {
 public:
  using Bytes = std::span<const std::byte>;

  ArrayWindow() = default;
  ArrayWindow(const ArrayWindow&) = delete;
  ArrayWindow& operator=(const ArrayWindow&) = delete;
  ArrayWindow(ArrayWindow&& other) noexcept { *this = std::move(other); }
  ArrayWindow& operator=(ArrayWindow&& other) noexcept {
    std::swap(map_, other.map_);
    std::swap(memory_, other.memory_);
    std::swap(begin_, other.begin_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ArrayWindow();

  struct Array {
    int map = -1;
    size_t bytes = 0;
  };
  // Puts both, one behind the other, at that offset of the array.
  ksym::Status Write(Array array, size_t offset, Bytes first, Bytes second);

 private:
  void Close();

  int map_ = -1;  // borrowed
  std::byte* memory_ = nullptr;
  size_t begin_ = 0;
  size_t size_ = 0;
};

// The maps in the kernel. Room comes in shards of 512 KiB, each for an RCU
// grace period (12 ms of sleep): Add() waits for one that PrepareRoom() did not
// make before.
class KernelUnwindMaps final : public UnwindMaps {
 public:
  KernelUnwindMaps(UnwindMapFds fds, UnwindMapSizes sizes);

  uint64_t max_slots() const override {
    return uint64_t{sizes_.shards} * UNWIND_SHARD_SLOTS;
  }
  uint32_t max_entries() const override { return sizes_.mappings; }
  ksym::Result<std::optional<Place>> Add(const UnwindPiece& piece) override;
  void FreeSlots(const Place& place) override;
  bool PrepareRoom(std::span<const uint32_t> pieces) override;
  ksym::Result<bool> Publish(const ksym::ProcessId& process,
                             const List& list) override;
  void Withdraw(const ksym::ProcessId& process) override;
  void Recycle() override;

 private:
  struct Shard {
    ksym::UniqueFd map;
    SlotSpace space;
  };
  struct Room {
    uint32_t first = 0;
    uint32_t count = 0;
  };

  std::optional<Place> TakeSlots(uint32_t count);
  uint32_t MissingShards(std::span<const uint32_t> pieces) const;
  bool CanGrow() const { return shards_.size() < sizes_.shards; }
  void BeginShards(uint32_t count);
  void TakeShards();

  UnwindMapFds fds_;
  UnwindMapSizes sizes_;
  SlotSpace mapping_space_;
  ArrayWindow list_window_;
  ArrayWindow shard_window_;
  std::vector<Shard> shards_;  // by index; kept until the end
  ShardMaker maker_;
  ksym::Status made_;  // the last ones
  std::map<ksym::ProcessId, Room> lists_;
};

}  // namespace profd
