#include "daemon/oneshot/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "daemon/oneshot/messages.h"

namespace profd {

Progress Progress::ForStderr(bool quiet) {
  if (quiet) return Progress(Mode::kQuiet);
  return Progress(::isatty(STDERR_FILENO) == 1 ? Mode::kLive : Mode::kPlain);
}

void Progress::Update(const State& state) {
  if (mode_ != Mode::kLive) return;
  // To the line's start, and erase what a longer line left behind.
  const std::string line = fmt::format(
      "\r{:.1f} s, {} samples, {} distinct stacks, {} lost\033[K",
      state.elapsed_seconds, state.samples, state.distinct_stacks, state.lost);
  std::fputs(line.c_str(), stderr);
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
