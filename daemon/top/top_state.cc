// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/top_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <tuple>

namespace profd {
namespace {

// A longer one finds no name.
constexpr size_t kMaxFilterBytes = 200;

constexpr std::array<std::string_view, 3> kSubjectNames = {
    "functions", "commands", "threads"};
constexpr std::array<std::string_view, kThreadStates> kStateNames = {
    "running", "runnable", "blocked", "parked"};
constexpr std::array kWindows = {1, 2, 5, 10, 20, 30, 60, 120, 300};

char Lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool ContainsText(std::string_view text, std::string_view part) {
  const auto found = std::ranges::search(
      text, part, [](char a, char b) { return Lower(a) == Lower(b); });
  return part.empty() || !found.empty();
}

bool PassesFilter(const TopRow& row, const TopState& state) {
  if (state.filter.empty()) return true;
  if (state.subject != TopSubject::kThreads) {
    return ContainsText(row.name, state.filter);
  }
  return ContainsText(
      fmt::format("{} {} {} {}", row.pid, row.tid, row.name, row.place),
      state.filter);
}

// Functions alone have a total of their own.
size_t CountOrders(const TopState& state) {
  return state.subject == TopSubject::kFunctions ? 6 : 3;
}

// The columns that can be sorted by, from left to right.
void MoveOrder(size_t steps, TopState& state) {
  const size_t count = CountOrders(state);
  const bool has_totals = count == 6;
  const auto of_state = static_cast<size_t>(state.order.state);
  size_t at =
      has_totals ? 2 * of_state + (state.order.by_total ? 1 : 0) : of_state;
  at = (at + steps) % count;
  state.order.state = static_cast<ThreadState>(has_totals ? at / 2 : at);
  state.order.by_total = has_totals && at % 2 == 1;
  state.first = 0;
}

void ChooseSubject(TopSubject subject, TopState& state) {
  state.subject = subject;
  state.first = 0;
  if (subject != TopSubject::kFunctions) state.order.by_total = false;
}

void WidenWindow(TopState& state) {
  for (const int seconds : kWindows) {
    if (std::chrono::seconds(seconds) <= state.window) continue;
    state.window = std::chrono::seconds(seconds);
    return;
  }
}

void NarrowWindow(TopState& state) {
  for (size_t i = kWindows.size(); i > 0; --i) {
    if (std::chrono::seconds(kWindows[i - 1]) >= state.window) continue;
    state.window = std::chrono::seconds(kWindows[i - 1]);
    return;
  }
}

// Takes the last character off.
void Shorten(std::string& text) {
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.back());
    text.pop_back();
    // Bytes like that go on with a character, so its first one is still to
    // come.
    if ((byte & 0xc0) != 0x80) return;
  }
}

void EditFilter(const Key& key, TopState& state) {
  switch (key.kind) {
    case Key::Kind::kText:
      if (state.filter.size() + key.text.size() <= kMaxFilterBytes) {
        state.filter += key.text;
      }
      break;
    case Key::Kind::kBackspace:
      Shorten(state.filter);
      break;
    case Key::Kind::kErase:
      state.filter.clear();
      break;
    case Key::Kind::kEscape:
      state.filter.clear();
      state.edits_filter = false;
      break;
    case Key::Kind::kEnter:
      state.edits_filter = false;
      break;
    default:
      return;
  }
  state.first = 0;
}

// All rows of the subject that may be shown, in no order.
std::vector<const TopRow*> FindRows(const TopTables& tables,
                                    const TopState& state) {
  const std::vector<TopRow>& all =
      state.subject == TopSubject::kFunctions  ? tables.functions
      : state.subject == TopSubject::kCommands ? tables.commands
                                               : tables.threads;
  std::vector<const TopRow*> rows;
  for (const TopRow& row : all) {
    const bool has_time = TimeIn(row.total, ThreadState::kRunning, state) +
                              TimeIn(row.total, ThreadState::kRunnable, state) +
                              TimeIn(row.total, ThreadState::kBlocked, state) !=
                          0;
    if (has_time && PassesFilter(row, state)) rows.push_back(&row);
  }
  return rows;
}

// By how many rows a key moves; nothing: it does not.
std::optional<int64_t> StepOf(Key::Kind kind, size_t page) {
  constexpr int64_t kAnyNumber = std::numeric_limits<int64_t>::max() / 2;
  const auto whole_page = static_cast<int64_t>(std::max<size_t>(page, 1));
  switch (kind) {
    case Key::Kind::kUp:
      return -1;
    case Key::Kind::kDown:
      return 1;
    case Key::Kind::kPageUp:
      return -whole_page;
    case Key::Kind::kPageDown:
      return whole_page;
    case Key::Kind::kHome:
      return -kAnyNumber;
    case Key::Kind::kEnd:
      return kAnyNumber;
    default:
      return std::nullopt;
  }
}

// Whether the key moves over the rows. Such a key alone costs a look at each.
bool Scroll(Key::Kind kind, const TopPlace& place, TopState& state) {
  const auto step = StepOf(kind, place.page);
  if (!step) return false;
  const size_t rows = FindRows(place.tables, state).size();
  const auto last = static_cast<int64_t>(rows - std::min(rows, place.page));
  const int64_t first = std::min(static_cast<int64_t>(state.first), last);
  state.first =
      static_cast<size_t>(std::clamp<int64_t>(first + *step, 0, last));
  return true;
}

TopCommand ApplyLetter(char letter, TopState& state) {
  switch (letter) {
    case 'q':
      return TopCommand::kQuit;
    case 'w':
      return TopCommand::kWrite;
    case 'f':
      ChooseSubject(TopSubject::kFunctions, state);
      break;
    case 'c':
      ChooseSubject(TopSubject::kCommands, state);
      break;
    case 't':
      ChooseSubject(TopSubject::kThreads, state);
      break;
    case 's':
    case '>':
      MoveOrder(1, state);
      break;
    case '<':
      MoveOrder(CountOrders(state) - 1, state);
      break;
    case '/':
      state.edits_filter = true;
      break;
    case '+':
    case '=':
      WidenWindow(state);
      break;
    case '-':
      NarrowWindow(state);
      break;
    case 'p':
    case ' ':
      state.is_paused = !state.is_paused;
      break;
    case 'k':
      state.parked = state.parked == ParkedRows::kShown ? ParkedRows::kHidden
                                                        : ParkedRows::kShown;
      break;
    case '?':
    case 'h':
      state.shows_help = true;
      break;
    default:
      break;
  }
  return TopCommand::kNone;
}

}  // namespace

std::string_view Name(TopSubject subject) {
  return kSubjectNames[static_cast<size_t>(subject)];
}

std::optional<TopSubject> ParseTopSubject(std::string_view name) {
  const auto found = std::ranges::find(kSubjectNames, name);
  if (found == kSubjectNames.end()) return std::nullopt;
  return static_cast<TopSubject>(found - kSubjectNames.begin());
}

std::string_view Name(ThreadState state) {
  return kStateNames[static_cast<size_t>(state)];
}

std::optional<ThreadState> ParseThreadState(std::string_view name) {
  const auto found = std::ranges::find(kStateNames, name);
  if (found == kStateNames.end()) return std::nullopt;
  return static_cast<ThreadState>(found - kStateNames.begin());
}

TopCommand ApplyKey(const Key& key, const TopPlace& place, TopState& state) {
  if (key.kind == Key::Kind::kRedraw) return TopCommand::kRedraw;
  if (state.shows_help) {
    state.shows_help = false;
    return key.text == "q" ? TopCommand::kQuit : TopCommand::kNone;
  }
  // Also while the filter is typed.
  if (Scroll(key.kind, place, state)) return TopCommand::kNone;
  if (state.edits_filter) {
    EditFilter(key, state);
    return TopCommand::kNone;
  }
  switch (key.kind) {
    case Key::Kind::kLeft:
      MoveOrder(CountOrders(state) - 1, state);
      return TopCommand::kNone;
    case Key::Kind::kRight:
      MoveOrder(1, state);
      return TopCommand::kNone;
    case Key::Kind::kEscape:
      state.filter.clear();
      state.first = 0;
      return TopCommand::kNone;
    case Key::Kind::kText:
      return key.text.size() == 1 ? ApplyLetter(key.text.front(), state)
                                  : TopCommand::kNone;
    default:
      return TopCommand::kNone;
  }
}

uint64_t TimeIn(const TimesByState& times, ThreadState state,
                const TopState& chosen) {
  const bool has_parked =
      state == ThreadState::kBlocked && chosen.parked == ParkedRows::kShown;
  return times[state] + (has_parked ? times[ThreadState::kParked] : 0);
}

std::vector<const TopRow*> ChooseRows(const TopTables& tables,
                                      const TopState& state) {
  std::vector<const TopRow*> rows = FindRows(tables, state);
  const auto key = [&](const TopRow& row) {
    const uint64_t self = TimeIn(row.self, state.order.state, state);
    const uint64_t total = TimeIn(row.total, state.order.state, state);
    return state.order.by_total ? std::pair(total, self)
                                : std::pair(self, total);
  };
  std::ranges::sort(rows, [&](const TopRow* a, const TopRow* b) {
    const auto key_a = key(*a);
    const auto key_b = key(*b);
    if (key_a != key_b) return key_a > key_b;
    if (a->total.sum() != b->total.sum()) {
      return a->total.sum() > b->total.sum();
    }
    return std::tie(a->name, a->pid, a->tid) <
           std::tie(b->name, b->pid, b->tid);
  });
  return rows;
}

}  // namespace profd
