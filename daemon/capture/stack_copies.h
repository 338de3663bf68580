// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "bpf/profile_abi.h"
#include "bpf/waiting_abi.h"
#include "daemon/capture/bpf_object.h"
#include "daemon/capture/stack_records.h"
#include "daemon/track/process_watch.h"
#include "daemon/unwind/unwind_tables.h"
#include "ksym/unwind/stack_walk.h"

namespace profd {

// A thread that a walk over all threads found asleep, and the key of its sample
// of blocked time with the stack that its copy had.
struct SleptCopy {
  uint32_t set = 0;
  uint32_t tid = 0;
  profile_key key = {};
};

// Samples of processes that had no tables when they were taken: the sampler
// sends registers and a part of the stack, and it is walked here. Each is
// counted once, like those that the sampler counts itself. Not thread-safe.
class StackCopies {
 public:
  StackCopies(Unwind unwind, uint32_t max_stack_depth);

  // A part of the stack that the next record of a copy from the same CPU is
  // of. Ignores one that is shorter than it claims.
  void AddPiece(const profile_piece_record& record, size_t bytes);
  // Keeps the copy for Walk(). Ignores one that is too short, or whose pieces
  // are not all there.
  void Add(const profile_copy_record& record, size_t bytes);
  // One per record since the last call, so that their processes are followed.
  std::vector<SampleHint> Hints();
  // All that a walk needs to know.
  struct Sources {
    const ProcessWatch& watch;  // all reports up to the records' times applied
    UnwindTables& tables;
    StackRecords& records;
    RuntimeRecords& runtimes;
  };
  // Walks what was kept, but for stacks for which a table is still being built.
  // Cost: 2 us per stack.
  void Walk(const Sources& sources);
  // Those of the set alone; kAtOnce: without tables that are not there.
  enum class Patience : uint8_t { kWait, kAtOnce };
  void WalkSet(const Sources& sources, uint32_t set, Patience patience);
  // Walks stacks without waiting for their tables until so many bytes are left,
  // where more wait: each process may keep as much as any other, and of that
  // each of its threads. The oldest stay, as their tables come first.
  void Shed(const Sources& sources, uint64_t max_bytes);
  // Some of the set that Hints() told of were not walked.
  bool HasWaiting(uint32_t set) const;
  uint64_t waiting_bytes() const { return waiting_bytes_; }
  // The walked samples of the set, each of its key's kind.
  std::vector<SampledCount> Take(uint32_t set);
  // Those that were walked with all the tables that there are, since the last
  // call.
  std::vector<SleptCopy> TakeSlept() { return std::exchange(slept_, {}); }
  // The same of wakers, by their ids.
  struct WalkedWaker {
    uint64_t id = 0;
    profile_key key = {};
  };
  std::vector<WalkedWaker> TakeWakers(uint32_t set) {
    return std::exchange(wakers_[set], {});
  }

  // How much of a stack should be copied from now on where its end is not
  // known, when so many copies did not fit the ring since the last call.
  uint32_t AdaptChunks(uint64_t refused);
  uint64_t walked() const { return walked_; }

 private:
  // Bytes of the stack without a gap.
  struct Part {
    uint64_t address = 0;
    size_t bytes = 0;
  };
  // The pieces of a copy, whose own record may be still to come.
  struct Pieces {
    uint64_t copy = 0;
    std::vector<Part> parts;
    std::vector<std::byte> stack;  // all of them
  };
  struct Copy {
    profile_copy_record head;
    Pieces pieces;
  };
  struct Walked {
    RawStack stack;
    std::vector<RawFrame> merged;  // with a runtime's frames; empty: none
    bool needs_more = false;       // than was copied, of the same stack
    bool lacks_table = false;      // one that is being built
  };
  static std::vector<ksym::StackPart> PartsOf(const Pieces& pieces);
  // Walks the copies that `wanted` says, and forgets those that were counted.
  template <typename Wanted>
  void WalkIf(const Sources& sources, Patience patience, const Wanted& wanted);
  std::vector<bool> BeyondTheirShare(uint64_t max_bytes) const;
  bool WalkAndCount(const Copy& copy, const Sources& sources,
                    Patience patience);
  std::optional<Walked> WalkOne(const Copy& copy, const Sources& sources,
                                Patience patience) const;
  // Counts the sample, or those of a wait, under the key of its walked stack.
  void CountCopy(const profile_copy_record& head, profile_key key);
  void NoteSlept(const profile_copy_record& head, profile_key key);
  void UseFramePointers(size_t first_without_row, RawStack& stack) const;

  struct KeyLess {
    bool operator()(const profile_key& a, const profile_key& b) const;
  };

  Unwind unwind_;
  uint32_t max_stack_depth_;
  std::vector<Copy> copies_;
  size_t hinted_ = 0;  // of them, from the front
  uint64_t waiting_bytes_ = 0;
  std::map<uint64_t, Pieces> pieces_;  // by CPU
  std::array<std::map<profile_key, wait_count, KeyLess>, PROFILE_SETS> counts_;
  std::vector<SleptCopy> slept_;
  std::array<std::vector<WalkedWaker>, PROFILE_SETS> wakers_;
  uint32_t chunks_;
  uint64_t walked_ = 0;
  uint64_t recent_ = 0;        // since the last AdaptChunks()
  uint64_t recent_short_ = 0;  // of them needed more of the stack
};

}  // namespace profd
