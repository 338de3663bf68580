// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ksym/base/byte_reader.h"
#include "ksym/unwind/call_frame_section.h"
#include "ksym/unwind/call_frames.h"
#include "ksym/unwind/frame_state.h"

namespace ksym {

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
