// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/btf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/result.h"

namespace profd {

// Where a BTF's bytes come from: a file that is read in blocks, or memory.
// Borrows either.
class BtfSource {
 public:
  explicit BtfSource(int fd) : fd_(fd) {}
  explicit BtfSource(std::span<const std::byte> bytes) : bytes_(bytes) {}

  ksym::Status Read(uint64_t offset, std::span<std::byte> out) const;
  // A part of what is in memory, in place; nothing of a file, or where it ends
  // early.
  std::optional<std::span<const std::byte>> View(uint64_t offset,
                                                 uint64_t size) const;

 private:
  int fd_ = -1;
  std::span<const std::byte> bytes_;
};

struct BtfMember {
  uint32_t name = 0;  // offset of a string
  uint32_t type = 0;
  uint32_t bit_offset = 0;
  uint32_t bitfield_bits = 0;  // 0: no bitfield
};

// Random access to the types of one BTF (Documentation/bpf/btf.rst) by id.
// Memory: 4 bytes per type and 8 per struct.
class BtfReader {
 public:
  // One pass over all types. kUnsupported for kinds of types that are newer
  // than this code, as it cannot step over them.
  static ksym::Result<BtfReader> Open(BtfSource source);

  // Ids are 1 .. size() - 1; 0 is void.
  size_t size() const { return type_offsets_.size(); }
  ksym::Result<btf_type> Type(uint32_t id) const;
  // Without typedefs and qualifiers; 0 for void.
  ksym::Result<uint32_t> Resolve(uint32_t id) const;
  // The members of a struct or union.
  ksym::Result<std::vector<BtfMember>> Members(uint32_t id) const;
  // The type of an array's elements, and how many there are. (libbpf has a
  // function of the struct's name.)
  ksym::Result<struct btf_array> Array(uint32_t id) const;
  // The types of a function's parameters; void, with the id 0, ends those of
  // one that takes more.
  ksym::Result<std::vector<uint32_t>> Parameters(uint32_t id) const;
  // The variables of a section: the number of each and the bytes before it.
  ksym::Result<std::vector<std::pair<uint32_t, uint32_t>>> Variables(
      uint32_t section) const;
  // The word after an integer's btf_type: encoding, offset and bits.
  ksym::Result<uint32_t> IntEncoding(uint32_t id) const;

  // Calls visit(offset, text) with each string, in order.
  template <typename Visit>
  ksym::Status ForEachString(const Visit& visit) const;

  // The offset of each named struct's name, and its id.
  const std::vector<std::pair<uint32_t, uint32_t>>& structs() const {
    return structs_;
  }

 private:
  static constexpr size_t kBlockBytes = 32 * 1024;

  explicit BtfReader(BtfSource source) : source_(source) {}

  ksym::Status ReadHeader();
  ksym::Status Index();
  ksym::Result<uint64_t> IndexBlock(std::span<const std::byte> block,
                                    uint64_t offset);

  BtfSource source_;
  uint64_t types_begin_ = 0;
  uint64_t types_bytes_ = 0;
  uint64_t strings_begin_ = 0;
  uint64_t strings_bytes_ = 0;
  std::vector<uint32_t> type_offsets_;
  std::vector<std::pair<uint32_t, uint32_t>> structs_;
};

// Calls visit(offset, text) with each string that ends in the block, whose
// first byte has that offset. Returns the bytes that these take.
template <typename Visit>
size_t VisitBtfStrings(std::span<const std::byte> block, uint64_t offset,
                       const Visit& visit) {
  const char* begin = reinterpret_cast<const char*>(block.data());
  const char* end = begin + block.size();
  const char* text = begin;
  while (const void* nul =
             std::memchr(text, 0, static_cast<size_t>(end - text))) {
    const char* stop = static_cast<const char*>(nul);
    visit(static_cast<uint32_t>(offset + static_cast<uint64_t>(text - begin)),
          std::string_view(text, static_cast<size_t>(stop - text)));
    text = stop + 1;
  }
  return static_cast<size_t>(text - begin);
}

template <typename Visit>
ksym::Status BtfReader::ForEachString(const Visit& visit) const {
  if (const auto all = source_.View(strings_begin_, strings_bytes_)) {
    VisitBtfStrings(*all, 0, visit);
    return {};
  }
  std::vector<std::byte> block(kBlockBytes);
  size_t used = 0;  // bytes of an unfinished string at the front
  uint64_t next = 0;
  while (next < strings_bytes_) {
    if (used == block.size()) block.resize(block.size() * 2);
    const size_t want =
        std::min<uint64_t>(block.size() - used, strings_bytes_ - next);
    auto read = source_.Read(strings_begin_ + next,
                             std::span(block).subspan(used, want));
    if (!read) return read;
    const auto filled = std::span(block).first(used + want);
    const size_t visited = VisitBtfStrings(filled, next - used, visit);
    next += want;
    used = filled.size() - visited;
    std::memmove(block.data(), block.data() + visited, used);
  }
  return {};
}

}  // namespace profd
