// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/sampled_stacks.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "daemon/base/steady_clock.h"
#include "daemon/unwind/kernel_unwind_maps.h"
#include "daemon/unwind/table_builder.h"

namespace profd {
namespace {

// Bytes of stacks that are copied between two polls, at the most. A copy counts
// for 16 KiB at least, so these are 1,024 copies, and some 8 ms to walk them.
constexpr uint64_t kCopiesAtOnce = 16 << 20;
// Bytes of stacks that may wait for tables. Some room is left for processes
// that have none yet.
constexpr uint64_t kMaxWaitingBytes = kCopiesAtOnce / 2;
// So much below that the stack of one thread more fits.
constexpr uint64_t kNearlyAll = kMaxWaitingBytes - (uint64_t{64} << 10);
// Reading functions' names takes no more of each poll.
constexpr std::chrono::milliseconds kNamesBudget(20);
// How often what waits for tables empties the ring.
constexpr std::chrono::milliseconds kRingPeriod(20);

// Writes known threads into the programs' map.
Sleepers::Tell TellThrough(int map_fd) {
  return [map_fd](uint32_t tid, const wait_known* known) {
    if (known == nullptr) return bpf_map_delete_elem(map_fd, &tid) == 0;
    return bpf_map_update_elem(map_fd, &tid, known, BPF_ANY) == 0;
  };
}

}  // namespace

SampledStacks::SampledStacks(const CaptureOptions& options, Parts parts)
    : parts_(std::move(parts)),
      runtimes_(parts_.object.runtime_maps(), parts_.object.runtime_known()),
      records_(options.bpf.kernel_walk_depth),
      copies_(options.bpf.unwind, options.bpf.max_stack_depth),
      sleepers_(TellThrough(parts_.object.known_threads_fd())) {
  if (!WalksByTables(options.bpf.unwind)) return;
  tables_.emplace(UnwindTables::Parts{
      .maps = std::make_unique<KernelUnwindMaps>(
          parts_.object.unwind_maps(),
          UnwindMapSizes::ForMemory(options.bpf.unwind_bytes)),
      .queue = std::make_unique<TableBuilder>(
          BuildTablesWith(options.cache_directory)),
      .opener = options.opener,
      .meanwhile = parts_.make_room_if_due});
  const auto wants = [&](Runtimes one) {
    return options.runtimes == Runtimes::kAuto || options.runtimes == one;
  };
  if (options.runtimes != Runtimes::kNone) {
    runtimes_.Follow(*tables_, {.cpython = wants(Runtimes::kPython),
                                .v8 = wants(Runtimes::kNode),
                                .hotspot = wants(Runtimes::kJava)});
  }
}

void SampledStacks::Add(const profile_record& record, size_t bytes) {
  if (record.type == PROFILE_RECORD_STACK) {
    records_.Add(reinterpret_cast<const profile_stack_record&>(record), bytes,
                 runtimes_);
  } else if (record.type == PROFILE_RECORD_PIECE) {
    copies_.AddPiece(reinterpret_cast<const profile_piece_record&>(record),
                     bytes);
  } else if (record.type == PROFILE_RECORD_COPY) {
    copies_.Add(reinterpret_cast<const profile_copy_record&>(record), bytes);
  } else if (record.type == PROFILE_RECORD_ASLEEP) {
    sleepers_.Add(reinterpret_cast<const wait_asleep_record&>(record), bytes);
  } else if (record.type == PROFILE_RECORD_WAKER) {
    wakers_.Add(reinterpret_cast<const waker_record&>(record), bytes);
  } else {
    runtimes_.Add(record, bytes);
  }
}

std::vector<SampleHint> SampledStacks::TakeHints() {
  std::vector<SampleHint> hints = copies_.Hints();
  std::ranges::copy(sleepers_.TakeHints(), std::back_inserter(hints));
  return hints;
}

std::vector<SampledCount> SampledStacks::TakeWalked(uint32_t set) {
  std::vector<SampledCount> counts = copies_.Take(set);
  std::ranges::copy(sleepers_.Take(set, records_, copies_.TakeSlept()),
                    std::back_inserter(counts));
  return counts;
}

void SampledStacks::Update(const ksym::ProcessImage& image) {
  if (tables_) tables_->Update(image);
}

void SampledStacks::Forget(const ksym::ProcessId& id) {
  if (tables_) tables_->Forget(id);
  runtimes_.Withdraw(id);
}

void SampledStacks::Walk(std::span<const SampleHint> hints) {
  if (!tables_) return;
  runtimes_.Poll();
  for (const SampleHint& hint : hints) {
    tables_->NoteSample(hint.id, SteadyClock::time_point(
                                     std::chrono::nanoseconds(hint.time_ns)));
  }
  copies_.Walk(SourcesWith(*tables_));
  copies_.Shed(SourcesWith(*tables_), kMaxWaitingBytes);
  runtimes_.ReadNames(kNamesBudget);
  parts_.make_room_if_due();
  // Last: what was walked is room for new copies.
  AllowCopies();
}

void SampledStacks::WalkRest(uint32_t set, std::chrono::milliseconds patience) {
  if (!tables_) return;
  const auto until = SteadyClock::now() + patience;
  while (copies_.HasWaiting(set)) {
    tables_->WaitForTable(kRingPeriod);
    parts_.make_room();
    copies_.WalkSet(SourcesWith(*tables_), set,
                    SteadyClock::now() < until
                        ? StackCopies::Patience::kWait
                        : StackCopies::Patience::kAtOnce);
  }
  // Names that are not read by now are missing in this set. On a busy machine
  // these may be most: this thread did not run when it was due.
  runtimes_.ReadNames(kNamesBudget);
  while (runtimes_.HasWaitingNames() && SteadyClock::now() < until) {
    parts_.make_room();
    runtimes_.ReadNames(kNamesBudget);
  }
  for (const auto& [id, key] : copies_.TakeWakers(set)) {
    wakers_.Add(set, id, key);
  }
}

bool SampledStacks::MustWalkSoon() const {
  return copies_.waiting_bytes() >= kNearlyAll;
}

void SampledStacks::AllowCopies() {
  parts_.object.AllowCopies(kCopiesAtOnce -
                            std::min(kCopiesAtOnce, copies_.waiting_bytes()));
}

void SampledStacks::AdaptCopies(uint64_t refused) {
  if (tables_) parts_.object.SetCopyChunks(copies_.AdaptChunks(refused));
}

ksym::Status SampledStacks::Clear(uint32_t set) {
  auto cleared = parts_.object.ClearStacks(set);
  if (!cleared) return cleared;
  records_.Clear(set, wakers_.HasAny(set) ? StackRecords::Keep::kForNext
                                          : StackRecords::Keep::kNone);
  wakers_.EndInterval(set);
  const uint64_t forgettings = runtimes_.forgettings();
  runtimes_.EndInterval();
  // Their names go with the next ones.
  if (runtimes_.forgettings() != forgettings) sleepers_.ForgetMixed();
  return {};
}

UnwindStatistics SampledStacks::statistics() const {
  UnwindStatistics statistics;
  if (tables_) statistics = tables_->statistics();
  statistics.copies = copies_.walked();
  return statistics;
}

}  // namespace profd
