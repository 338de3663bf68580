#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/profile/accounting.h"
#include "ksym/kernel/kernel_symbol_change.h"
#include "ksym/process/process_image.h"

namespace profd {

// The kernel's symbol tables that give the names.
struct KernelTableStatistics {
  uint64_t snapshots = 0;   // tables read; 0: none
  uint64_t changes = 0;     // symbols that came or went since
  uint64_t symbols = 0;     // of the last snapshot
  uint64_t bytes = 0;       // of the last snapshot
  uint64_t reading_ns = 0;  // spent reading /proc/kallsyms, all together

  friend bool operator==(const KernelTableStatistics&,
                         const KernelTableStatistics&) = default;
};

// What was asked for and on which machine it ran; the same in a RawProfile
// and in the Profile made of it.
struct CaptureMetadata {
  std::string version;  // of the program that captured
  std::string event;    // really used, e.g. "cpu-clock"
  // Exactly one is not zero: samples per second, or events per sample.
  uint64_t frequency_hz = 0;
  uint64_t count_period = 0;
  uint64_t start_unix_ns = 0;
  uint64_t duration_ns = 0;
  std::string hostname;
  std::string kernel_release;
  std::string architecture;
  std::string cpus;         // sampled ones as a list, e.g. "0-3,6"
  std::string stack_store;  // "exact" or "stackid"
  std::string unwind;       // "auto", "dwarf", "fp" or "none"
  uint32_t max_stack_depth = 0;
  KernelTableStatistics kernel_table;
  // Human-readable limits that applied (hidden kernel symbols ...).
  std::vector<std::string> warnings;

  friend bool operator==(const CaptureMetadata&,
                         const CaptureMetadata&) = default;
};

// 64-bit hash of a stack's frames (exact store) or a bucket number (stackid
// store). The values below kFirstStackId are states, not stacks.
using StackId = uint64_t;
inline constexpr StackId kNoStack = 0;        // there was none to take
inline constexpr StackId kFaultedStack = 1;   // the walk failed
inline constexpr StackId kCollidedStack = 2;  // stackid store: bucket taken
inline constexpr StackId kFirstStackId = 16;

// Addresses, leaf first. The first one is where the CPU was, the others are
// return addresses, whose code is one byte before them; so that this holds for
// a function that a signal interrupted, too, its address is one more than
// where it was.
struct RawStack {
  std::vector<uint64_t> frames;
  StackEnd end = StackEnd::kFramePointers;
  // Frame pointers helped where there was no table.
  bool used_frame_pointers = false;

  friend bool operator==(const RawStack&, const RawStack&) = default;
};

// How often one thing was seen; the identity is everything but `count`.
struct RawSample {
  ksym::ProcessId process;
  uint32_t tid = 0;  // 0 unless threads were asked for
  std::string comm;  // any bytes but NUL, at most 15
  StackId user_stack = kNoStack;
  StackId kernel_stack = kNoStack;
  uint64_t count = 0;

  friend bool operator==(const RawSample&, const RawSample&) = default;
};

// Everything that one interval brought out of the kernel, without any name.
struct RawProfile {
  CaptureMetadata metadata;
  Accounting accounting;
  std::vector<RawSample> samples;
  std::unordered_map<StackId, RawStack> stacks;
  // The address spaces of the sampled processes. One that is missing was gone
  // before it could be read.
  std::map<ksym::ProcessId, ksym::ProcessImage> images;
  // Kernel symbols that came and went in the interval, in order.
  std::vector<ksym::KernelSymbolChange> kernel_changes;
  // The kernel's table changed in a way that only reading it again tells: a
  // module came or went, or reports of changes were lost.
  bool kernel_table_stale = false;
};

}  // namespace profd
