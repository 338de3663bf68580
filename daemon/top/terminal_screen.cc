// SPDX-License-Identifier: Apache-2.0
#include "daemon/top/terminal_screen.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace profd {
namespace {

// The second screen; no cursor; lines that are too long do not wrap.
constexpr std::string_view kBegin = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kEnd = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::chrono::milliseconds kLeavePatience(100);

// For the end of a program that does not come back to its loop.
termios mode_at_end = {};
std::atomic<bool> is_mode_ours = false;

// Also in a signal's handler.
void RestoreAtEnd() {
  if (!is_mode_ours.exchange(false)) return;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &mode_at_end);
  (void)!::write(STDOUT_FILENO, kEnd.data(), kEnd.size());
}

void RestoreAndDie(int number) {
  RestoreAtEnd();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// Only where nobody else has an answer to them.
void RestoreOnFaults() {
  for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL}) {
    struct sigaction action = {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_DFL) continue;
    action.sa_handler = RestoreAndDie;
    ::sigaction(number, &action, nullptr);
  }
}

std::string_view Begin(ScreenLine::Style style) {
  switch (style) {
    case ScreenLine::Style::kPlain:
      return "";
    case ScreenLine::Style::kBold:
      return "\x1b[1m";
    case ScreenLine::Style::kHeader:
      return "\x1b[7m";
    case ScreenLine::Style::kGrey:
      return "\x1b[90m";
    case ScreenLine::Style::kWarning:
      return "\x1b[1;33m";
  }
  return "";
}

}  // namespace

std::string ScreenUpdate(const std::vector<ScreenLine>& before,
                         const std::vector<ScreenLine>& lines) {
  std::string out;
  if (before.empty()) out += "\x1b[0m\x1b[2J";
  const ScreenLine none;
  const size_t count = std::max(before.size(), lines.size());
  for (size_t i = 0; i < count; ++i) {
    const ScreenLine& line = i < lines.size() ? lines[i] : none;
    const ScreenLine& old = i < before.size() ? before[i] : none;
    if (line == old) continue;
    out += fmt::format("\x1b[{};1H\x1b[0m\x1b[2K{}{}\x1b[0m", i + 1,
                       Begin(line.style), line.text);
  }
  return out;
}

ksym::Result<TerminalScreen> TerminalScreen::Open() {
  termios mode = {};
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    if (::tcgetattr(fd, &mode) == 0) continue;
    return ksym::Fail(
        ksym::ErrorCode::kInvalid,
        fmt::format("{} is no terminal: for tables as text give --batch N, for "
                    "a report take ksym-profile without top",
                    fd == STDIN_FILENO ? "stdin" : "stdout"));
  }
  // Each terminal that places text takes the sequences that are used here.
  const char* type = std::getenv("TERM");
  if (type != nullptr && std::string_view(type) == "dumb") {
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      "TERM=dumb is a terminal that only prints lines: for "
                      "tables as text give --batch N");
  }
  ::tcgetattr(STDIN_FILENO, &mode);
  return TerminalScreen(mode);
}

// An opening of its own, as O_NONBLOCK would be for all who share ours.
TerminalScreen::TerminalScreen(const termios& before)
    : before_(before),
      own_output_(::open("/proc/self/fd/1",
                         O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)),
      output_(own_output_.valid() ? own_output_.get() : STDOUT_FILENO) {}

TerminalScreen::TerminalScreen(TerminalScreen&& other) noexcept
    : before_(other.before_),
      is_entered_(std::exchange(other.is_entered_, false)),
      is_broken_(other.is_broken_),
      own_output_(std::move(other.own_output_)),
      output_(other.output_),
      shown_(std::move(other.shown_)),
      next_(std::move(other.next_)),
      has_next_(other.has_next_),
      unsent_(std::move(other.unsent_)) {}

TerminalScreen::~TerminalScreen() { Leave(); }

void TerminalScreen::Enter() {
  // Before the mode is changed: whatever ends the program then puts it back.
  static const bool kRegistered = [] {
    RestoreOnFaults();
    return std::atexit(RestoreAtEnd) == 0;
  }();
  (void)kRegistered;
  termios mode = before_;
  mode.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IXON | ISTRIP);
  // Signals of keys stay: whole groups of processes get them.
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ECHONL | IEXTEN);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  // Before the flag that a signal's handler looks at.
  mode_at_end = before_;
  is_mode_ours = true;
  is_entered_ = true;
  Forget();
  next_.clear();
  has_next_ = false;
  unsent_ = kBegin;
  Send();
}

bool TerminalScreen::Leave() {
  if (!std::exchange(is_entered_, false)) return true;
  // An update that has begun is sent to its end: no sequence is cut.
  next_.clear();
  has_next_ = false;
  unsent_ += kEnd;
  const auto deadline = std::chrono::steady_clock::now() + kLeavePatience;
  for (Send(); is_behind() && !is_broken_; Send()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd entry = {.fd = output_, .events = POLLOUT, .revents = 0};
    if (left.count() <= 0 ||
        ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) {
      break;
    }
  }
  is_mode_ours = false;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  Forget();
  const bool is_sent = unsent_.empty();
  unsent_.clear();
  return is_sent;
}

ScreenSize TerminalScreen::size() const {
  winsize size = {};
  ScreenSize made;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return made;
  if (size.ws_col != 0) made.columns = size.ws_col;
  if (size.ws_row != 0) made.rows = size.ws_row;
  return made;
}

void TerminalScreen::Show(std::vector<ScreenLine> lines) {
  next_ = std::move(lines);
  has_next_ = true;
  Send();
}

void TerminalScreen::Send() {
  for (;;) {
    if (unsent_.empty()) {
      if (!std::exchange(has_next_, false)) return;
      unsent_ = ScreenUpdate(shown_, next_);
      shown_ = std::move(next_);
      if (unsent_.empty()) return;
    }
    const ssize_t n = ::write(output_, unsent_.data(), unsent_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      // A slow terminal gets the rest when it can take it: keys are answered
      // meanwhile.
      is_broken_ = errno != EAGAIN;
      return;
    }
    unsent_.erase(0, static_cast<size_t>(n));
  }
}

}  // namespace profd
