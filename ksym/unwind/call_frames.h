// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ksym/base/byte_reader.h"
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

// Runs the instructions of a CIE, which make its `initial`. Returns what is
// wrong with them, or null.
const char* RunInitialInstructions(const CallFrameSection& section,
                                   std::span<const std::byte> code,
                                   CommonEntry& common);

// Runs the instructions of one entry: a sequence of ranges, in each of which
// one state holds.
class CallFrameProgram {
 public:
  // Borrows all.
  CallFrameProgram(const CallFrameSection& section, const CommonEntry& common,
                   const FrameEntry& entry);

  // Moves to the next range. False at the end of the entry's, or when there is
  // a problem(). A range ends where the next one starts.
  bool Next();

  uint64_t start() const { return start_; }
  // Valid until the next Next().
  const FrameState& state() const { return state_; }
  const char* problem() const { return problem_; }

 private:
  friend const char* RunInitialInstructions(const CallFrameSection& section,
                                            std::span<const std::byte> code,
                                            CommonEntry& common);
  CallFrameProgram(const CallFrameSection& section, const CommonEntry& common,
                   std::span<const std::byte> code, const FrameEntry& entry);

  void RunOne();
  void RunExtended(uint8_t opcode);
  void RunRegister(uint8_t opcode);
  void Advance(uint64_t units);
  void SetLocation();
  void SetCfaRegister(uint64_t number);
  void SetCfaOffset(int64_t offset);
  void SetRule(uint64_t number, RegisterRule rule);
  void SetSavedAt(uint64_t number, int64_t factored);
  void Restore(uint64_t number);
  void Remember();
  void Recall();
  std::span<const std::byte> ReadBlock();

  const CallFrameSection& section_;
  const CommonEntry& common_;
  ByteReader in_;
  uint32_t instructions_at_;
  FrameState state_;
  std::vector<FrameState> remembered_;
  uint64_t start_;     // of the range that Next() found
  uint64_t location_;  // of the instructions
  uint64_t end_;
  const char* problem_ = nullptr;
};

}  // namespace ksym
