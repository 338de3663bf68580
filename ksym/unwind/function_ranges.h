// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/base/table_room.h"
#include "ksym/elf/byte_source.h"
#include "ksym/unwind/call_frames.h"

namespace ksym {

// Where the functions of one file begin and end, by its call-frame information,
// which a stripped file has as well. What a compiler put apart, as cold code,
// is a function of its own here. 8 bytes for each; immutable.
class FunctionRanges {
 public:
  // None.
  FunctionRanges() = default;
  // Those of entries that were read. One of 4 GiB or more, or that far from the
  // first one, is left out; of two with one begin the shorter one counts.
  explicit FunctionRanges(const CallFrames& frames);

  // Reads .eh_frame, or where there is none .debug_frame; none without either.
  // kCorrupt, kLimit (kMaxCallFrameBytes), kIo, and as ElfImage::Parse. Asks
  // `room` for three times the section's bytes, which it takes while it reads.
  // Cost: some 0.1 us per function.
  static Result<FunctionRanges> Load(const ByteSource& source,
                                     const TableRoom& room = {});

  // Where the function begins that covers the address: the last one to begin
  // there or before, if it reaches that far. O(log functions).
  std::optional<ElfAddress> FindStart(ElfAddress address) const;

  size_t size() const { return ranges_.size(); }
  size_t memory_bytes() const { return ranges_.capacity() * sizeof(Range); }

 private:
  struct Range {
    uint32_t start = 0;  // from base_
    uint32_t size = 0;   // not 0
  };

  ElfAddress base_;
  std::vector<Range> ranges_;  // by start, each start once
};

}  // namespace ksym
