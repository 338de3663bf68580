// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace ksym {

// The directory that has this entry, as the path names it: "." for a name
// alone,
// "/" for what is in the root.
std::string ParentDirectory(const std::string& path);

// Opens with O_RDONLY | O_CLOEXEC | O_NONBLOCK (a FIFO does not block).
Result<UniqueFd> OpenForRead(const std::string& path);

// Opens what the user named: a FIFO is waited for, as other programs do.
Result<UniqueFd> OpenInput(const std::string& path);

// Everything from the descriptor's position to the end, at most max_bytes
// (then kLimit). Works on /proc files, whose size is not known beforehand.
Result<std::string> ReadAll(int fd, size_t max_bytes);
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);

// pread(2) until `size` bytes are there; kCorrupt when the file ends before.
Status ReadExactlyAt(int fd, uint64_t offset, std::span<std::byte> out);

// write(2) until everything is written.
Status WriteAll(int fd, std::string_view bytes);

// Reads the descriptor in large blocks and calls `line` with each line without
// its newline, the last one also when no newline ends it. `line` returns false
// to stop early. kLimit: a line is longer than kLongestLineBytes. Memory is
// twice the longest line, or a block.
inline constexpr size_t kLongestLineBytes = size_t{64} << 20;
Status ForEachLine(int fd, const std::function<bool(std::string_view)>& line);

// Where bytes come from, one after another. Not thread-safe.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // The next bytes, at least one unless `out` is empty; 0 at the end.
  virtual Result<size_t> Read(std::span<char> out) = 0;
};

// A descriptor, which it borrows, from its position on.
class FdStream final : public ByteStream {
 public:
  explicit FdStream(int fd) : fd_(fd) {}
  Result<size_t> Read(std::span<char> out) override;

 private:
  int fd_;
};

// As ForEachLine, with as many whole lines at once as a block has, for callers
// to which a call per line is too much: each line with its newline, but the
// last one of a file that does not end with one. Never empty.
Status ForEachBlockOfLines(ByteStream& source,
                           const std::function<bool(std::string_view)>& lines);
Status ForEachBlockOfLines(int fd,
                           const std::function<bool(std::string_view)>& lines);

// A file that appears under its name whole or not at all: written to a file
// without a name in the same directory (O_TMPFILE), which then gets one, so
// that whoever is killed leaves nothing behind. Where the file system has no
// such files it is a temporary file beside it, which is removed without
// Commit(). It has the owner and mode of the file that it replaces, else mode
// 0666 less the umask. The target's directory must exist. A name that it has
// before Commit() ends is locked: RemoveAbandoned() tells it from one that was
// left behind.
class AtomicFile {
 public:
  // kPermission also where somebody else's file in a directory where everybody
  // may write would be replaced.
  static Result<AtomicFile> Create(const std::string& path);
  // Removes a temporary file whose writer has ended, by its whole name. Whether
  // it did.
  static bool RemoveAbandoned(const std::string& temporary_path);
  AtomicFile(AtomicFile&& other) noexcept = default;
  AtomicFile& operator=(AtomicFile&& other) = delete;
  ~AtomicFile();

  int fd() const { return fd_.get(); }
  Status Write(std::string_view bytes);
  // Closes and renames. With kDurable the data reaches the disk first.
  enum class Durability { kNone, kDurable };
  Status Commit(Durability durability = Durability::kNone);

 private:
  AtomicFile(std::string path, std::string temporary_path, UniqueFd fd);

  Status Link();

  std::string path_;
  std::string temporary_path_;  // empty: it has no name yet
  UniqueFd fd_;
};

// A whole regular file mapped read-only. Only for files that this project
// wrote by rename, and in programs that end with a message for those that their
// user names: another process that truncates a mapped file makes the reader die
// of SIGBUS. Files of profiled processes are read with ReadExactlyAt.
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);
  // Advises the kernel on a file that is open for reading; the descriptor is
  // not kept. kWhole has all of it fetched from the disk ahead, kParts what is
  // read.
  enum class Use : uint8_t { kWhole, kParts };
  static Result<MappedFile> OfDescriptor(int fd, Use use = Use::kWhole);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ksym
