// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/process/mapping_list.h"
#include "ksym/process/process_image.h"

namespace ksym {

// The address spaces of all processes over time, put together from what the
// kernel reports as it happens (fork, exec, mmap, exit), so that a process
// that is gone still has the mappings it had. All times are of one clock, in
// nanoseconds; events of one process come in their order.
//
// A process's life is a row of generations: a fork copies the parent's, an
// exec begins a new one, the exit of its first thread ends the last. A munmap
// is not reported; a mapping ends when another takes its place, and what was
// there at one time is then not known any more (see Changes).
//
// Where reports were lost, what a process had may be another one's by now. One
// that was sampled as the same program before and after that still has it
// (See()); the others are to be read again.
//
// Not thread-safe. Memory: 72 bytes per executable mapping, and the paths, each
// once; a fork shares its parent's until one of them maps something. All are
// bounded: see Limits.
class ProcessHistory {
 public:
  // Generations are named by number; 0 is none.
  using GenerationId = uint64_t;

  // What exceeds them is counted, and nothing wrong is known because of it. A
  // process without room is not known at all. One with too many mappings keeps
  // those that it has, where nothing was mapped over them; in each gap between
  // these all later ones become one mapping with kTooLargePath.
  struct Limits {
    size_t generations = size_t{1} << 18;  // of all processes, 200 bytes each
    // Per generation. Each report costs up to 10 ns for each of them.
    size_t mappings = size_t{1} << 14;
    // Per generation, if they were read.
    size_t read_mappings = kMaxMappings;
    // In all generations. Beyond it the longest list is given up: all that it
    // has become one with kTooLargePath. So a process that maps much loses
    // names, and nobody else does.
    size_t all_mappings = size_t{1} << 19;
    // Bytes of different paths: those that one generation brings, and all
    // together. When those of all are used up each may bring
    // `always_path_bytes`. A mapping whose path has no room has kTooLargePath.
    size_t path_bytes = kMaxPathBytes;
    size_t all_path_bytes = size_t{32} << 20;
    size_t always_path_bytes = size_t{32} << 10;
    // Per generation; beyond it all from the first to the last one counts as
    // changed.
    size_t changes = 256;
  };
  struct Statistics {
    uint64_t generations_dropped = 0;
    uint64_t mappings_dropped = 0;
  };
  ProcessHistory() = default;
  explicit ProcessHistory(Limits limits) : limits_(limits) {}

  // Mappings that were read from /proc at that time, of a process that was
  // there before the reports began, or when reports were lost. They join what
  // is known of its present generation, and win over it. If that awaits a
  // reading they hold since it began, or since `since_ns` if that is earlier
  // and nothing came before. If reports were lost since it was last known, a
  // generation begins.
  struct Reading {
    uint32_t pid = 0;
    uint64_t since_ns = 0;
    std::vector<Mapping> mappings;
  };
  void Seed(Reading reading, uint64_t time_ns);
  // Nothing is known of the process's mappings: its fork was not reported, or
  // its parent's are not known either; or they are in doubt, and its children
  // need them. That ends with a reading or an exec.
  bool AwaitsReading(uint32_t pid) const;
  // It could not be read, as it is gone.
  void GiveUp(uint32_t pid, uint64_t time_ns);
  // Reports of before that time were lost, of forks, execs and exits.
  void LoseTrack(uint64_t until_ns);
  // The only processes that there were then: others ended without a report.
  void EndOthers(const std::unordered_set<uint32_t>& pids, uint64_t time_ns);
  void Fork(uint32_t parent, uint32_t child, uint64_t time_ns);
  void Exec(uint32_t pid, uint64_t time_ns);
  void Map(uint32_t pid, Mapping mapping, uint64_t time_ns);
  // Its first thread ended. Others may go on: while they are seen or map
  // something, the generation is not forgotten.
  void End(uint32_t pid, uint64_t time_ns);

  // The process was sampled then. Returns its generation; 0 if none is known.
  // Where that is in doubt it is the same only if it was last sampled by the
  // same id. If not, one begins that awaits a reading.
  GenerationId See(const ProcessId& id, uint64_t time_ns);

  // The generation that the process had at that time; 0 if none is known. It
  // may be in doubt.
  GenerationId Find(uint32_t pid, uint64_t time_ns) const;
  // The same, and 0 if it is in doubt.
  GenerationId FindSure(uint32_t pid, uint64_t time_ns) const;
  // The generation that it had in all of that time; 0 if it had several, or it
  // is in doubt whether it was that process's.
  GenerationId FindOnly(const ProcessId& id, uint64_t begin_ns,
                        uint64_t end_ns) const;
  // The one that became this one by exec; 0: it did not begin so, or that is
  // forgotten. Others before it tell nothing of it.
  GenerationId BeforeExec(GenerationId id) const;
  // Sorted and without overlap; null if they are not known. Valid until the
  // next call that is not const.
  const std::vector<Mapping>* Mappings(GenerationId id) const;
  // Grows with each change of the generation's mappings.
  uint64_t Version(GenerationId id) const;

  // From `start` to `end` something else was mapped until that time than
  // what is there now.
  struct Change {
    uint64_t time_ns = 0;
    Address start;
    Address end;
  };
  // The last change of each range. Valid until the next call that is not const.
  std::span<const Change> Changes(GenerationId id) const;

  // Drops generations that ended before that time, and older changes; now and
  // then the paths that nobody has any more.
  void Forget(uint64_t before_ns);
  size_t generations() const { return by_id_.size(); }
  // The sum over all generations; those that share a list count once.
  size_t mappings() const { return *all_mappings_; }
  // Bytes of paths, at the most.
  size_t path_bytes() const { return paths_.bytes(); }
  const Statistics& statistics() const { return statistics_; }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  struct Generation {
    GenerationId id = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = kNever;
    uint64_t version = 0;
    uint32_t pid = 0;
    bool by_exec = false;
    bool awaits_reading = false;
    // When it was last known that the process still had it, and by which id it
    // was sampled; pid 0: it was not. One that begins with a reading has that
    // of the one before: who has it before and after had it meanwhile.
    uint64_t sure_ns = 0;
    ProcessId sampled;
    // Around all that was mapped while it was in doubt, and when that was last.
    Change in_doubt;
    size_t path_bytes = 0;                  // that it brought
    std::shared_ptr<MappingList> mappings;  // null: not known
    std::vector<Change> changes;
  };
  // What one pid was, one generation after the other.
  struct Life {
    std::deque<Generation> generations;  // oldest first
  };

  // Null where there is no room for another generation.
  Generation* Begin(uint32_t pid, uint64_t time_ns,
                    std::shared_ptr<MappingList> mappings);
  // The one that begins in the place of one in doubt, which may be null. What
  // that had after `changed_since_ns` counts as changed.
  Generation* Succeed(const Generation* doubted, uint32_t pid, uint64_t time_ns,
                      uint64_t changed_since_ns);
  // The last one; null if there is none.
  Generation* Last(uint32_t pid);
  // The same if the process has it at that time for sure, which is later than
  // all that is known of it.
  Generation* Present(uint32_t pid, uint64_t time_ns);
  bool IsSure(const Generation& generation, uint64_t time_ns) const;
  static void Confirm(Generation& generation, uint64_t time_ns);
  Generation* Seeded(Reading& reading, uint64_t time_ns);
  // The list has so many mappings at most, or as many as before.
  void Put(Generation& generation, Mapping mapping, uint64_t time_ns,
           size_t limit);
  static MappingList& Own(Generation& generation);
  std::shared_ptr<MappingList> NewList() const {
    return std::make_shared<MappingList>(all_mappings_);
  }
  void PutAll(Generation& generation, std::vector<Mapping> mappings,
              uint64_t time_ns);
  void SharePath(Generation& generation, Mapping& mapping);
  void GiveUpLongestList();
  void AddChange(Generation& generation, const Change& change);
  const Generation* Get(GenerationId id) const;
  GenerationId Previous(GenerationId id) const;

  Limits limits_;
  Statistics statistics_;
  std::shared_ptr<size_t> all_mappings_ = std::make_shared<size_t>(0);
  PathPool paths_;
  unsigned forgot_ = 0;   // times that paths may have to be swept
  uint64_t lost_ns_ = 0;  // no report of later times was lost

  std::unordered_map<uint32_t, Life> lives_;
  std::unordered_map<GenerationId, uint32_t> by_id_;  // to the pid
  // Those that have something which Forget() may drop by and by.
  std::unordered_set<uint32_t> forgettable_;
  GenerationId next_id_ = 1;
};

}  // namespace ksym
