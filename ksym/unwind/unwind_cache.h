// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <utility>

#include "ksym/base/disk_cache.h"
#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/unwind/unwind_table.h"

namespace ksym {

// What a cache did; each problem is also counted where it is met.
struct UnwindCacheCounts {
  uint64_t read = 0;     // tables that were there
  uint64_t built = 0;    // and those that were not
  uint64_t corrupt = 0;  // of them, because what was there was of no use
  uint64_t written = 0;
  uint64_t not_written = 0;  // no room, no privilege
  uint64_t removed = 0;      // to make room
};

// Unwind tables on disk, so that a table is built once per machine and not once
// per run. A file there is the table of one section of call-frame information,
// named by what the section says (KeyOf), so equal libraries of many containers
// share it and no file can pass for another: build-ids and paths are not looked
// at, which anybody can copy. Several processes may use one directory: a file
// appears whole or not at all. Not thread-safe.
class UnwindCache {
 public:
  // The directory is made, with mode 0700, unless it is there; its parent must
  // be. kPermission: it is another user's, or others may write to it.
  static Result<UnwindCache> Open(std::string directory, uint64_t max_bytes);

  // BuildUnwindTable, with the section's table from the cache; if it is not
  // there it is built and written to the cache. Some small ones that were read
  // last are kept in memory, 2 MiB at the most. A cache that fails costs time
  // only; errors are BuildUnwindTable's. Small sections are always built.
  Result<UnwindTable> LoadOrBuild(const ByteSource& source,
                                  const ElfImage& image);

  // A name for all that BuildSectionTable depends on: nobody can make two that
  // have the same. 1 ms per MB.
  static std::string KeyOf(const CallFrameSection& section,
                           const CodeExtent& code);

  // kNotFound, kPermission, kCorrupt, kIo. Marks the file as used.
  Result<UnwindTable> Load(std::string_view key);
  // Removes the files that were not used for longest, until this one fits.
  // kLimit: it alone is larger than the bound.
  Status Store(std::string_view key, const UnwindTable& table);

  const UnwindCacheCounts& counts() const { return counts_; }

 private:
  explicit UnwindCache(DiskCache cache) : cache_(std::move(cache)) {}

  Result<UnwindTable> LoadOrBuildSection(const CallFrameSection& section,
                                         const CodeExtent& code);

  const UnwindTable* FindRecent(const std::string& key);
  void Remember(const std::string& key, const UnwindTable& table);

  DiskCache cache_;
  UnwindCacheCounts counts_;
  using Recent = std::pair<std::string, UnwindTable>;
  std::list<Recent> recent_;  // by key, the one used last first
};

}  // namespace ksym
