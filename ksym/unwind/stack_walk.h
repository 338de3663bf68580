// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/unwind/arch.h"
#include "ksym/unwind/unwind_kinds.h"
#include "ksym/unwind/unwind_table.h"

namespace ksym {

// Why a stack has no more frames.
enum class StackEnd : uint8_t {
  // Whole: the outermost frame's return address is undefined.
  kOutermost = UNWIND_END_OUTERMOST,
  // Whole as far as frame pointers tell: theirs is 0 in code without rows.
  kZeroFramePointer = UNWIND_END_ZERO_FRAME_POINTER,
  // The caller's bound on frames was reached.
  kDepthLimit = UNWIND_END_DEPTH_LIMIT,
  // Code without rows, and the frame pointer is not one.
  kNoTable = UNWIND_END_NO_TABLE,
  // A return address that is in no executable mapping.
  kNoMapping = UNWIND_END_NO_MAPPING,
  // A word of the stack could not be read.
  kBadRead = UNWIND_END_BAD_READ,
  // A row of the kind kUnsupported, or one that needs a lost register.
  kUnsupported = UNWIND_END_UNSUPPORTED,
  // The caller's frame would not be above this one.
  kNoProgress = UNWIND_END_NO_PROGRESS,
};
inline constexpr size_t kStackEnds = 8;

// What is known about the code at an address.
struct CodeAt {
  enum class Kind : uint8_t {
    kNoMapping,  // not executable, or nothing at all
    kNoTable,    // executable: generated code, or a file without a table
    kTable,
  };
  Kind kind = Kind::kNoMapping;
  // For kTable; must live as long as the walk.
  const UnwindTable* table = nullptr;
  // Run-time address less ElfAddress.
  uint64_t load_bias = 0;
};

// Memory of a thread's stack.
struct StackPart {
  Address address;  // of the first byte
  std::span<const std::byte> bytes;
};

// A thread's registers and what was copied of its stack. The copy should begin
// kRedZoneBytes below the stack pointer: rows refer to what is there.
struct StackCopy {
  Address ip;
  // By MachineRegister, that is by their DWARF numbers.
  std::array<uint64_t, kMachineRegisters> registers = {};
  // By address. A word must not lie in two of them: parts that touch each other
  // are to be made one.
  std::span<const StackPart> parts;
};

// A frame in code that no table describes.
struct CodeFrame {
  size_t number = 0;  // leaf first
  // Where in the code it is: for a caller, the byte before the one that is
  // returned to.
  Address at;
  uint64_t sp = 0;
  std::optional<uint64_t> fp;  // nothing: it is not known
  // The CPU was at that very place, and had these registers, by
  // MachineRegister.
  bool is_interrupted = false;
  std::span<const uint64_t> registers;
};
// Where it returns to.
struct CodeCaller {
  Address ip;
  uint64_t sp = 0;
  std::optional<uint64_t> fp;  // nothing: as in the frame
};
using CodeStep = std::expected<CodeCaller, StackEnd>;

// The steps through code that a runtime makes, by what it says of it.
class CodeSteps {
 public:
  // A word of the stack. Nothing: it is not there, and the step ends with
  // kBadRead.
  using ReadWord = std::function<std::optional<uint64_t>(uint64_t)>;

  virtual ~CodeSteps() = default;
  // Nothing: it is not code of that runtime. Frames come in order, but for
  // those that are taken back, which come again.
  virtual std::optional<CodeStep> Step(const CodeFrame& frame,
                                       const ReadWord& stack) = 0;
};

// A frame pointer further above the stack pointer is none.
inline constexpr uint64_t kMaxFrameBytes = UNWIND_MAX_FRAME_BYTES;

// What a walk asks of code.
struct WalkedCode {
  // Called once per frame, and for frames that are taken back because an
  // exception was being caught there.
  std::function<CodeAt(Address)> find;
  // Leaves code without rows that it knows; other such code is left by the
  // frame pointer. Null: there is none that it knows.
  CodeSteps* steps = nullptr;
};

struct WalkedStack {
  // Leaf first. The first is where the CPU was; each other one's code is at the
  // address less 1, so an interrupted function's is one more than that.
  std::vector<Address> frames;
  // Where each frame's part of the stack begins, which is where the one before
  // ends.
  std::vector<uint64_t> stack_pointers;
  StackEnd end = StackEnd::kOutermost;
  Address unread;  // of kBadRead: the word that is in no part of the copy
};

// Follows the stack by the rules of docs/unwinding.md, which the
// sampler follows as well. At most max_frames frames, at least one. Reuses
// `stack`'s memory. Pure, but for what `code` does.
void WalkStack(const StackCopy& copy, size_t max_frames, const WalkedCode& code,
               WalkedStack& stack);

}  // namespace ksym
