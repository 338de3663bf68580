// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/module_extents.h"

#include <algorithm>

namespace ksym {

void ModuleExtents::Sort() { std::ranges::sort(extents_, {}, &Extent::start); }

std::optional<size_t> ModuleExtents::Find(uint64_t address) const {
  const auto next =
      std::ranges::upper_bound(extents_, address, {}, &Extent::start);
  if (next == extents_.begin()) return std::nullopt;
  const auto number = static_cast<size_t>(next - extents_.begin()) - 1;
  if (End(number) <= address) return std::nullopt;
  return number;
}

uint64_t ModuleExtents::End(size_t number) const {
  const uint64_t end = extents_[number].end;
  return number + 1 < extents_.size()
             ? std::min(end, extents_[number + 1].start)
             : end;
}

std::optional<uint64_t> ModuleExtents::TextEnd(size_t number) const {
  const Extent& extent = extents_[number];
  if (extent.elsewhere >= extent.end - extent.start) return std::nullopt;
  return std::min(extent.end - extent.elsewhere, End(number));
}

}  // namespace ksym
