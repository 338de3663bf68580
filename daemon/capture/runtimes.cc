// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/runtimes.h"

namespace profd {

std::optional<Runtimes> ParseRuntimes(std::string_view word) {
  if (word == "auto") return Runtimes::kAuto;
  if (word == "none") return Runtimes::kNone;
  if (word == "python") return Runtimes::kPython;
  if (word == "java") return Runtimes::kJava;
  if (word == "node") return Runtimes::kNode;
  return std::nullopt;
}

}  // namespace profd
