// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/debug_file.h"

#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <ctime>
#include <span>
#include <utility>

#include "ksym/base/byte_reader.h"

namespace ksym {
namespace {

constexpr std::string_view kDebugDirectory = "/usr/lib/debug";
constexpr size_t kMaxLinkBytes = 4096;
constexpr size_t kMaxPackedBytes = size_t{32} << 20;
// What the decoder may use itself; xz -9 needs 65 MB.
constexpr uint64_t kMaxDecoderBytes = uint64_t{96} << 20;
constexpr size_t kBlockBytes = size_t{64} << 10;

Result<uint32_t> ReadCrc(const ByteSource& source) {
  std::vector<std::byte> block(kBlockBytes);
  uLong crc = ::crc32(0, nullptr, 0);
  for (uint64_t at = 0; at < source.size(); at += block.size()) {
    const auto bytes = std::span(block).first(static_cast<size_t>(
        std::min<uint64_t>(source.size() - at, block.size())));
    const auto read = source.ReadAt(at, bytes);
    if (!read) return Fail(read.error());
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()),
                  static_cast<uInt>(bytes.size()));
  }
  return static_cast<uint32_t>(crc);
}

int64_t NsOf(const timespec& time) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec;
}

// Whether `debug` was split off the file with this build-id.
bool IsDebugFileOf(const ByteSource& debug, const std::string& build_id,
                   const std::optional<DebugLink>& link,
                   DebugFileChecksums* checksums) {
  const auto image = ElfImage::Parse(debug);
  if (!image || !image->section_error()) return false;
  // The build-id goes first: it is a few bytes, and for the CRC the whole file
  // is read.
  if (!build_id.empty() && !image->build_id().empty()) {
    return image->build_id() == build_id;
  }
  return link && checksums != nullptr && checksums->Crc(debug) == link->crc;
}

// Owns a decoder's state.
class XzDecoder {
 public:
  XzDecoder() = default;
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;
  ~XzDecoder() { ::lzma_end(&stream_); }

  Result<std::string> Decode(std::span<const std::byte> packed) {
    if (::lzma_stream_decoder(&stream_, kMaxDecoderBytes, 0) != LZMA_OK) {
      return Fail(ErrorCode::kLimit, ".gnu_debugdata: no memory to unpack it");
    }
    stream_.next_in = reinterpret_cast<const uint8_t*>(packed.data());
    stream_.avail_in = packed.size();
    std::string text;
    lzma_ret result = LZMA_OK;
    while (result == LZMA_OK && text.size() <= kMaxDebugDataBytes) {
      const size_t used = text.size();
      // A byte more than is allowed tells what is too large from what just
      // fits.
      text.resize(
          std::min(used + std::max(used, kBlockBytes), kMaxDebugDataBytes + 1));
      stream_.next_out = reinterpret_cast<uint8_t*>(text.data()) + used;
      stream_.avail_out = text.size() - used;
      result = ::lzma_code(&stream_, LZMA_FINISH);
      text.resize(text.size() - stream_.avail_out);
    }
    if (text.size() > kMaxDebugDataBytes) {
      return Fail(ErrorCode::kLimit, ".gnu_debugdata: too large when unpacked");
    }
    if (result != LZMA_STREAM_END) {
      return Fail(result == LZMA_MEMLIMIT_ERROR ? ErrorCode::kLimit
                                                : ErrorCode::kCorrupt,
                  ".gnu_debugdata: cannot be unpacked");
    }
    return text;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

}  // namespace

std::optional<DebugFileChecksums::File> DebugFileChecksums::FileOf(
    const ByteSource& file) {
  struct stat status = {};
  const auto owner = file.owner();
  if (!owner || ::fstat(file.fd(), &status) != 0) return std::nullopt;
  return File{.key = {.device = status.st_dev,
                      .inode = status.st_ino,
                      .size = file.size(),
                      .mtime_ns = NsOf(status.st_mtim),
                      // The modification time can be set back by the file's
                      // owner (utimensat(2)), this one cannot.
                      .ctime_ns = NsOf(status.st_ctim)},
              .owner = owner->user};
}

// Under the mutex. False: there is not so much left.
bool DebugFileChecksums::Take(uint64_t bytes, uint32_t owner,
                              Account& account) {
  if (bytes > kMaxCrcBytes || bytes > account.bytes_left) return false;
  if (&account == &others_) {
    const auto user = bytes_of_users_.find(owner);
    const uint64_t used = user == bytes_of_users_.end() ? 0 : user->second;
    if (bytes > bounds_.bytes_of_user - used ||
        (used == 0 && bytes_of_users_.size() >= kMaxRemembered)) {
      return false;
    }
    bytes_of_users_[owner] = used + bytes;
  }
  account.bytes_left -= bytes;
  return true;
}

Result<uint32_t> DebugFileChecksums::Crc(const ByteSource& file) {
  // What is no file came from somewhere else at this program's wish.
  const auto described = FileOf(file);
  const uint32_t owner = described ? described->owner : 0;
  Account& account = owner == 0 ? root_ : others_;
  {
    const std::scoped_lock lock(mutex_);
    const auto known =
        described ? account.known.find(described->key) : account.known.end();
    if (known != account.known.end()) return known->second;
    // Taken before the file is read, so that threads that read at the same time
    // cannot go beyond the bounds together.
    if (!Take(file.size(), owner, account)) {
      ++refused_;
      return Fail(ErrorCode::kLimit, "no checksum of a debug file of " +
                                         std::to_string(file.size()) +
                                         " bytes");
    }
  }
  // Without the lock: it can take long, and others know their sums already. Two
  // that read one file at once pay for it twice.
  const auto crc = ReadCrc(file);
  const std::scoped_lock lock(mutex_);
  if (crc && described && account.known.size() < kMaxRemembered) {
    account.known[described->key] = *crc;
  }
  return crc;
}

uint64_t DebugFileChecksums::refused() const {
  const std::scoped_lock lock(mutex_);
  return refused_;
}

DebugFileOpener OnlyTrusted(const FileOwner& program, DebugFileOpener open) {
  return [program, open = std::move(open)](
             const std::string& path) -> Result<ByteSource> {
    auto source = open(path);
    if (!source) return source;
    // The owner of what was opened: its path may lead to another file by now.
    const auto owner = source->owner();
    if (!owner) return Fail(Error(owner.error()).WithContext(path));
    if (!MayName(*owner, program, ::geteuid())) {
      return Fail(ErrorCode::kPermission,
                  path + " (of user " + std::to_string(owner->user) +
                      "): neither root's nor the file's owner's alone");
    }
    return source;
  };
}

std::optional<DebugLink> ReadDebugLink(const ByteSource& source,
                                       const ElfImage& image) {
  const ElfSection* section = image.FindSection(".gnu_debuglink");
  if (section == nullptr) return std::nullopt;
  const auto bytes = ReadSection(source, *section, kMaxLinkBytes);
  if (!bytes) return std::nullopt;
  ByteReader in(*bytes);
  const std::string_view text = in.ReadString(bytes->size());
  const size_t end = text.find('\0');
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  DebugLink link;
  link.name = text.substr(0, end);
  in.Seek((end + 4) / 4 * 4);  // behind the NUL, aligned
  link.crc = in.Read<uint32_t>();
  // A path could lead out of the directories that are searched.
  if (!in.ok() || link.name.find('/') != std::string::npos) {
    return std::nullopt;
  }
  return link;
}

std::vector<std::string> DebugFilePaths(std::string_view build_id,
                                        const std::optional<DebugLink>& link,
                                        std::string_view file_path) {
  std::vector<std::string> paths;
  const std::string root(kDebugDirectory);
  if (build_id.size() > 2) {
    paths.push_back(std::string(kBuildIdDirectory) +
                    std::string(build_id.substr(0, 2)) + "/" +
                    std::string(build_id.substr(2)) + ".debug");
  }
  const size_t slash = file_path.rfind('/');
  if (link && slash != std::string_view::npos) {
    const std::string directory(file_path.substr(0, slash + 1));
    paths.push_back(directory + link->name);
    paths.push_back(directory + ".debug/" + link->name);
    paths.push_back(root + directory + link->name);
  }
  return paths;
}

Result<ByteSource> FindDebugFile(const ByteSource& source,
                                 const ElfImage& image,
                                 const DebugFileFinder& finder) {
  if (!finder.open) return Fail(ErrorCode::kNotFound, "not looked for");
  const auto link = ReadDebugLink(source, image);
  DebugFileChecksums own;
  DebugFileChecksums* checksums =
      finder.checksums != nullptr ? finder.checksums.get() : &own;
  for (const std::string& path :
       DebugFilePaths(ToHex(image.build_id()), link, finder.file_path)) {
    auto debug = finder.open(path);
    if (debug && IsDebugFileOf(*debug, image.build_id(), link, checksums)) {
      return debug;
    }
  }
  return Fail(ErrorCode::kNotFound, "no debug file");
}

Result<ByteSource> FetchDebugFile(const ElfImage& image,
                                  const DebugFileFinder& finder) {
  if (!finder.fetch || image.build_id().empty()) {
    return Fail(ErrorCode::kNotFound, "not looked for");
  }
  auto debug = finder.fetch(ToHex(image.build_id()));
  if (!debug) return debug;
  // Only the build-id counts here: the server was asked for nothing else.
  if (!IsDebugFileOf(*debug, image.build_id(), std::nullopt, nullptr)) {
    return Fail(ErrorCode::kNotFound, "not the debug file that was asked for");
  }
  return debug;
}

Result<ByteSource> UnpackDebugData(const ByteSource& source,
                                   const ElfImage& image) {
  const ElfSection* section = image.FindSection(".gnu_debugdata");
  if (section == nullptr) {
    return Fail(ErrorCode::kNotFound, "no .gnu_debugdata");
  }
  const auto packed = ReadSection(source, *section, kMaxPackedBytes);
  if (!packed) return Fail(packed.error());
  auto text = XzDecoder().Decode(*packed);
  if (!text) return Fail(std::move(text.error()));
  return ByteSource::OfMemory(std::move(*text));
}

}  // namespace ksym
