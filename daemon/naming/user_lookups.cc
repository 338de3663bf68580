// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/user_lookups.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace profd {

UserLookups::UserLookups(std::shared_ptr<const RawProfile> part)
    : part_(std::move(part)) {
  // In the order of the images' places, by which Find() looks for one.
  std::map<const ksym::ProcessImage*, std::set<StackId>, std::less<>> stacks;
  const auto add = [&](const ksym::ProcessId& process, StackId user_stack) {
    if (user_stack < kFirstStackId) return;
    const auto image = part_->images.find(process);
    if (image == part_->images.end()) return;
    stacks[&image->second].insert(user_stack);
  };
  for (const RawSample& sample : part_->samples) {
    add(sample.process, sample.user_stack);
  }
  for (const auto& [id, waker] : part_->wakers) {
    add(waker.process, waker.user_stack);
  }
  for (const auto& [image, ids] : stacks) {
    std::vector<ksym::Address> found;
    for (const StackId id : ids) {
      const auto stack = part_->stacks.Find(id);
      if (!stack) continue;
      auto place = FrameCache::Place::kLeaf;
      ForEachFrame(*stack, [&](const RawFrame& frame) {
        if (frame.is_address()) {
          found.push_back(LookupAddress(frame.value, place));
        }
        place = FrameCache::Place::kCaller;
      });
    }
    // Sorted, so that Find() is a search, and the addresses of one file follow
    // each other.
    std::ranges::sort(found);
    const auto repeated = std::ranges::unique(found);
    found.erase(repeated.begin(), repeated.end());
    spaces_.push_back({.image = image,
                       .begin = addresses_.size(),
                       .end = addresses_.size() + found.size()});
    addresses_.insert(addresses_.end(), found.begin(), found.end());
  }
  // All at once: the other thread reads symbols while more are written, and
  // they must not move.
  symbols_.resize(addresses_.size());
}

MappedFileKey UserLookups::FileOf(const Space& space, ksym::Address address) {
  const ksym::Mapping* mapping = space.image->Find(address);
  if (mapping == nullptr || mapping->inode == 0) return {};
  return {mapping->device_major, mapping->device_minor, mapping->inode};
}

std::vector<MappedFileKey> UserLookups::Files() const {
  std::vector<MappedFileKey> files;
  for (const Space& space : spaces_) {
    for (size_t i = space.begin; i < space.end; ++i) {
      const MappedFileKey file = FileOf(space, addresses_[i]);
      if (file == MappedFileKey()) continue;
      if (files.empty() || files.back() != file) files.push_back(file);
    }
  }
  std::ranges::sort(files);
  const auto repeated = std::ranges::unique(files);
  files.erase(repeated.begin(), repeated.end());
  return files;
}

// Null: there is no such address.
const UserLookups::Space* UserLookups::SpaceOf(size_t index) const {
  const auto space = std::ranges::upper_bound(spaces_, index, {}, &Space::end);
  return space == spaces_.end() ? nullptr : &*space;
}

MappedFileKey UserLookups::NextFile() const {
  const size_t next = named_.load(std::memory_order_relaxed);
  const Space* space = SpaceOf(next);
  return space == nullptr ? MappedFileKey() : FileOf(*space, addresses_[next]);
}

bool UserLookups::NameNext(ksym::Symbolizer& symbolizer) {
  // Only this thread writes it.
  const size_t next = named_.load(std::memory_order_relaxed);
  const Space* space = SpaceOf(next);
  if (space == nullptr) return false;
  symbols_[next] = symbolizer.Resolve(*space->image, addresses_[next]);
  // Pairs with the acquire in Find(): the symbol is there before it counts.
  named_.store(next + 1, std::memory_order_release);
  return true;
}

ksym::UserSymbol UserLookups::Find(const ksym::ProcessImage& image,
                                   ksym::Address address) {
  ksym::UserSymbol late;
  late.reason = ksym::Unresolved::kNotInTime;
  if (const ksym::Mapping* mapping = image.Find(address)) {
    late.module = mapping->path;
    late.file_offset = mapping->file_offset + (address - mapping->start);
  }
  const auto space = std::ranges::lower_bound(
      spaces_, &image, std::less<const ksym::ProcessImage*>(), &Space::image);
  if (space == spaces_.end() || space->image != &image) return late;
  const auto begin = addresses_.begin();
  const auto end = begin + static_cast<ptrdiff_t>(space->end);
  const auto found = std::lower_bound(
      begin + static_cast<ptrdiff_t>(space->begin), end, address);
  if (found == end || *found != address) return late;
  const auto index = static_cast<size_t>(found - begin);
  if (index >= named_.load(std::memory_order_acquire)) return late;
  return symbols_[index];
}

}  // namespace profd
