// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/process/process_image.h"

namespace profd {

// An executable PT_LOAD segment of a file.
struct CodeSegment {
  uint64_t file_offset = 0;
  uint64_t file_size = 0;
  uint64_t address = 0;

  friend bool operator==(const CodeSegment&, const CodeSegment&) = default;
};

// The headers of a mapped file: enough to find it, or its debug file, on
// another machine and to say what an address in it is there.
struct MappedObject {
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  std::string path;      // of one of its mappings
  std::string build_id;  // lower-case hex, never empty
  std::vector<CodeSegment> segments;

  // The address that the file's headers give the byte; code may be mapped from
  // the page on in which its segment begins.
  std::optional<ksym::ElfAddress> AddressOf(ksym::FileOffset offset) const {
    constexpr uint64_t kPageMask = 4095;
    for (const CodeSegment& segment : segments) {
      const uint64_t start = segment.file_offset & ~kPageMask;
      const uint64_t skipped = segment.file_offset - start;
      if (offset.value - start < segment.file_size + skipped) {
        return ksym::ElfAddress{segment.address + offset.value -
                                segment.file_offset};
      }
    }
    return std::nullopt;
  }
  friend bool operator==(const MappedObject&, const MappedObject&) = default;
};

// The kernel's text, or a loaded module of it, where it was.
struct KernelPart {
  std::string name;      // "[kernel]", or the module's
  std::string build_id;  // lower-case hex, never empty
  uint64_t start = 0;
  uint64_t size = 0;

  friend bool operator==(const KernelPart&, const KernelPart&) = default;
};

// Which file a mapping is of. An overlay numbers the files of each of its
// layers, on devices that are none (major 0), so there the path counts, too.
using ModuleKey = std::tuple<uint32_t, uint32_t, uint64_t, std::string>;
template <typename FileOrMapping>
ModuleKey KeyOf(const FileOrMapping& of) {
  const bool needs_path = of.inode == 0 || of.device_major == 0;
  return {of.device_major, of.device_minor, of.inode,
          needs_path ? std::string(of.path) : std::string()};
}

// Finds the modules of a capture, which it borrows.
class ModuleIndex {
 public:
  explicit ModuleIndex(const std::vector<MappedObject>& modules) {
    for (const MappedObject& module : modules) {
      by_key_.emplace(KeyOf(module), &module);
      by_build_id_.emplace(module.build_id, &module);
    }
  }

  // Null: none is known.
  const MappedObject* Find(const ksym::Mapping& mapping) const {
    const auto found = by_key_.find(KeyOf(mapping));
    return found == by_key_.end() ? nullptr : found->second;
  }
  const MappedObject* FindBuildId(const std::string& build_id) const {
    const auto found = by_build_id_.find(build_id);
    return found == by_build_id_.end() ? nullptr : found->second;
  }

 private:
  std::map<ModuleKey, const MappedObject*> by_key_;
  std::map<std::string, const MappedObject*> by_build_id_;
};

}  // namespace profd
