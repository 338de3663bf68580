// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "daemon/oneshot/common_options.h"
#include "daemon/oneshot/options.h"
#include "daemon/oneshot/runtime_options.h"
#include "daemon/oneshot/unwind_options.h"

namespace profd {

// The texts of the options that need more than CLI11 can check.
struct RawOptions {
  std::string duration;
  std::string pids;
  std::string tids;
  std::string cpus;
  std::string format;
  std::string by = "comm";
  std::string stack_map = "auto";
  std::string own_priority = "auto";
  uint64_t frequency_hz = 0;
  uint64_t count_period = 0;
  uint64_t stack_entries = 0;
  uint64_t hash_entries = 0;
  uint32_t max_stack_depth = 127;
  bool user_only = false;
  bool kernel_only = false;
  bool off_cpu = false;
  bool wakers = false;
  bool wall = false;
  std::string wait_program = "auto";
  bool folded = false;
  bool no_demangle = false;
  UnwindOptions unwind;
  RuntimeOptions runtimes;
  double symbol_timeout_seconds = 10;
  uint64_t symbol_cache_mib = 256;
};

// Makes options of what was given: each value's range, and what contradicts
// what. Throws UsageError.
void DecideOptions(const CLI::App& app, const RawOptions& raw,
                   ProfileOptions& options);

}  // namespace profd
