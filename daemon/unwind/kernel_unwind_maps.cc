// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/kernel_unwind_maps.h"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/unwind/sampler_keys.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::FailErrno;

constexpr uint64_t kShardBytes = uint64_t{UNWIND_SHARD_SLOTS} * 8;

// So much of an array is mapped at once, unless more is written.
constexpr size_t kWindowBytes = 512 << 10;

}  // namespace

ArrayWindow::~ArrayWindow() { Close(); }

void ArrayWindow::Close() {
  if (memory_ != nullptr) ::munmap(memory_, size_);
  memory_ = nullptr;
  size_ = 0;
}

ksym::Status ArrayWindow::Write(Array array, size_t offset, Bytes first,
                                Bytes second) {
  const size_t end = offset + first.size() + second.size();
  if (array.map != map_ || offset < begin_ || end > begin_ + size_) {
    Close();
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    map_ = array.map;
    begin_ = offset / page * page;
    const size_t size =
        std::max(end - begin_, std::min(kWindowBytes, array.bytes - begin_));
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED,
                          array.map, static_cast<off_t>(begin_));
    if (memory == MAP_FAILED) return FailErrno(errno, "mapping unwind tables");
    memory_ = static_cast<std::byte*>(memory);
    size_ = size;
  }
  std::byte* to = memory_ + (offset - begin_);
  std::ranges::copy(second, std::ranges::copy(first, to).out);
  if (size_ > kWindowBytes) Close();
  return {};
}

UnwindMapSizes UnwindMapSizes::ForMemory(uint64_t bytes) {
  // A sixty-fourth for the lists of mappings, the rest for tables.
  const auto clamp = [](uint64_t value, uint64_t least, uint64_t most) {
    return static_cast<uint32_t>(std::clamp(value, least, most));
  };
  return {.processes = 8192,
          .mappings = clamp(bytes / 64 / sizeof(unwind_mapping), 4096, 1 << 20),
          .shards = clamp(bytes / kShardBytes, 1, 1 << 15)};
}

KernelUnwindMaps::KernelUnwindMaps(UnwindMapFds fds, UnwindMapSizes sizes)
    : fds_(fds), sizes_(sizes), mapping_space_(sizes.mappings) {}

ksym::Result<std::optional<UnwindMaps::Place>> KernelUnwindMaps::Add(
    const UnwindPiece& piece) {
  const auto count = static_cast<uint32_t>(piece.slots());
  std::optional<uint32_t> first;
  uint32_t shard = 0;
  while (shard < shards_.size()) {
    first = shards_[shard].space.Take(count);
    if (first) break;
    ++shard;
  }
  if (!first) {
    // A new shard is for when all others are full: it is never given back.
    if (shard >= sizes_.shards) return std::nullopt;
    auto added = AddShard();
    if (!added) return Fail(std::move(added.error()));
    first = shards_[shard].space.Take(count);
    if (!first) return std::nullopt;
  }
  auto written = shard_window_.Write(
      {shards_[shard].map.get(), kShardBytes}, size_t{*first} * 8,
      std::as_bytes(std::span(piece.index)), std::as_bytes(piece.rows));
  if (!written) {
    // No list leads there, so no program can be reading it.
    shards_[shard].space.Return(*first, count);
    return Fail(std::move(written.error()));
  }
  return Place{.shard = shard, .first = *first, .count = count};
}

ksym::Result<ksym::UniqueFd> KernelUnwindMaps::CreateShard() {
  bpf_map_create_opts options = {};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  ksym::UniqueFd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_shard",
                                    sizeof(uint32_t), kShardBytes, 1,
                                    &options));
  if (!map.valid()) return FailErrno(errno, "creating an unwind table");
  return map;
}

void KernelUnwindMaps::AddShards(size_t count) {
  std::vector<uint32_t> indices;
  std::vector<int> fds;
  std::vector<ksym::UniqueFd> maps;
  const auto first = static_cast<uint32_t>(shards_.size());
  count = std::min<size_t>(count, sizes_.shards - first);
  for (uint32_t i = 0; i < count; ++i) {
    auto map = CreateShard();
    if (!map) return;
    indices.push_back(first + i);
    fds.push_back(map->get());
    maps.push_back(std::move(*map));
  }
  auto added = static_cast<uint32_t>(count);
  // One by one, when they are needed, where the kernel has no batches.
  if (count == 0 || bpf_map_update_batch(fds_.shards, indices.data(),
                                         fds.data(), &added, nullptr) != 0) {
    return;
  }
  // Only now: a piece in a shard that the sampler cannot find would be code
  // without rows.
  for (ksym::UniqueFd& map : maps) {
    shards_.push_back(
        {.map = std::move(map), .space = SlotSpace(UNWIND_SHARD_SLOTS)});
  }
}

ksym::Status KernelUnwindMaps::AddShard() {
  auto map = CreateShard();
  if (!map) return Fail(std::move(map.error()));
  const auto index = static_cast<uint32_t>(shards_.size());
  const int fd = map->get();
  if (bpf_map_update_elem(fds_.shards, &index, &fd, BPF_ANY) != 0) {
    return FailErrno(errno, "adding an unwind table");
  }
  shards_.push_back(
      {.map = std::move(*map), .space = SlotSpace(UNWIND_SHARD_SLOTS)});
  return {};
}

void KernelUnwindMaps::FreeSlots(const Place& place) {
  // Programs that have found the piece in a list may still be reading it.
  shards_[place.shard].space.Free(place.first, place.count);
}

ksym::Result<bool> KernelUnwindMaps::Publish(const ksym::ProcessId& process,
                                             const List& list) {
  const auto count = static_cast<uint32_t>(
      std::min<size_t>(list.mappings.size(), UNWIND_MAX_MAPPINGS));
  // A list is never changed where it lies: a program that is walking a stack by
  // it would see half of the old one and half of the new one.
  const auto first = mapping_space_.Take(count + 1);
  if (!first) return false;
  unwind_list_header header = {};
  header.start_ns = process.start_ns;
  header.tgid = process.pid;
  header.exec_count = process.exec_count;
  header.mappings = count;
  header.copies = UNWIND_COPIES_PER_LIST;
  // The whole list is there before the process leads to it.
  auto written = list_window_.Write(
      {fds_.mappings, size_t{sizes_.mappings} * sizeof(unwind_mapping)},
      size_t{*first} * sizeof(unwind_mapping),
      std::as_bytes(std::span(&header, 1)),
      std::as_bytes(list.mappings.first(count)));
  if (!written) {
    mapping_space_.Return(*first, count + 1);
    return Fail(std::move(written.error()));
  }

  const unwind_process key = SamplerKeyOf(process);
  const uint64_t place = *first |
                         (list.has_runtime ? UNWIND_LIST_HAS_RUNTIME : 0) |
                         uint64_t{list.code_runtimes} << UNWIND_LIST_CODE_SHIFT;
  if (bpf_map_update_elem(fds_.processes, &key, &place, BPF_ANY) != 0) {
    const int error = errno;
    mapping_space_.Return(*first, count + 1);
    if (error == E2BIG) return false;
    return FailErrno(error, "publishing unwind tables");
  }
  // Only now: until the element was replaced, programs were led to the old
  // list, and those that were may still be reading it.
  const auto [list_of, is_new] = lists_.try_emplace(process);
  if (!is_new) {
    mapping_space_.Free(list_of->second.first, list_of->second.count);
  }
  list_of->second = {.first = *first, .count = count + 1};
  return true;
}

void KernelUnwindMaps::Withdraw(const ksym::ProcessId& process) {
  const auto list = lists_.find(process);
  if (list == lists_.end()) return;
  // The way to the list goes first, then its place, or a program could be led
  // to what is another process's list by then.
  const unwind_process key = SamplerKeyOf(process);
  bpf_map_delete_elem(fds_.processes, &key);
  mapping_space_.Free(list->second.first, list->second.count);
  lists_.erase(list);
}

void KernelUnwindMaps::Recycle() {
  mapping_space_.Recycle();
  for (Shard& shard : shards_) shard.space.Recycle();
}

}  // namespace profd
