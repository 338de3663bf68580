// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ksym/base/result.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"

namespace ksym {

class SectionBytes;

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

// The contents of those sections of one file, read into memory, or where they
// are in a mapping, which this then shares. Move-only.
class DebugSections {
 public:
  // Which names the sections have: ".debug_info" or ".debug_info.dwo".
  enum class Kind : uint8_t { kPlain, kSplit };
  struct Options {
    Kind kind = Kind::kPlain;
    uint64_t max_section_bytes = kMaxDebugSectionBytes;  // unpacked
  };

  // Whether the file has a .debug_info section with bytes, compressed or not.
  static bool HasInfo(const ElfImage& image);

  // A section that is not there is empty; one that is compressed in any way is
  // unpacked. kCorrupt, kLimit, kUnsupported: one
  // that cannot be read or unpacked, named.
  static Result<DebugSections> Load(const ByteSource& source,
                                    const ElfImage& image,
                                    const Options& options);

  std::span<const std::byte> Get(DebugSection section) const {
    const Bytes& bytes = sections_[static_cast<size_t>(section)];
    return bytes.unpacked.empty() ? std::span(bytes.begin(), bytes.size)
                                  : std::as_bytes(std::span(bytes.unpacked));
  }
  // Without those that are mapped.
  size_t memory_bytes() const;
  // The NUL-terminated text at the offset; empty when there is none.
  std::string_view Text(DebugSection section, uint64_t offset) const;

 private:
  // As they are in the file, a copy or its mapping's, or unpacked.
  struct Bytes {
    std::unique_ptr<std::byte[]> data;
    const std::byte* mapped = nullptr;
    std::string unpacked;
    size_t size = 0;

    // What is not unpacked.
    const std::byte* begin() const {
      return mapped != nullptr ? mapped : data.get();
    }
    enum class Use : uint8_t { kCopy, kAsMapped };
    Status Take(SectionBytes&& bytes, uint64_t file_size, uint64_t max_bytes,
                Use use);
    std::span<std::byte> Writable() {
      return unpacked.empty() ? std::span(data.get(), size)
                              : std::as_writable_bytes(std::span(unpacked));
    }
  };

  std::array<Bytes, kDebugSectionCount> sections_;
  std::shared_ptr<const MappedFile> mapping_;
};

}  // namespace ksym
