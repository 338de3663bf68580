// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/top/top_state.h"

namespace profd {

// A line of the screen, printable and no wider than the screen.
struct ScreenLine {
  enum class Style : uint8_t { kPlain, kBold, kHeader, kGrey, kWarning };
  std::string text = {};
  Style style = Style::kPlain;

  friend bool operator==(const ScreenLine&, const ScreenLine&) = default;
};

struct ScreenSize {
  size_t columns = 80;
  size_t rows = 24;

  friend bool operator==(const ScreenSize&, const ScreenSize&) = default;
};

// What is told beside the tables.
struct TopFacts {
  std::string target = {};  // what is sampled: "all threads", "process 12"
  std::string rate = {};    // "99 Hz"
  double own_cpus = 0;      // CPU time of this program in a second
  // Blocked and parked time lacks what slept on for so long; 0: nothing.
  std::chrono::seconds sleepers_behind = {};
  std::string no_waits = {};  // why threads that wait are not sampled
  std::string no_time = {};   // why no thread has any in the window
  std::string message = {};   // of the last line; empty: the keys
  bool is_warning = false;    // the message is
};

// Rows of tables that such a screen has.
size_t TableRows(const ScreenSize& size);

// The screen's lines, as many as it has or fewer.
std::vector<ScreenLine> DrawTop(const TopTables& tables, const TopState& state,
                                const TopFacts& facts, const ScreenSize& size);

// The same as text for files and pipes: with as many rows, but no wider than
// the names are, and without the line of keys.
std::string PrintTop(const TopTables& tables, const TopState& state,
                     const TopFacts& facts, size_t rows);

}  // namespace profd
