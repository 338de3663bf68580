// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bpf/profile_abi.h"
#include "daemon/base/steady_clock.h"
#include "daemon/track/side_band.h"
#include "ksym/process/process_history.h"
#include "ksym/process/process_image.h"

namespace profd {

// A sample of the process was taken then, the first in this set.
struct SampleHint {
  ksym::ProcessId id;
  uint32_t set = 0;
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  uint64_t cgroup = 0;   // id in the v2 hierarchy; 0: not known
};

// The mapping that holds the address, or null. They are sorted.
const ksym::Mapping* FindMapping(std::span<const ksym::Mapping> mappings,
                                 ksym::Address address);

// The set that is drained, and when it was last written to. The next one was
// not written to before `flip_ns`.
struct TakenSet {
  uint32_t set = 0;
  uint64_t flip_ns = 0;
  uint64_t end_ns = 0;
};

// The address spaces of the sampled processes, also of those that are gone:
// what was there at the start is read from /proc once, the rest is told by the
// side band. A sample's process is found by the time of its first sample in
// the interval, as one pid may be several programs within it. Where reports of
// forks, execs and exits were lost, who is sampled as the same program as
// before keeps what is known; others are read again, when they are sampled or
// forked. Where reports of mappings were
// lost, or one process made more than can be followed, what is known stays, and
// the sampled processes are read again: what took the place of something else
// counts as changed then. A process that was forked by one that was not read
// yet is read by itself.
class ProcessWatch {
 public:
  // Called for a sampled process at first sight and when it maps more files.
  using Observer = std::function<void(const ksym::ProcessImage&)>;
  // Called when such a process was gone for a whole interval.
  using OnGone = std::function<void(const ksym::ProcessId&)>;
  // Called after each process that was read: reading all takes a while in which
  // nobody else can empty what fills. It must not call this object.
  using Meanwhile = std::function<void()>;
  ProcessWatch(Observer observer, OnGone on_gone, Meanwhile meanwhile)
      : observer_(std::move(observer)),
        on_gone_(std::move(on_gone)),
        meanwhile_(std::move(meanwhile)) {}

  // Reads the mappings of every process, some 20 us each, for the next
  // Apply(). After the side band was opened, so that nothing falls between.
  void ReadAll();
  // The same up to that time; the next ReadAll() reads the others. `first`: who
  // is read before all others. Then come those with the largest numbers, as
  // those of the kernel's threads are small.
  void ReadSome(std::span<const uint32_t> first, SteadyClock::time_point until);
  // A process that was read since the last Apply(), and how busy it was.
  struct Busy {
    uint32_t pid = 0;
    double cpus = 0;  // its CPU time divided by its life time
    const std::vector<ksym::Mapping>* mappings = nullptr;
  };
  // The busiest ones first, so many at the most and none that used less than
  // a hundredth of a CPU. Valid until the next Apply().
  std::vector<Busy> Busiest(size_t most) const;
  // All of them, the busiest ones first. Valid as long.
  std::vector<Busy> AllByUse() const;
  // All reports since the last call and up to that time, in the order of time.
  void Apply(std::vector<SideBandEvent> events, uint64_t until_ns);

  // Reports up to the hints' times were applied. Sorts them by time: of a set's
  // hints of one process the first counts, and they come in two ways.
  void See(std::span<SampleHint> hints);
  // Tells the observer of mappings that came since it was last told.
  void TellObserver();

  struct Answer {
    ksym::ProcessId id;
    ksym::ProcessHistory::GenerationId generation = 0;
  };
  // Which address space the sample is of. `frames`: leaf first. A sample taken
  // while its process is in execve may still have the old program's addresses:
  // then the answer is the address space before, with an id of its own.
  Answer Find(const ksym::ProcessId& id, std::span<const uint64_t> frames,
              const TakenSet& taken);
  // That address space as of its first sample in the interval, and with what
  // was mapped since; empty if it is not known. Where something was mapped in
  // the place of something else meanwhile, samples of both have the same
  // addresses: that has the path ksym::kReplacedPath. Cost: a copy.
  std::vector<ksym::Mapping> MappingsOf(const Answer& answer) const;
  // Those of them that contain one of the addresses, which are sorted. Cost: a
  // search for each, however many mappings there are.
  std::vector<ksym::Mapping> MappingsOf(
      const Answer& answer, std::span<const ksym::Address> used) const;
  // How many there were at that first sample; 0 where they are not known.
  size_t CountMappings(const Answer& answer) const;

  // The mappings that the process had then; those of the program before if
  // the address is in none of them, as it is within execve. Valid until the
  // next call that is not const; empty if they are not known.
  std::span<const ksym::Mapping> MappingsAt(uint32_t pid, uint64_t time_ns,
                                            ksym::Address address) const;

  // Forgets the set's hints, and processes that ended before the interval that
  // ends now did begin.
  void EndInterval(const TakenSet& taken);

  // Counts of what did not fit into the history, since the start.
  const ksym::ProcessHistory::Statistics& statistics() const {
    return history_.statistics();
  }

 private:
  struct Reading {
    ksym::ProcessHistory::Reading mappings;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    double cpus = 0;
  };
  bool Read(uint32_t pid);
  std::vector<uint32_t>& Unread(std::span<const uint32_t> first);
  void LoseMappings(uint64_t until_ns);
  void LeaveFloodsOut(std::vector<SideBandEvent>& events);
  void ReadDoubted();
  ksym::MapsLimits LimitsOfReading() const;
  void CountReading(const std::vector<ksym::Mapping>& mappings);
  void ForgetReadings();
  // `is_wanted(change)`: which changes since the interval began to mark.
  template <typename Predicate>
  void MarkReplaced(ksym::ProcessHistory::GenerationId generation,
                    const Predicate& is_wanted,
                    std::vector<ksym::Mapping>& mappings) const;
  void NoteIfUnknown(uint32_t pid);
  void ReadUnknown();
  void EndUnreported();
  void CorrectReadings(const std::vector<SideBandEvent>& events);
  void ApplyOne(SideBandEvent event);
  void SeeOne(const SampleHint& hint);
  ksym::ProcessHistory::GenerationId GenerationOf(const ksym::ProcessId& id,
                                                  const TakenSet& taken);
  void ReportGone();
  void Tell(const ksym::ProcessId& id,
            ksym::ProcessHistory::GenerationId generation);

  Observer observer_;
  OnGone on_gone_;
  Meanwhile meanwhile_;
  ksym::ProcessHistory history_;
  std::vector<Reading> readings_;  // in the order of time
  size_t read_mappings_ = 0;       // of all of them
  size_t read_path_bytes_ = 0;
  // By set: samples of the next interval come in before this one is drained.
  using Bound = std::map<ksym::ProcessId, ksym::ProcessHistory::GenerationId>;
  std::array<Bound, PROFILE_SETS> bound_;
  // The programs that the observer was told of, and their versions. A sample
  // taken within execve may bind a generation to the number of the one before,
  // too.
  std::map<std::pair<ksym::ProcessHistory::GenerationId, ksym::ProcessId>,
           uint64_t>
      told_;
  // News for the observer: hints, and processes whose mappings changed.
  std::vector<Bound::value_type> new_bound_;
  std::set<uint32_t> changed_pids_;
  // Processes that may have to be read.
  std::set<uint32_t> unknown_pids_;
  // Processes whose mappings may have changed without a report, and when those
  // of others were last read for such a reason.
  std::set<uint32_t> doubted_pids_;
  std::unordered_map<uint32_t, uint64_t> settled_ns_;
  uint64_t mappings_lost_ns_ = 0;  // last
  uint64_t next_doubt_ns_ = 0;  // when the last reading of doubted ones ended
  uint64_t doubt_cost_ns_ = 0;  // of that reading and of taking it in
  // Processes that were there at the start, of which the next one is the last.
  std::optional<std::vector<uint32_t>> unread_;
  bool read_before_ = false;
  // Processes, as reports were lost; they are not to be listed before the time.
  bool may_have_ended_ = false;
  uint64_t next_listing_ns_ = 0;
  uint64_t applied_ns_ = 0;
  uint64_t interval_begin_ns_ = 0;  // nothing in the set is older
};

}  // namespace profd
