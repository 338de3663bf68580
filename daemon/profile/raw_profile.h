// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/profile/accounting.h"
#include "daemon/profile/comm.h"
#include "daemon/profile/label_set.h"
#include "daemon/profile/raw_stack_table.h"
#include "daemon/profile/raw_waker.h"
#include "daemon/profile/runtime_frame.h"
#include "daemon/profile/sample_kind.h"
#include "daemon/profile/time_slice.h"
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

// The unwind tables by which user stacks were walked; since the capture's
// start.
struct UnwindTableStatistics {
  uint64_t processes = 0;    // that got tables
  uint64_t files = 0;        // whose tables were built
  uint64_t bytes = 0;        // that they have now
  uint64_t building_ns = 0;  // or reading them from the cache
  // From a process's first sample until all of its tables were there.
  uint64_t median_delay_ns = 0;
  uint64_t longest_delay_ns = 0;
  uint64_t stacks_copied = 0;  // and walked in user space, until then

  friend bool operator==(const UnwindTableStatistics&,
                         const UnwindTableStatistics&) = default;
};

// The options and the machine of a capture; the same in a RawProfile and in the
// Profile made of it.
struct CaptureMetadata {
  std::string version;  // of the program that captured
  // The kinds of its samples; never empty. Outputs that show one kind show the
  // first one unless they are asked for another.
  std::vector<SampleKind> kinds = {EventKind({}, 0, 0)};
  uint64_t start_unix_ns = 0;
  uint64_t duration_ns = 0;
  std::string command;  // that was run and sampled; empty: none
  std::string hostname;
  std::string kernel_release;
  std::string architecture;
  std::string cpus;         // sampled ones as a list, e.g. "0-3,6"
  std::string stack_store;  // "exact" or "stackid"
  std::string unwind;       // "auto", "dwarf", "fp" or "none"
  uint32_t max_stack_depth = 0;
  KernelTableStatistics kernel_table;
  UnwindTableStatistics unwind_tables;
  // Human-readable limits that applied (hidden kernel symbols ...).
  std::vector<std::string> warnings;

  friend bool operator==(const CaptureMetadata&,
                         const CaptureMetadata&) = default;
};

// How often one thing was seen; the identity is everything but `count` and
// `value`.
struct RawSample {
  ksym::ProcessId process;
  uint32_t tid = 0;            // 0 unless threads are told apart
  SampleKindId kind = 0;       // place in CaptureMetadata::kinds
  TimeSlice slice = kNoSlice;  // not in files
  Comm comm;
  StackId user_stack = kNoStack;
  StackId kernel_stack = kNoStack;
  uint64_t count = 0;
  uint64_t value = 0;  // the sum of theirs, of a kind that has them

  friend bool operator==(const RawSample&, const RawSample&) = default;
};

// Everything that one interval brought out of the kernel, without any name.
struct RawProfile {
  CaptureMetadata metadata;
  Accounting accounting;
  std::vector<RawSample> samples;
  RawStackTable stacks;
  // The address spaces of the sampled processes. One that is missing was gone
  // before it could be read.
  std::map<ksym::ProcessId, ksym::ProcessImage> images;
  // The cgroups of sampled processes as paths, "/system.slice/x.service", where
  // they were asked for and are known. Not in files.
  std::map<ksym::ProcessId, std::string> cgroups;
  // What else is known of sampled processes; a set is shared by those that have
  // it, and is never null. Not in files.
  std::map<ksym::ProcessId, std::shared_ptr<const LabelSet>> labels;
  // The frames of kPythonCode in these stacks.
  RuntimeFrameTable runtime_frames;
  // The wakers that frames of kWaker in these stacks name; one that is missing
  // was forgotten.
  RawWakers wakers;
  // Kernel symbols that came and went in the interval, in order.
  std::vector<ksym::KernelSymbolChange> kernel_changes;
  // The kernel's table changed in a way that only reading it again tells: a
  // module came or went, or reports of changes were lost.
  bool kernel_table_stale = false;
};

// The memory that it takes, about: samples, stacks and mappings.
size_t BytesOf(const RawProfile& profile);

}  // namespace profd
