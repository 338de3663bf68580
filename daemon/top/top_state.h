// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/top/key_reader.h"
#include "daemon/top/top_rows.h"

namespace profd {

enum class TopSubject : uint8_t { kFunctions, kCommands, kThreads };
// "functions", "commands", "threads"; nothing for another word.
std::string_view Name(TopSubject subject);
std::optional<TopSubject> ParseTopSubject(std::string_view name);

// What the rows are sorted by, the largest first.
struct TopOrder {
  ThreadState state = ThreadState::kRunning;  // never kParked
  bool by_total = false;  // of a function and what it calls, in that state

  friend bool operator==(const TopOrder&, const TopOrder&) = default;
};
// "running", "runnable", "blocked", "parked".
std::string_view Name(ThreadState state);
std::optional<ThreadState> ParseThreadState(std::string_view name);

// How parked threads are shown: as one function "[parked]", whose time is in
// the sums of commands and threads as blocked; or nowhere.
enum class ParkedRows : uint8_t { kShown, kHidden };

// The windows that can be chosen.
inline constexpr std::chrono::seconds kLeastWindow{1};
inline constexpr std::chrono::seconds kMostWindow{300};

// What the user chose to see. Keys change it and nothing else does.
struct TopState {
  TopSubject subject = TopSubject::kFunctions;
  TopOrder order;
  std::string filter;  // a part of the names, in any case
  bool edits_filter = false;
  ParkedRows parked = ParkedRows::kShown;
  std::chrono::seconds window{10};
  size_t first = 0;  // rows above the first one that is shown
  bool is_paused = false;
  bool shows_help = false;
};

// What a key asks for that is none of the state.
enum class TopCommand : uint8_t { kNone, kQuit, kWrite, kRedraw };

// What keys scroll over: tables, and the number of rows on the screen.
struct TopPlace {
  const TopTables& tables;
  size_t page = 0;
};
// Applies a key. O(rows) for one that scrolls, else O(1).
TopCommand ApplyKey(const Key& key, const TopPlace& place, TopState& state);

// The rows to be shown, sorted: of the subject, with time in some state, and
// with the filter's text. Pointers into the tables. O(rows log rows).
std::vector<const TopRow*> ChooseRows(const TopTables& tables,
                                      const TopState& state);
// The time of a row in the columns, with parked time where it belongs.
uint64_t TimeIn(const TimesByState& times, ThreadState state,
                const TopState& chosen);

}  // namespace profd
