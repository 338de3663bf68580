// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/table_list.h"

#include <algorithm>
#include <utility>

#include "daemon/base/steady_clock.h"

namespace profd {

void TableListState::NoteSample(SteadyClock::time_point time) {
  if (seen_ == SteadyClock::time_point()) first_seen_ = time;
  ++samples_;
  // Hints of several CPUs are not in order.
  seen_ = std::max(seen_, time);
}

void TableListState::Acquired() {
  // With other files it may be put off once more.
  evicted_ = false;
  waited_ = false;
  changed_ = true;
}

bool TableListState::IsDue(bool is_whole) {
  if (is_whole) return true;
  // The tables that were just asked for are there the next time for the most
  // part: one list with them is cheaper than two.
  const bool is_put_off = !std::exchange(waited_, true);
  return changed_ && !is_put_off;
}

TableListState::Publication TableListState::Published(
    const Settled& settled, bool is_whole, SteadyClock::time_point now) {
  changed_ = false;
  settled_ = settled;
  refused_ = {};
  Publication publication{.is_first = !std::exchange(published_, true),
                          .delay = {}};
  if (!is_whole) return publication;
  // From here on its samples say how much it needs what may come.
  samples_ = 0;
  if (!std::exchange(complete_, true)) publication.delay = now - first_seen_;
  return publication;
}

bool TableListState::Refuse(SteadyClock::time_point now) {
  // When there is room the same list is news again.
  changed_ = true;
  refused_ = now;
  return std::exchange(published_, false);
}

bool TableListState::Retry(SteadyClock::time_point before) {
  if (!is_refused() || refused_ > before || seen_ <= refused_) return false;
  refused_ = {};
  return true;
}

void TableListState::Evict() {
  published_ = false;
  evicted_ = true;
}

}  // namespace profd
