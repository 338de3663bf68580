// SPDX-License-Identifier: Apache-2.0
#include "ksym/base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "ksym/base/sticky_directory.h"
#include "ksym/base/text.h"

namespace ksym {
namespace {

constexpr size_t kBlockBytes = 64 * 1024;
// The first block of a file that does not say how long it is, as those of /proc
// and /sys: most of them are short, and they are read again and again.
constexpr size_t kShortBytes = 4096;

ssize_t ReadRetry(int fd, void* out, size_t size) {
  ssize_t n = 0;
  do {
    n = ::read(fd, out, size);
  } while (n < 0 && errno == EINTR);
  return n;
}

// Has the kernel fetch all of it at once. What is not in memory is otherwise
// fetched in small parts, each when the one before is there: on a slow disk
// that takes twice as long or more. The kernel looks at the first part of each
// request only, so there are several; 1 us each where all is in memory.
void WillNeed(int fd, uint64_t offset, uint64_t size) {
  constexpr uint64_t kPart = 128 << 10;
  if (size <= kPart || offset > INT64_MAX - size) return;
  for (uint64_t at = offset; at < offset + size; at += kPart) {
    // Whatever it is that cannot be fetched ahead is read all the same.
    if (::posix_fadvise(fd, static_cast<off_t>(at), kPart,
                        POSIX_FADV_WILLNEED) != 0) {
      return;
    }
  }
}

}  // namespace

std::string ParentDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<UniqueFd> OpenForRead(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FailErrno(errno, path);
  return fd;
}

Result<UniqueFd> OpenInput(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return FailErrno(errno, path);
  return fd;
}

Result<std::string> ReadAll(int fd, size_t max_bytes) {
  std::string text;
  size_t block = kShortBytes;
  struct stat status = {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    const auto size = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
    block = std::clamp<uint64_t>(size, kShortBytes, kBlockBytes);
    // One block more, in which the end shows.
    text.reserve(std::min<uint64_t>(size, max_bytes) + block);
  }
  size_t used = 0;
  for (;;) {
    if (used == max_bytes) {
      char probe = 0;
      const ssize_t n = ReadRetry(fd, &probe, 1);
      if (n < 0) return FailErrno(errno, "read");
      if (n == 0) break;
      return Fail(ErrorCode::kLimit,
                  "larger than " + std::to_string(max_bytes) + " bytes");
    }
    const size_t want = std::min(max_bytes - used, block);
    text.resize(used + want);
    const ssize_t n = ReadRetry(fd, text.data() + used, want);
    if (n < 0) return FailErrno(errno, "read");
    used += static_cast<size_t>(n);
    if (n == 0) break;
    if (used == text.size()) block = std::min(2 * block, kBlockBytes);
  }
  text.resize(used);
  return text;
}

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  const auto fd = OpenForRead(path);
  if (!fd) return Fail(fd.error());
  auto text = ReadAll(fd->get(), max_bytes);
  if (!text) return Fail(std::move(text.error()).WithContext(path));
  return text;
}

Status ReadExactlyAt(int fd, uint64_t offset, std::span<std::byte> out) {
  WillNeed(fd, offset, out.size());
  size_t done = 0;
  while (done < out.size()) {
    const uint64_t position = offset + done;
    if (position < offset || position > INT64_MAX) {
      return Fail(ErrorCode::kCorrupt, "offset past the end of any file");
    }
    const ssize_t n = ::pread(fd, out.data() + done, out.size() - done,
                              static_cast<off_t>(position));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno(errno, "pread");
    if (n == 0) {
      return Fail(ErrorCode::kCorrupt,
                  "file ends at offset " + std::to_string(position));
    }
    done += static_cast<size_t>(n);
  }
  return {};
}

Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno(errno, "write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<size_t> FdStream::Read(std::span<char> out) {
  const ssize_t n = ReadRetry(fd_, out.data(), out.size());
  if (n < 0) return FailErrno(errno, "read");
  return static_cast<size_t>(n);
}

Status ForEachBlockOfLines(int fd,
                           const std::function<bool(std::string_view)>& lines) {
  FdStream source(fd);
  return ForEachBlockOfLines(source, lines);
}

Status ForEachBlockOfLines(ByteStream& source,
                           const std::function<bool(std::string_view)>& lines) {
  std::vector<char> block(kBlockBytes);
  size_t used = 0;  // bytes of an unfinished line at the front of the block
  for (;;) {
    if (used >= kLongestLineBytes) {
      return Fail(ErrorCode::kLimit, "a line is longer than " +
                                         std::to_string(kLongestLineBytes) +
                                         " bytes");
    }
    if (used == block.size()) block.resize(block.size() * 2);
    const auto n = source.Read(std::span(block).subspan(used));
    if (!n) return Fail(n.error());
    if (*n == 0) break;
    const std::string_view added(block.data() + used, *n);
    const size_t last = added.rfind('\n');
    if (last == std::string_view::npos) {
      used += added.size();
      continue;
    }
    const size_t whole = used + last + 1;
    if (!lines({block.data(), whole})) return {};
    used = added.size() - last - 1;
    std::memmove(block.data(), block.data() + whole, used);
  }
  if (used > 0) lines({block.data(), used});
  return {};
}

Status ForEachLine(int fd, const std::function<bool(std::string_view)>& line) {
  return ForEachBlockOfLines(fd, [&](std::string_view lines) {
    while (!lines.empty()) {
      if (!line(TakeField(lines, '\n'))) return false;
    }
    return true;
  });
}

AtomicFile::AtomicFile(std::string path, std::string temporary_path,
                       UniqueFd fd)
    : path_(std::move(path)),
      temporary_path_(std::move(temporary_path)),
      fd_(std::move(fd)) {}

AtomicFile::~AtomicFile() {
  if (fd_.valid() && !temporary_path_.empty()) {
    ::unlink(temporary_path_.c_str());
  }
}

namespace {

// As mkostemp() makes them.
std::string RandomEnding() {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::array<unsigned char, 6> random = {};
  // Not even early in boot would equal names do harm: there is another try.
  if (::getrandom(random.data(), random.size(), GRND_NONBLOCK) < 0) random = {};
  std::string ending = ".";
  for (const unsigned char byte : random) {
    ending += kLetters[byte % kLetters.size()];
  }
  return ending;
}

// Keeps signals of the calling thread waiting for as long as it lives.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_ = {};
};

// Gives the new file the owner and mode of the one whose place it will take,
// so that a private file stays private; where there is none, the mode that
// open(2) would have given (mkostemp makes files for their owner alone).
Status TakeOver(const std::string& path, int fd) {
  struct stat old = {};
  if (::lstat(path.c_str(), &old) != 0 || !S_ISREG(old.st_mode)) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd, 0666 & ~mask) != 0) return FailErrno(errno, path);
    return {};
  }
  if (IsBaitOfOthers(path, old)) return FailErrno(EACCES, path);
  struct stat fresh = {};
  if (::fstat(fd, &fresh) != 0) return FailErrno(errno, path);
  const bool same_owner =
      old.st_uid == fresh.st_uid && old.st_gid == fresh.st_gid;
  // Without the privilege to give it away the file stays ours alone.
  if (!same_owner && ::fchown(fd, old.st_uid, old.st_gid) != 0) return {};
  // After the owner, as fchown(2) takes set-user-ID bits away.
  if (::fchmod(fd, old.st_mode & 07777) != 0) return FailErrno(errno, path);
  return {};
}

struct TemporaryFile {
  std::string path;  // empty: it has no name yet
  UniqueFd fd;
};

// A file that somebody removed before it was locked has no name any more.
bool HasName(int fd) {
  struct stat status = {};
  return ::fstat(fd, &status) != 0 || status.st_nlink > 0;
}

// Locked by then, so that RemoveAbandoned() leaves it alone from its name on.
// Where the file system has no locks it is as any other file.
Result<TemporaryFile> MakeTemporaryFile(const std::string& path) {
  UniqueFd nameless(::open(ParentDirectory(path).c_str(),
                           O_TMPFILE | O_WRONLY | O_CLOEXEC,
                           S_IRUSR | S_IWUSR));
  if (nameless.valid()) {
    (void)::flock(nameless.get(), LOCK_EX | LOCK_NB);
    return TemporaryFile{.path = {}, .fd = std::move(nameless)};
  }
  // Whatever it is that the file system does not have, the other way tells.
  constexpr int kMaxTries = 10;
  for (int i = 0; i < kMaxTries; ++i) {
    TemporaryFile file{.path = path + ".XXXXXX", .fd = UniqueFd()};
    file.fd = UniqueFd(::mkostemp(file.path.data(), O_CLOEXEC));
    if (!file.fd.valid()) return FailErrno(errno, path);
    (void)::flock(file.fd.get(), LOCK_EX | LOCK_NB);
    if (HasName(file.fd.get())) return file;
  }
  return Fail(ErrorCode::kIo, path + ": its temporary file is removed");
}

}  // namespace

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  auto made = MakeTemporaryFile(path);
  if (!made) return Fail(std::move(made.error()));
  auto prepared = TakeOver(path, made->fd.get());
  AtomicFile file(path, std::move(made->path), std::move(made->fd));
  if (!prepared) return Fail(std::move(prepared.error()));
  return file;
}

bool AtomicFile::RemoveAbandoned(const std::string& temporary_path) {
  const UniqueFd fd(::open(temporary_path.c_str(),
                           O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  return fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 &&
         ::unlink(temporary_path.c_str()) == 0;
}

Status AtomicFile::Write(std::string_view bytes) {
  auto written = WriteAll(fd_.get(), bytes);
  if (!written) return Fail(std::move(written.error()).WithContext(path_));
  return {};
}

// Gives the file a temporary name. linkat(2) replaces no file, rename(2) does.
Status AtomicFile::Link() {
  const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::string name = path_ + RandomEnding();
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(),
                 AT_SYMLINK_FOLLOW) == 0) {
      temporary_path_ = name;
      return {};
    }
    if (errno != EEXIST) break;
  }
  return FailErrno(errno, path_);
}

Status AtomicFile::Commit(Durability durability) {
  if (durability == Durability::kDurable && ::fsync(fd_.get()) != 0) {
    return FailErrno(errno, path_);
  }
  // A signal between the two calls would leave the temporary name behind.
  const SignalsHeld held;
  if (temporary_path_.empty()) {
    auto linked = Link();
    if (!linked) return linked;
  }
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return FailErrno(errno, path_);
  }
  // Only now: the lock goes with it, and by then no temporary name is there.
  fd_.Reset();
  return {};
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const auto fd = OpenForRead(path);
  if (!fd) return Fail(fd.error());
  auto file = OfDescriptor(fd->get());
  if (!file) return Fail(std::move(file.error()).WithContext(path));
  return file;
}

Result<MappedFile> MappedFile::OfDescriptor(int fd, Use use) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return FailErrno(errno, "fstat");
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kUnsupported, "not a regular file");
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile(nullptr, 0);
  if (use == Use::kWhole) WillNeed(fd, 0, size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return FailErrno(errno, "mmap");
  return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace ksym
