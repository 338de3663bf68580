// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bpf/bpf.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "ksym/base/result.h"

namespace profd {

// Takes every entry out of a BPF hash map that nobody writes to and calls
// `take(key, value)` with each. Batches where the kernel has them (5.6), else
// one by one. A batch must hold a whole hash bucket: it grows on ENOSPC.
template <typename Key, typename Value, typename Take>
ksym::Status TakeAll(int map_fd, const Take& take) {
  constexpr uint32_t kFirstBatch = 1024;
  std::vector<Key> keys(kFirstBatch);
  std::vector<Value> values(kFirstBatch);
  uint32_t position = 0;
  bool first = true;
  for (;;) {
    auto count = static_cast<uint32_t>(keys.size());
    const int failed = bpf_map_lookup_and_delete_batch(
        map_fd, first ? nullptr : &position, &position, keys.data(),
        values.data(), &count, nullptr);
    const int error = failed == 0 ? 0 : errno;
    if (error == ENOSPC) {
      keys.resize(keys.size() * 2);
      values.resize(values.size() * 2);
      continue;
    }
    if (error == EINVAL && first) break;
    if (error != 0 && error != ENOENT) {
      return ksym::FailErrno(error, "draining a BPF map");
    }
    for (uint32_t i = 0; i < count; ++i) take(keys[i], values[i]);
    if (error == ENOENT) return {};
    first = false;
  }
  Key key;
  Value value;
  while (bpf_map_get_next_key(map_fd, nullptr, &key) == 0) {
    if (bpf_map_lookup_elem(map_fd, &key, &value) == 0) take(key, value);
    if (bpf_map_delete_elem(map_fd, &key) != 0) {
      return ksym::FailErrno(errno, "draining a BPF map");
    }
  }
  return {};
}

}  // namespace profd
