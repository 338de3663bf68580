// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/base/steady_clock.h"
#include "daemon/unwind/table_file.h"
#include "ksym/process/process_image.h"

namespace profd {

// How far one process's list of mappings is. Time is passed in; nothing here
// does I/O. A list may be published without some tables and again when they are
// there; one that is refused or evicted is withdrawn.
class TableListState {
 public:
  // A process that was sampled since then keeps its tables, and one that was
  // refused waits for so long.
  static constexpr std::chrono::seconds kKeepSampled{2};

  // How many files are not pending.
  struct Settled {
    size_t with_table = 0;
    size_t without = 0;
    void Count(const TableFileState& file) {
      if (file.is_pending()) return;
      ++(file.is_ready() ? with_table : without);
    }
    friend bool operator==(const Settled&, const Settled&) = default;
  };

  // Since all its tables were there.
  uint64_t samples() const { return samples_; }
  SteadyClock::time_point seen() const { return seen_; }
  bool is_published() const { return published_; }
  // It has no files until it is sampled again.
  bool is_evicted() const { return evicted_; }
  bool is_refused() const { return refused_ != SteadyClock::time_point(); }

  void NoteSample(SteadyClock::time_point time);
  // It has other mappings, or its files again.
  void Acquired();
  // The list is not what it can be by now.
  void Change() { changed_ = true; }
  // Others may have had its tables placed.
  void Settle(const Settled& settled) { changed_ |= settled != settled_; }
  // Whether to publish now: a list that lacks tables is put off once, as what
  // was asked for is there the next time for the most part.
  bool IsDue(bool is_whole);
  struct Publication {
    bool is_first = false;  // of this process, or since it was withdrawn
    // From the first sample until all tables were there, if this is when.
    std::optional<SteadyClock::duration> delay;
  };
  Publication Published(const Settled& settled, bool is_whole,
                        SteadyClock::time_point now);
  // There was no room, or it could not be written. True: it had a list, which
  // is to be withdrawn: half of the truth would be a wrong stack.
  bool Refuse(SteadyClock::time_point now);
  // Room was made: it need not wait.
  void RetrySoon() { refused_ -= kKeepSampled; }
  // True when it is to be tried again: refused not after `before`, and sampled
  // since.
  bool Retry(SteadyClock::time_point before);
  // Sampled not after `before`.
  bool CanBeEvicted(SteadyClock::time_point before) const {
    return published_ && seen_ <= before;
  }
  void Evict();

 private:
  uint64_t samples_ = 0;
  Settled settled_;                  // in its last list
  SteadyClock::time_point refused_;  // 0: it was not
  SteadyClock::time_point first_seen_;
  SteadyClock::time_point seen_;
  bool changed_ = true;
  bool waited_ = false;    // a list without some tables was put off once
  bool complete_ = false;  // all that were wanted were there once
  bool published_ = false;
  bool evicted_ = false;
};

// A process that was sampled, with the files that it maps.
struct TableList {
  TableListState state;
  std::vector<ksym::Mapping> mappings;
  std::vector<TableFile*> files;  // by mapping; null: none
};

}  // namespace profd
