#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// Where distributions install debug files by build-id.
inline constexpr std::string_view kBuildIdFolder = "/usr/lib/debug/.build-id/";

// What .gnu_debuglink says: the name of a file without folders, and the CRC-32
// of its bytes ("Debugging Information in Separate Files" in the manual of
// GDB).
struct DebugLink {
  std::string name;
  uint32_t crc = 0;
};

// Gets a debug file from elsewhere, by its build-id in hex; may take long.
using DebugFileSource =
    std::function<Result<ByteSource>(const std::string& build_id)>;

// Where the symbols of a stripped file may be found. `open` opens a path in the
// file system that the file is in; all empty: look nowhere.
struct DebugFileFinder {
  std::string file_path;  // the stripped file's own
  std::function<Result<ByteSource>(const std::string& path)> open;
  DebugFileSource fetch = {};  // asked last
};

// Nothing when there is none, or when it names a path instead of a file.
std::optional<DebugLink> ReadDebugLink(const ByteSource& source,
                                       const ElfImage& image);

// The places to look at, in this order: the build-id folder, then beside the
// file, in ".debug" beside it, and in its folder below /usr/lib/debug.
// `build_id` is in hex.
std::vector<std::string> DebugFilePaths(std::string_view build_id,
                                        const std::optional<DebugLink>& link,
                                        std::string_view file_path);

// The debug file of `image`, opened: one with the same build-id or, where one
// of them has none, with the CRC that the link gives. kNotFound otherwise.
// Cost: up to four opens; a CRC reads the file, of at most kMaxCrcBytes.
inline constexpr uint64_t kMaxCrcBytes = uint64_t{256} << 20;
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
