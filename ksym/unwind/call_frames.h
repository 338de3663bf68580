// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ksym/unwind/call_frame_section.h"
#include "ksym/unwind/encoded_pointer.h"
#include "ksym/unwind/frame_state.h"

namespace ksym {

// A common information entry: what its FDEs begin with.
struct CommonEntry {
  uint64_t offset = 0;  // of the entry in its section
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  PointerEncoding pointers;
  bool has_augmentation_data = false;
  bool is_signal_frame = false;
  FrameState initial;
  // Why it cannot be used, or null.
  const char* problem = nullptr;
};

// A frame description entry: the instructions for one range of addresses.
struct FrameEntry {
  uint64_t start = 0;  // ElfAddress
  uint64_t size = 0;
  uint32_t common = 0;  // index in CallFrames::common
  // Within the section.
  uint32_t offset = 0;  // of the entry
  uint32_t instructions = 0;
  uint32_t instructions_size = 0;
};

// Entries of a section that are read. The largest programs known have half as
// many functions and some hundred CIEs, of which each takes 300 bytes.
inline constexpr size_t kMaxFrameEntries = size_t{1} << 20;
inline constexpr size_t kMaxCommonEntries = size_t{1} << 15;

// All entries of a section.
struct CallFrames {
  std::vector<CommonEntry> common;    // by offset
  std::vector<FrameEntry> functions;  // in no order
  // FDEs that cannot be read, and the first one's trouble.
  uint32_t bad_functions = 0;
  std::string first_problem;
  // There are more than the bounds; what is here is not all.
  bool is_cut = false;
};

// Reads the entries; what is malformed is counted, and when a length is, the
// rest of the section is one bad entry. O(section).
CallFrames ReadCallFrames(const CallFrameSection& section);

// "FDE at offset 0x1c of .eh_frame: problem".
std::string DescribeProblem(const CallFrameSection& section, uint64_t offset,
                            const char* problem);

}  // namespace ksym
