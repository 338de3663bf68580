// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/profile/wait_reason.h"

namespace profd {

// The word in its memory that a thread waits for, and those behind it.
using LockWords = std::array<uint32_t, 6>;

// A thread as it was when all were dumped; its stacks are samples.
struct DumpedThread {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t own_tid = 0;  // in its own pid namespace; 0: not known
  std::string comm;      // any bytes but NUL, at most 15
  // It was on a CPU; then nothing of what follows is known.
  bool is_running = false;
  bool has_user_code = false;
  WaitReason reason;
  // Nanoseconds since it ran last, or since it wants to; it may be less.
  std::optional<uint64_t> waited_ns;
  std::array<uint64_t, 3> arguments = {};  // of its system call
  // At the first argument, where the call is futex and they could be read.
  std::optional<LockWords> lock_words;
};

}  // namespace profd
