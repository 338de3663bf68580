// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace ksym {

// A directory of files that can be made again, of this user alone, bounded in
// bytes. Each kind of file has a suffix and a bound of its own, and several
// processes may use one directory: a file appears whole or not at all. Not
// thread-safe.
class DiskCache {
 public:
  // The directory is made, with mode 0700, unless it is there; its parent must
  // be. kPermission: it is another user's, or others may write to it.
  // `suffix` is what the names of this kind of file end in, as ".unwind".
  static Result<DiskCache> Open(std::string directory, std::string suffix,
                                uint64_t max_bytes);

  std::string PathOf(std::string_view name) const;

  struct CachedFile {
    UniqueFd fd;
    uint64_t size = 0;
  };
  // Opens a file that Store() wrote and marks it as used, to a minute.
  // kNotFound;
  // kPermission: it is no regular file, another user's, or others may write to
  // it; kIo.
  Result<CachedFile> OpenFile(std::string_view name) const;

  // Removes the files that were not used for longest, until this one fits.
  // kLimit: it alone is larger than the bound.
  Status Store(std::string_view name, std::string_view bytes);

  uint64_t removed() const { return removed_; }  // files, to make room

 private:
  DiskCache(std::string directory, std::string suffix, uint64_t max_bytes)
      : directory_(std::move(directory)),
        suffix_(std::move(suffix)),
        max_bytes_(max_bytes) {}

  void MakeRoom(uint64_t bytes);

  std::string directory_;
  std::string suffix_;
  uint64_t max_bytes_;
  uint64_t removed_ = 0;
};

}  // namespace ksym
