// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ksym/unwind/x86_64/frame_facts.h"
#include "ksym/unwind/x86_64/instruction.h"

namespace ksym {

// Bytes that may be code, [start, end).
struct CodeGap {
  uint32_t start = 0;
  uint32_t end = 0;
};

// Fills `out` with the bytes of code from `at` on; false when there are fewer.
using ReadCode = std::function<bool(uint32_t at, std::span<std::byte> out)>;

// Pages of code that are held, 4 KiB each. FFmpeg has 240 of assembly, node 450
// of generated code.
inline constexpr size_t kMaxCodePages = 2048;

// The code of gaps, read by pages as it is needed, and a mark for each byte of
// it. A page takes 22 KiB.
class ScannedCode {
 public:
  // What a mark says but for the number of an instruction.
  static constexpr uint32_t kUnseen = 0;
  static constexpr uint32_t kInside = 1;  // of an instruction
  static constexpr uint32_t kFirstNumber = 2;

  // The gaps are sorted and do not overlap.
  ScannedCode(std::vector<CodeGap> gaps, ReadCode read);

  const std::vector<CodeGap>& gaps() const { return gaps_; }
  // The gap that has a byte, or null.
  const CodeGap* FindGap(uint64_t at) const;

  // The instruction there; of size 0 when it is unknown, not within a gap, or
  // cannot be read. kMaxCodePages.
  Instruction Decode(uint32_t at);

  // The mark of a byte in a gap.
  uint32_t MarkAt(uint32_t at) const;
  // Whether no instruction has any of these bytes.
  bool IsUnseen(uint32_t at, size_t size) const;
  // Marks the bytes of an instruction that was decoded.
  void Mark(uint32_t at, size_t size, uint32_t number);
  void Unmark(uint32_t at, size_t size);
  bool IsEntry(uint32_t at) const;
  // Does nothing where the page cannot be had.
  void MarkEntry(uint32_t at);
  // The same of places where no function begins.
  bool IsRefuted(uint32_t at) const;
  void MarkRefuted(uint32_t at);
  // Where the next instruction is marked in [at, end), or `end`.
  uint32_t FindMarked(uint32_t at, uint32_t end) const;

 private:
  static constexpr uint32_t kPageBytes = 4096;

  struct Page {
    // And the beginning of the next one.
    std::array<std::byte, kPageBytes + kMaxInstructionBytes> bytes;
    std::array<uint32_t, kPageBytes> marks = {};
    std::bitset<kPageBytes> entries;
    std::bitset<kPageBytes> refuted;
  };
  // An instruction is looked at when it is reached, when it is followed, and by
  // the next guess that leads there. So many are kept, by their addresses.
  static constexpr size_t kDecoded = 4096;
  struct Decoded {
    uint32_t at = 0;
    Instruction instruction;
  };
  // Numbers of pages from the first gap on; a page between has code of several.
  size_t NumberOf(uint32_t at) const { return at / kPageBytes - first_page_; }
  const Page* Find(uint32_t at) const { return pages_[NumberOf(at)].get(); }
  Page* Load(uint32_t at);
  Instruction DecodeNow(uint32_t at);
  void SetMarks(uint32_t at, size_t size, uint32_t first, uint32_t rest);

  std::vector<CodeGap> gaps_;
  ReadCode read_;
  uint32_t first_page_ = 0;
  size_t pages_left_ = kMaxCodePages;
  std::vector<Decoded> decoded_;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace ksym
