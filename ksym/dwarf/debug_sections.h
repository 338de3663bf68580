#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

// The sections that functions, lines and inlined calls are read from.
enum class DebugSection : uint8_t {
  kInfo,
  kAbbrev,
  kLine,
  kStr,
  kLineStr,
  kStrOffsets,
  kAddr,
  kRanges,
  kRnglists,
  kCuIndex,
};
inline constexpr size_t kDebugSectionCount = 10;

// No section may be larger; the debug data of a browser has 2 GiB in one.
inline constexpr uint64_t kMaxDebugSectionBytes = uint64_t{4} << 30;

// The contents of those sections of one file, read into memory. Move-only.
class DebugSections {
 public:
  // Which names the sections have: ".debug_info" or ".debug_info.dwo".
  enum class Kind : uint8_t { kPlain, kSplit };

  // A section that is not there is empty. kCorrupt, kLimit, kUnsupported: one
  // that cannot be read or unpacked, named.
  static Result<DebugSections> Load(const ByteSource& source,
                                    const ElfImage& image, Kind kind);

  std::span<const std::byte> Get(DebugSection section) const {
    const Bytes& bytes = sections_[static_cast<size_t>(section)];
    return {bytes.data.get(), bytes.size};
  }
  size_t memory_bytes() const;
  // The NUL-terminated text at the offset; empty when there is none.
  std::string_view Text(DebugSection section, uint64_t offset) const;

 private:
  struct Bytes {
    std::unique_ptr<std::byte[]> data;
    size_t size = 0;
  };

  std::array<Bytes, kDebugSectionCount> sections_;
};

}  // namespace ksym
