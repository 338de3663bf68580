// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/stored_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "daemon/history/history_directory.h"
#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"

namespace profd::history {

using ksym::Fail;
using ksym::Status;

std::string StoredFiles::PathOf(const FileName& name) const {
  return directory_ + "/" + TextOf(name);
}

void StoredFiles::Add(const FileName& name) {
  Add(name, SizeOfFile(PathOf(name)));
}

void StoredFiles::Add(const FileName& name, uint64_t bytes) {
  files_.push_back({.name = name, .bytes = bytes});
  bytes_ += bytes;
}

void StoredFiles::Sort() {
  std::ranges::sort(files_, {}, [](const StoredFile& file) {
    return file.name.sequences.first;
  });
}

Status StoredFiles::Write(const FileName& name,
                          const std::string& bytes) const {
  auto file = ksym::AtomicFile::Create(PathOf(name));
  if (!file) return Fail(std::move(file.error()));
  auto written = file->Write(bytes);
  if (written) written = file->Commit(ksym::AtomicFile::Durability::kDurable);
  if (written) written = Sync();
  return written;
}

// The new file first, and on the disk; then those that it covers go, and
// readers take it instead from its name on. Where the disk is full nothing is
// deleted for it.
Status StoredFiles::Unite(size_t begin, size_t count, const FileName& name,
                          const std::string& bytes) {
  auto written = Write(name, bytes);
  if (!written) {
    // It may be there without being on the disk.
    ::unlink(PathOf(name).c_str());
    return written;
  }
  const auto first = files_.begin() + static_cast<ptrdiff_t>(begin);
  const auto end = first + static_cast<ptrdiff_t>(count);
  for (auto file = first; file != end; ++file) {
    bytes_ -= file->bytes;
    Remove(file->name);
  }
  *first = {.name = name, .bytes = bytes.size()};
  bytes_ += first->bytes;
  files_.erase(first + 1, end);
  return {};
}

Status StoredFiles::Rewrite(size_t place, const std::string& bytes) {
  StoredFile& file = files_[place];
  auto written = Write(file.name, bytes);
  // Its size tells which of the two it is.
  bytes_ -= file.bytes;
  file.bytes = SizeOfFile(PathOf(file.name));
  bytes_ += file.bytes;
  return written;
}

void StoredFiles::Remove(const FileName& covered) {
  if (::unlink(PathOf(covered).c_str()) != 0 && errno != ENOENT) {
    leftovers_.push_back(covered);
  }
}

void StoredFiles::RemoveLeftovers() {
  for (const FileName& name : std::exchange(leftovers_, {})) Remove(name);
}

bool StoredFiles::DeleteOldest() {
  if (files_.empty()) return false;
  // Without the one that covers them they would count again.
  RemoveLeftovers();
  ::unlink(PathOf(files_.front().name).c_str());
  bytes_ -= files_.front().bytes;
  files_.pop_front();
  return true;
}

Status StoredFiles::Sync() const {
  const ksym::UniqueFd fd(
      // Names of files are data of the directory (fsync(2)).
      ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) {
    return ksym::FailErrno(errno, directory_);
  }
  return {};
}

}  // namespace profd::history
