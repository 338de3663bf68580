// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/kernel/kernel_symbol.h"
#include "ksym/kernel/kernel_symbol_change.h"
#include "ksym/kernel/kernel_symbol_source.h"
#include "ksym/kernel/module_list.h"

namespace ksym {

// The kernel's symbols over time, for naming samples an interval at a time:
//
//   Apply(changes of the interval) ... Find(...) ... EndInterval()
//
// A symbol answers in every interval in which it existed, also the one in
// which it went. Where two different symbols had the same address within one
// interval, no order of samples and changes is known any more, and the answer
// is that there is none: better no name than a wrong one.
//
// Owns everything; not thread-safe. Memory: the snapshot, and about 100 bytes
// per symbol added since.
class KernelTimeline {
 public:
  explicit KernelTimeline(KernelSymbolSource snapshot)
      : snapshot_(std::move(snapshot)) {}

  void Apply(const KernelSymbolChange& change);
  // A module came or went, and the table was not read again yet: from this
  // interval on, until the next call of this or Replace(), there is no answer
  // for what is in a module and in one of the ranges (see ModuleList).
  void DoubtModules(std::vector<KernelRange> ranges) {
    doubtful_ = std::move(ranges);
  }
  const std::vector<KernelRange>& doubtful() const { return doubtful_; }
  // A table that was read anew. What only the old one has stays known until
  // EndInterval().
  void Replace(KernelSymbolSource snapshot);
  void EndInterval();
  // The same of an interval that had ended before the table was read: what only
  // the one before it has stays known for the next interval.
  void EndEarlierInterval();

  struct Answer {
    enum class Kind : uint8_t { kNone, kFound, kAmbiguous };
    Kind kind = Kind::kNone;
    KernelSymbol symbol;
  };
  // The views in the answer are valid until the next call of anything, and as
  // long as the buffer is not used.
  Answer Find(Address address, SymbolNameBuffer& buffer) const;

  const KernelSymbolSource& snapshot() const { return snapshot_; }
  // Added since the snapshot and not yet forgotten.
  size_t added_symbols() const { return added_.size(); }

 private:
  struct Added {
    Address start;
    Address end;
    std::string name;
    std::string module;
    bool is_new = true;    // appeared in this interval
    bool is_gone = false;  // went in this interval
  };
  // The start of a symbol of the snapshot that was removed.
  struct Removed {
    Address start;
    bool in_this_interval = true;
  };

  struct InSnapshots {
    std::optional<KernelSymbol> symbol;
    bool leaves = false;        // went in this interval
    bool is_ambiguous = false;  // something else may have been there as well
  };
  InSnapshots FindInSnapshots(Address address, SymbolNameBuffer& buffer) const;
  void NoteRemoved(Address start);
  bool HeldAnother(Address address, const KernelSymbol& symbol) const;
  bool IsStillThere(const KernelSymbol& symbol) const;

  KernelSymbolSource snapshot_;
  std::optional<KernelSymbolSource> previous_;  // replaced in this interval
  std::vector<Added> added_;
  std::vector<Removed> removed_;
  std::vector<KernelRange> doubtful_;
  std::vector<KernelRange> doubtful_before_;  // the same of previous_
};

}  // namespace ksym
