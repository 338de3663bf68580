// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "daemon/oneshot/options.h"

namespace profd {

// The options that say what is taken and shown of language runtimes.
class RuntimeOptions {
 public:
  // Borrows this object until the command line is parsed.
  void AddTo(CLI::App& app);
  // Nothing, or what is wrong with the arguments.
  std::optional<std::string> Apply(ProfileOptions& options) const;

 private:
  std::string runtimes_ = "auto";
  std::string frames_ = "merged";
};

}  // namespace profd
