// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/base/trust.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// Where distributions install debug files by build-id.
inline constexpr std::string_view kBuildIdDirectory =
    "/usr/lib/debug/.build-id/";

// What .gnu_debuglink says: the name of a file without directories, and the
// CRC-32 of its bytes ("Debugging Information in Separate Files" in the manual
// of GDB).
struct DebugLink {
  std::string name;
  uint32_t crc = 0;
};

// Gets a debug file from elsewhere, by its build-id in hex; may take long.
using DebugFileSource =
    std::function<Result<ByteSource>(const std::string& build_id)>;

// The CRC-32 of a larger file is not computed.
inline constexpr uint64_t kMaxCrcBytes = uint64_t{256} << 20;

// The checksums of debug files, with bounds for the bytes that are read for
// them: anybody can have links that lead to large files, which need not even
// have bytes on the disk. Files of root have a bound of their own, so that
// nobody else uses it up, and of the others each user has a part. A file's
// checksum is remembered until the file changes. Thread-safe.
class DebugFileChecksums {
 public:
  struct Bounds {
    // For root's files, and for those of all others: some 0.6 s of reading
    // each.
    uint64_t bytes = kMaxBytes;
    uint64_t bytes_of_user = kMaxBytesOfUser;  // of the others
  };
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  static constexpr uint64_t kMaxBytesOfUser = uint64_t{256} << 20;
  // For root's files, and for those of all others; likewise users.
  static constexpr size_t kMaxRemembered = 4096;

  DebugFileChecksums() : DebugFileChecksums(Bounds()) {}
  explicit DebugFileChecksums(const Bounds& bounds)
      : bounds_(bounds),
        root_{.bytes_left = bounds.bytes, .known = {}},
        others_{.bytes_left = bounds.bytes, .known = {}} {}

  // kLimit: the file is larger than kMaxCrcBytes, or than what is left for
  // files of its owner. kCorrupt, kIo: it could not be read to its end.
  Result<uint32_t> Crc(const ByteSource& file);

  // How often there was kLimit.
  uint64_t refused() const;

 private:
  // The file whose sum it is: device, inode, size, and when it was changed.
  struct Key {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t size = 0;
    int64_t mtime_ns = 0;
    int64_t ctime_ns = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // What is left, and what is known, of files of root or of all others.
  struct Account {
    uint64_t bytes_left = 0;
    std::map<Key, uint32_t> known;
  };
  struct File {
    Key key;
    uint32_t owner = 0;
  };
  static std::optional<File> FileOf(const ByteSource& file);
  bool Take(uint64_t bytes, uint32_t owner, Account& account);

  const Bounds bounds_;
  mutable std::mutex mutex_;  // of what follows
  Account root_;
  Account others_;
  std::map<uint32_t, uint64_t> bytes_of_users_;  // that were read
  uint64_t refused_ = 0;
};

// Opens a path in the file system that a file is in.
using DebugFileOpener =
    std::function<Result<ByteSource>(const std::string& path)>;

// `open`, but for files that may not name the code of `program` (MayName in
// ksym/base/trust.h): these are kPermission without an errno, and the message
// says whose they are.
DebugFileOpener OnlyTrusted(const FileOwner& program, DebugFileOpener open);

// Where the symbols of a stripped file may be found; all empty: look nowhere.
// `open` has to be OnlyTrusted() unless a user named the places.
struct DebugFileFinder {
  std::string file_path;  // the stripped file's own
  DebugFileOpener open;
  DebugFileSource fetch = {};  // asked last
  // Shared by the finders of all files; null: one for this file alone.
  std::shared_ptr<DebugFileChecksums> checksums = {};
};

// Nothing when there is none, or when it names a path instead of a file.
std::optional<DebugLink> ReadDebugLink(const ByteSource& source,
                                       const ElfImage& image);

// The places to look at, in this order: the build-id directory, then beside the
// file, in ".debug" beside it, and in its directory below /usr/lib/debug.
// `build_id` is in hex.
std::vector<std::string> DebugFilePaths(std::string_view build_id,
                                        const std::optional<DebugLink>& link,
                                        std::string_view file_path);

// The debug file of `image`, opened: one with the same build-id or, where one
// of them has none, with the CRC that the link gives. kNotFound otherwise.
// Cost: up to four opens; a CRC reads the file, within the bounds of
// DebugFileChecksums.
Result<ByteSource> FindDebugFile(const ByteSource& source,
                                 const ElfImage& image,
                                 const DebugFileFinder& finder);

// What `finder` fetches for the build-id of `image`, if its own build-id is the
// same; kNotFound otherwise, or if there is nothing to ask or ask for.
Result<ByteSource> FetchDebugFile(const ElfImage& image,
                                  const DebugFileFinder& finder);

// The ELF image in the .gnu_debugdata section ("MiniDebugInfo" in the manual
// of GDB): xz, at most kMaxDebugDataBytes when unpacked, which then is kLimit.
// kNotFound when there is none.
inline constexpr size_t kMaxDebugDataBytes = size_t{64} << 20;
Result<ByteSource> UnpackDebugData(const ByteSource& source,
                                   const ElfImage& image);

}  // namespace ksym
