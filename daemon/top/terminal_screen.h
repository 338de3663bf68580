// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <string>
#include <string_view>
#include <vector>

#include "daemon/top/top_view.h"
#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// The bytes with which a screen that shows `before` comes to show `lines`: the
// lines that differ, each at its own place and without wrapping, so that one
// whose width is not what we think spoils no other. `before` empty: everything.
std::string ScreenUpdate(const std::vector<ScreenLine>& before,
                         const std::vector<ScreenLine>& lines);

// The terminal of standard input and output: its second screen, with keys that
// come at once and are not shown. The first screen and its modes are back when
// this object goes, when Leave() is called, and when the program ends by
// exit() or a signal of its own faults. Writes never wait. One at a time; not
// thread-safe.
class TerminalScreen {
 public:
  // kInvalid: standard input or output is no terminal, or one that only prints
  // lines (TERM=dumb).
  static ksym::Result<TerminalScreen> Open();
  TerminalScreen(TerminalScreen&& other) noexcept;
  TerminalScreen& operator=(TerminalScreen&&) = delete;
  ~TerminalScreen();

  // Takes the terminal; again after Leave(), or after somebody else changed its
  // modes. Stops the program where it is in the background, until it no longer
  // is.
  void Enter();
  // Gives it back, within a tenth of a second. False: it takes no output.
  bool Leave();

  ScreenSize size() const;
  // The screen no longer has what was shown last.
  void Forget() { shown_.clear(); }
  // Shows the lines. Where the terminal is behind with an earlier update they
  // come after it, and what is not yet begun is left out.
  void Show(std::vector<ScreenLine> lines);
  // Whether there is something to be written.
  bool is_behind() const { return !unsent_.empty() || has_next_; }
  // Writes what the terminal takes now.
  void Send();
  int output() const { return output_; }
  // The terminal is gone.
  bool is_broken() const { return is_broken_; }

 private:
  explicit TerminalScreen(const termios& before);

  termios before_;  // as it was given to us
  bool is_entered_ = false;
  bool is_broken_ = false;
  ksym::UniqueFd own_output_;  // the same terminal, without waiting
  int output_;
  std::vector<ScreenLine> shown_;  // when all is sent
  std::vector<ScreenLine> next_;
  bool has_next_ = false;
  std::string unsent_;
};

}  // namespace profd
