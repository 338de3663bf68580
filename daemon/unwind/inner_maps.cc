// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/inner_maps.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace profd {

size_t AddInnerMaps(int outer, uint32_t first,
                    std::span<const ksym::UniqueFd> maps) {
  std::vector<uint32_t> places(maps.size());
  std::iota(places.begin(), places.end(), first);
  std::vector<int> fds(maps.size());
  std::ranges::transform(maps, fds.begin(), &ksym::UniqueFd::get);
  auto added = static_cast<uint32_t>(maps.size());
  if (maps.size() > 1 && bpf_map_update_batch(outer, places.data(), fds.data(),
                                              &added, nullptr) == 0) {
    return maps.size();
  }
  for (size_t i = 0; i < maps.size(); ++i) {
    if (bpf_map_update_elem(outer, &places[i], &fds[i], BPF_ANY) != 0) return i;
  }
  return maps.size();
}

}  // namespace profd
