// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace profd {

// The status lines of a capture on stderr. On a terminal one line is redrawn
// in place; elsewhere only the first and last lines are printed.
class Progress {
 public:
  enum class Mode { kQuiet, kPlain, kLive };
  // kLive if stderr is a terminal, unless quiet.
  static Progress ForStderr(bool quiet);
  explicit Progress(Mode mode) : mode_(mode) {}
  ~Progress() { ClearLive(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  struct State {
    double elapsed_seconds = 0;
    uint64_t samples = 0;
    uint64_t distinct_stacks = 0;
    uint64_t lost = 0;
  };
  // Redraws the live line.
  void Update(const State& state);
  // The same while names are found: "naming: 61 of 300 files".
  void UpdateNaming(uint64_t files, uint64_t of_files);
  // Prints "ksym-profile: TEXT" on a line of its own, once per line of text;
  // nothing when quiet.
  void Say(std::string_view text);

 private:
  void ShowLive(std::string line);
  void ClearLive();

  Mode mode_;
  bool live_line_shown_ = false;
};

}  // namespace profd
