// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/kernel_unwind_maps.h"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "daemon/unwind/sampler_keys.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::FailErrno;

// A capture begins with so many, which are made while it is prepared.
constexpr uint32_t kFirstShards = 2;
// As much room as most files need is made before it is asked for.
constexpr std::array<uint32_t, 1> kSpare = {UNWIND_SHARD_SLOTS / 4};

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
          .shards = clamp(bytes / UNWIND_SHARD_BYTES, 1, 1 << 15)};
}

KernelUnwindMaps::KernelUnwindMaps(UnwindMapFds fds, UnwindMapSizes sizes)
    : fds_(fds),
      sizes_(sizes),
      mapping_space_(sizes.mappings),
      maker_(fds.shards) {
  BeginShards(kFirstShards);
}

ksym::Result<std::optional<UnwindMaps::Place>> KernelUnwindMaps::Add(
    const UnwindPiece& piece) {
  const auto count = static_cast<uint32_t>(piece.slots());
  TakeShards();
  auto place = TakeSlots(count);
  // A new shard is for when all others are full: it is never given back. First
  // those that are being made are waited for, then one more is.
  for (int i = 0; i < 2 && !place; ++i) {
    BeginShards(1);
    if (!maker_.is_making()) break;
    maker_.Wait();
    TakeShards();
    if (!made_) return Fail(made_.error());
    place = TakeSlots(count);
  }
  if (!place) return std::nullopt;
  auto written = shard_window_.Write(
      {shards_[place->shard].map.get(), UNWIND_SHARD_BYTES},
      size_t{place->first} * 8, std::as_bytes(std::span(piece.index)),
      std::as_bytes(piece.rows));
  if (!written) {
    // No list leads there, so no program can be reading it.
    shards_[place->shard].space.Return(place->first, count);
    return Fail(std::move(written.error()));
  }
  return place;
}

std::optional<UnwindMaps::Place> KernelUnwindMaps::TakeSlots(uint32_t count) {
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    const auto first = shards_[shard].space.Take(count);
    if (first) return Place{.shard = shard, .first = *first, .count = count};
  }
  return std::nullopt;
}

bool KernelUnwindMaps::PrepareRoom(std::span<const uint32_t> pieces) {
  TakeShards();
  const uint32_t missing = MissingShards(pieces);
  if (missing == 0) {
    if (made_ && MissingShards(kSpare) > 0) BeginShards(1);
    return true;
  }
  // Add() tries once more, and says why the kernel refuses.
  if (!made_) return true;
  BeginShards(missing);
  return !maker_.is_making();
}

// How many more shards it takes to have room for all of the pieces, none of
// which is larger than one. It may be fewer: of a shard the longest run counts
// alone.
uint32_t KernelUnwindMaps::MissingShards(
    std::span<const uint32_t> pieces) const {
  std::vector<uint32_t> longest;
  longest.reserve(shards_.size() + pieces.size());
  for (const Shard& shard : shards_) longest.push_back(shard.space.Longest());
  for (const uint32_t slots : pieces) {
    const auto room = std::ranges::find_if(
        longest, [&](uint32_t free) { return free >= slots; });
    if (room != longest.end()) {
      *room -= slots;
    } else {
      longest.push_back(UNWIND_SHARD_SLOTS - slots);
    }
  }
  return static_cast<uint32_t>(longest.size() - shards_.size());
}

void KernelUnwindMaps::BeginShards(uint32_t count) {
  if (maker_.is_making() || !CanGrow()) return;
  const auto first = static_cast<uint32_t>(shards_.size());
  maker_.Begin(first, std::min(count, sizes_.shards - first));
}

void KernelUnwindMaps::TakeShards() {
  auto made = maker_.Take();
  if (!made) return;
  if (!*made) {
    made_ = Fail(std::move(made->error()));
    return;
  }
  made_ = {};
  for (ksym::UniqueFd& map : **made) {
    shards_.push_back(
        {.map = std::move(map), .space = SlotSpace(UNWIND_SHARD_SLOTS)});
  }
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
