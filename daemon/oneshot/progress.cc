// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "daemon/oneshot/messages.h"
#include "daemon/oneshot/terminal.h"

namespace profd {
Progress Progress::ForStderr(bool quiet) {
  if (quiet) return Progress(Mode::kQuiet);
  return Progress(::isatty(STDERR_FILENO) == 1 ? Mode::kLive : Mode::kPlain);
}

void Progress::Update(const State& state) {
  if (mode_ != Mode::kLive) return;
  ShowLive(fmt::format("{:.1f} s, {} samples, {} distinct stacks, {} lost",
                       state.elapsed_seconds, state.samples,
                       state.distinct_stacks, state.lost));
}

void Progress::UpdateNaming(uint64_t files, uint64_t of_files) {
  if (mode_ != Mode::kLive) return;
  ShowLive(fmt::format("naming: {} of {} files", files, of_files));
}

void Progress::ShowLive(std::string line) {
  // A line that wraps could not be redrawn.
  line.resize(std::min(line.size(), TerminalColumns(STDERR_FILENO) - 1));
  // To the line's start, and erase what a longer line left behind.
  std::fputs(("\r" + line + "\033[K").c_str(), stderr);
  std::fflush(stderr);
  live_line_shown_ = true;
}

void Progress::Say(std::string_view text) {
  if (mode_ == Mode::kQuiet) return;
  ClearLive();
  PrintMessage(text);
}

void Progress::ClearLive() {
  if (!live_line_shown_) return;
  std::fputs("\r\033[K", stderr);
  live_line_shown_ = false;
}

}  // namespace profd
