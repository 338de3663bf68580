// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/base/steady_clock.h"
#include "daemon/unwind/unwind_file.h"
#include "daemon/unwind/unwind_pieces.h"
#include "ksym/process/process_image.h"
#include "ksym/runtime/file_runtimes.h"
#include "ksym/unwind/unwind_table.h"

namespace profd {

// How far one file's table is on its way to where the sampler reads it. Time
// and rounds are passed in; a round is one pass over all processes. Nothing
// here does I/O.
//
//   kPending --Placed()----------> kReady --Fail()--> kSealed
//   kPending --Fail()------------> kFailed --Close()--> kNone
//   kPending --RefuseRoom()------> kRefused --Retry()--> kPending
//   kPending --NoteOpenFailure()-> kRefused --NoteOpened(), Retry()--> kPending
//                                  kRefused --Fail()--> kNone
//
// That a file is wanted is beside this: once it is, it stays so.
class TableFileState {
 public:
  enum class Place : uint8_t {
    kPending,
    kReady,
    // The sampler has the table. The rows that served copied stacks were
    // dropped, and cannot be built again.
    kSealed,
    // There was no room, or it could not be opened often enough.
    kRefused,
    // There are no rows to be had. The processes' lists still say that they are
    // to come: as long as one was not told, the file counts as pending.
    kFailed,
    // It is code without a table, and the lists say so.
    kNone,
  };

  // So often a file that cannot be opened is tried before its code counts as
  // code without a table.
  static constexpr uint32_t kMaxFailures = 16;
  // How much longer than others that were refused it waits then; twice as long
  // each time.
  static constexpr std::chrono::seconds kFirstPatience{2};
  static constexpr std::chrono::seconds kMaxPatience{120};

  Place place() const { return place_; }
  // Lists say that its table is to come.
  bool is_pending() const {
    return place_ == Place::kPending || place_ == Place::kFailed;
  }
  bool is_ready() const {
    return place_ == Place::kReady || place_ == Place::kSealed;
  }
  bool is_refused() const { return place_ == Place::kRefused; }
  // A stack led there, or may have.
  bool is_wanted() const { return is_wanted_; }
  bool is_awaited() const { return is_pending() && is_wanted_; }
  // There are no rows to be had, or none again: nobody need ask for them.
  bool has_failed() const {
    return place_ == Place::kFailed || place_ == Place::kNone ||
           place_ == Place::kSealed;
  }

  // True when it was not wanted before.
  bool Want() { return !std::exchange(is_wanted_, true); }
  // The file that was opened gave no rows.
  void Fail();
  // Its code is code without a table, which is all that one can know of it.
  // Only after it failed.
  void Close() { place_ = Place::kNone; }
  void Placed() { place_ = Place::kReady; }
  void RefuseRoom(SteadyClock::time_point now);

  // Once in a round, through each process; a refused one once in a round.
  bool MayOpen(uint64_t round, uint32_t pid) const;
  // Whether some process was tried in the round.
  bool WasTriedIn(uint64_t round) const { return tries_.round == round; }
  // True when it is pending again.
  bool NoteOpened();
  // True when it counts as one that cannot be opened from now on.
  bool NoteOpenFailure(uint64_t round, uint32_t pid,
                       SteadyClock::time_point now);
  // True when it is pending again: it was refused not after `before`, and
  // `seen`, when somebody who maps it was sampled last, is later than that.
  bool Retry(SteadyClock::time_point before, SteadyClock::time_point seen);

 private:
  struct Tries {
    uint32_t failures = 0;  // rounds in a row
    uint64_t round = 0;     // the last one,
    uint32_t pid = 0;       // and through which process
    SteadyClock::duration patience = {};
  };

  Place place_ = Place::kPending;
  bool is_wanted_ = false;
  Tries tries_;
  SteadyClock::time_point refused_;
};

// A file that sampled processes map, and its table as far as there is one.
struct TableFile {
  TableFileState state;
  bool is_vdso = false;
  bool is_expected = false;   // its job is of Expect(), and nobody waits
  bool was_told = false;      // that it has no table
  bool was_searched = false;  // for an interpreter, before its table is made
  bool is_apart = false;      // of one mount namespace
  bool is_for_all = false;    // it was opened, and no other has these numbers
  uint64_t job = 0;           // of the queue; 0: none
  // Where it can be opened, and what it was when it was.
  uint32_t pid = 0;
  ksym::Mapping mapping;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  std::optional<uint32_t> owner;
  UnwindFile table;
  ksym::FileRuntimes runtimes;
  std::vector<UnwindPiece> pieces;  // of `rows`, that have no place yet
  // Not of files that were not used for some time.
  std::shared_ptr<const ksym::UnwindTable> rows;
  uint64_t checked = 0;  // in which round it was seen to be unchanged
  uint32_t users = 0;
  SteadyClock::time_point used;  // last: by a copied stack, or one who is gone
};

}  // namespace profd
