// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/layout.h"
#include "ksym/base/result.h"

namespace profd::history {

// A file that a writer keeps.
struct StoredFile {
  FileName name;
  uint64_t bytes = 0;
  bool is_settled = false;  // it was thinned out, or cannot be
};

// The files of a directory that nothing is appended to any more: segments, and
// journals that were left. Readers come at any time and keep what they have
// opened. Not thread-safe.
class StoredFiles {
 public:
  explicit StoredFiles(std::string directory)
      : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  std::string PathOf(const FileName& name) const;
  // Oldest first, once Sort() was called after those of the start were added.
  const std::deque<StoredFile>& all() const { return files_; }
  uint64_t bytes() const { return bytes_; }

  // One that is on the disk.
  void Add(const FileName& name);
  void Add(const FileName& name, uint64_t bytes);
  void Sort();
  // Its bytes, and its name too, are on the disk when it returns. A file that
  // has the name is replaced at once. The list stays as it is.
  ksym::Status Write(const FileName& name, const std::string& bytes) const;
  // The same in place of files beside each other, which it covers: these go
  // when it is on the disk. After a failure they are there as before.
  ksym::Status Unite(size_t begin, size_t count, const FileName& name,
                     const std::string& bytes);
  // The same in place of the file of its own name. After a failure it is one of
  // the two.
  ksym::Status Rewrite(size_t place, const std::string& bytes);
  // Nothing more is to be made of it.
  void Settle(size_t place, bool is_settled = true) {
    files_[place].is_settled = is_settled;
  }
  // One that others cover, and that is not in the list. Where that fails
  // RemoveLeftovers() tries again.
  void Remove(const FileName& covered);
  void RemoveLeftovers();
  // False: there is none.
  bool DeleteOldest();
  // Names of files are on the disk.
  ksym::Status Sync() const;

 private:
  std::string directory_;
  std::deque<StoredFile> files_;
  uint64_t bytes_ = 0;               // of these
  std::vector<FileName> leftovers_;  // that could not be removed
};

}  // namespace profd::history
