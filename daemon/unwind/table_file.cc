// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/table_file.h"

#include <algorithm>

#include "daemon/base/steady_clock.h"

namespace profd {

void TableFileState::Fail() {
  switch (place_) {
    case Place::kPending:
      place_ = Place::kFailed;
      break;
    case Place::kReady:
      // The table in the maps was made of the file as it was, and serves on.
      place_ = Place::kSealed;
      break;
    case Place::kRefused:
      // No list says that it is to come.
      place_ = Place::kNone;
      break;
    case Place::kSealed:
    case Place::kFailed:
    case Place::kNone:
      break;
  }
}

void TableFileState::RefuseRoom(SteadyClock::time_point now) {
  place_ = Place::kRefused;
  refused_ = now;
}

bool TableFileState::MayOpen(uint64_t round, uint32_t pid) const {
  return tries_.round != round || (!is_refused() && tries_.pid != pid);
}

bool TableFileState::NoteOpened() {
  // One that was refused for want of room stays so: that it can be opened makes
  // none.
  const bool is_again = is_refused() && tries_.failures >= kMaxFailures;
  if (is_again) place_ = Place::kPending;
  tries_ = {};
  return is_again;
}

bool TableFileState::NoteOpenFailure(uint64_t round, uint32_t pid,
                                     SteadyClock::time_point now) {
  tries_.pid = pid;
  // Several processes that are gone make one failed round: processes end all
  // the time, and that alone says nothing about the file.
  if (std::exchange(tries_.round, round) == round) return false;
  if (!is_pending() || ++tries_.failures < kMaxFailures) return false;
  const bool is_first = tries_.patience == SteadyClock::duration();
  // Refused in the future, so to say: Retry() then waits for longer than for
  // want of room.
  place_ = Place::kRefused;
  refused_ = now + tries_.patience;
  tries_.patience = std::clamp<SteadyClock::duration>(
      2 * tries_.patience, kFirstPatience, kMaxPatience);
  return is_first;
}

bool TableFileState::Retry(SteadyClock::time_point before,
                           SteadyClock::time_point seen) {
  if (!is_refused() || refused_ > before || seen <= refused_) return false;
  place_ = Place::kPending;
  return true;
}

}  // namespace profd
