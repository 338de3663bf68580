// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// The signals of a program that has the terminal, as events to wait for.
class TopSignals {
 public:
  // Blocks them for this thread; call before any other thread starts. Those
  // that were ignored when the program began stay so, unless they end it.
  static ksym::Result<TopSignals> Install();

  // Can be read when there are some.
  int fd() const { return fd_.get(); }
  struct Came {
    bool ends = false;     // SIGINT, SIGTERM, SIGQUIT, SIGHUP
    bool stops = false;    // SIGTSTP
    bool goes_on = false;  // SIGCONT
    bool resizes = false;  // SIGWINCH
  };
  // Those since the last call.
  Came Take();

 private:
  explicit TopSignals(ksym::UniqueFd fd) : fd_(std::move(fd)) {}
  ksym::UniqueFd fd_;
};

}  // namespace profd
