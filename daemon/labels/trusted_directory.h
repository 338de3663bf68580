// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// A file as it was: one that differs may have other bytes.
struct FileStamp {
  uint64_t inode = 0;
  int64_t changed_s = 0;  // status change
  int64_t changed_ns = 0;
  int64_t size_bytes = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// A directory of the machine's own (ksym::IsOfMachine), and what is in it. No
// link in it is followed, and nothing that somebody else could have written is
// read. Not thread-safe. Each call is a few system calls on a disk that may be
// slow.
class TrustedDirectory {
 public:
  // Names that are looked at in one directory.
  static constexpr size_t kMaxDirectoryEntries = 65536;
  static constexpr size_t kMaxLinkBytes = 4096;

  // Links in the path itself are followed: it is the configuration's. kNotFound
  // and kIo as open(2); kPermission also where it is somebody else's.
  static ksym::Result<TrustedDirectory> Open(const std::string& path);

  // Each name but "." and "..". kLimit: there are more than
  // kMaxDirectoryEntries.
  ksym::Status ForEachName(
      const std::function<void(const std::string&)>& name) const;
  // Whether there is a directory of the machine's own at that path.
  bool HasDirectory(const std::string& path) const;
  // Where a link of the machine's own points to. kNotFound: it is no link.
  ksym::Result<std::string> ReadLink(const std::string& name) const;
  // kNotFound: there is no regular file; kLimit: it has more bytes.
  ksym::Result<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes) const;
  // kNotFound as above.
  ksym::Result<FileStamp> StampOf(const std::string& path) const;

 private:
  explicit TrustedDirectory(ksym::UniqueFd fd) : fd_(std::move(fd)) {}

  ksym::Result<ksym::UniqueFd> OpenBelow(const std::string& path,
                                         int flags) const;

  ksym::UniqueFd fd_;
};

}  // namespace profd
