// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ksym/base/disk_cache.h"
#include "ksym/base/result.h"
#include "ksym/gsym/gsym_image.h"

namespace ksym {

// GSYM files on disk, one per build-id, so that a program's debug data are
// converted once per machine. Anybody can make a file with any build-id, so
// what comes from a file that is another user's is not to be stored. Not
// thread-safe.
class GsymCache {
 public:
  // See DiskCache::Open, also for errors.
  static Result<GsymCache> Open(std::string directory, uint64_t max_bytes);

  // The file of a program, mapped. kNotFound; kPermission: it is not of this
  // user alone; kCorrupt, kUnsupported: it is no GSYM file, or another
  // program's. Lookups check what they read, so a file that was damaged behind
  // its tables gives errors and no wrong memory. `build_id` is in hex.
  Result<GsymImage> Load(std::string_view build_id) const;
  Status Store(std::string_view build_id, std::span<const std::byte> bytes);

 private:
  explicit GsymCache(DiskCache cache) : cache_(std::move(cache)) {}

  DiskCache cache_;
};

}  // namespace ksym
