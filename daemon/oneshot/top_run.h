// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/oneshot/options.h"
#include "daemon/top/top_state.h"

namespace profd {

// Everything that `ksym-profile top` was asked for.
struct TopOptions {
  ProfileOptions profile;  // what is sampled
  TopState state;          // what is shown at first
  std::chrono::milliseconds interval{1000};
  // So many tables as text on stdout, then the end; none: a terminal.
  std::optional<uint64_t> batch;
};

// Shows the table until the user ends it. Returns the exit status; says on
// stderr what went wrong, and when the terminal is as it was, what was lost.
int RunTop(TopOptions options);

}  // namespace profd
