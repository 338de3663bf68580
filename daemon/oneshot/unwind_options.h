// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/capture/capture.h"

namespace profd {

// Where unwind tables and debug data are kept from run to run:
// $XDG_CACHE_HOME/ksym or
// ~/.cache/ksym, whose parent is made. Empty if there is no such place.
std::string CacheDirectory();

// The options that say how user stacks are walked.
class UnwindOptions {
 public:
  // Borrows this object until the command line is parsed.
  void AddTo(CLI::App& app);
  // Nothing, or what is wrong with the arguments.
  std::optional<std::string> Apply(CaptureOptions& capture) const;

 private:
  std::string unwind_ = "auto";
  uint64_t memory_mb_ = 256;
  std::string program_ = "auto";
};

}  // namespace profd
