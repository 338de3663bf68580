// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_context.h"

#include <iterator>
#include <utility>

namespace ksym {

void MarkupContext::Reset() {
  mmaps_.clear();
  modules_.clear();
}

const MarkupModule* MarkupContext::AddModule(MarkupModule module) {
  const uint64_t id = module.id;
  const auto [place, added] = modules_.try_emplace(id);
  if (!added) return nullptr;
  place->second = std::make_unique<MarkupModule>(std::move(module));
  return place->second.get();
}

const MarkupModule* MarkupContext::FindModule(uint64_t id) const {
  const auto found = modules_.find(id);
  return found == modules_.end() ? nullptr : found->second.get();
}

const MarkupMmap* MarkupContext::AddMmap(MarkupMmap mmap) {
  const Address start = mmap.address;
  return &mmaps_.try_emplace(start, std::move(mmap)).first->second;
}

const MarkupMmap* MarkupContext::FindOverlap(const MarkupMmap& mmap) const {
  const auto next = mmaps_.upper_bound(mmap.address);
  if (next != mmaps_.end() && mmap.Contains(next->first)) return &next->second;
  if (next == mmaps_.begin()) return nullptr;
  const MarkupMmap& previous = std::prev(next)->second;
  return previous.Contains(mmap.address) ? &previous : nullptr;
}

const MarkupMmap* MarkupContext::FindMmap(Address address) const {
  auto found = mmaps_.lower_bound(address);
  if (found != mmaps_.end() && found->second.Contains(address)) {
    return &found->second;
  }
  if (found == mmaps_.begin()) return nullptr;
  --found;
  return found->second.Contains(address) ? &found->second : nullptr;
}

}  // namespace ksym
