// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "ksym/base/result.h"
#include "ksym/fetch/debuginfod_client.h"
#include "ksym/tools/symbolize_options.h"

namespace ksym {

// What --profile asks for, which needs more than libksym.
struct ProfileNaming {
  std::string formats;  // that it writes: "folded|json|..."
  // Reads, names and writes; the client may be null.
  std::function<Status(const SymbolizeOptions& options, DebuginfodClient*)> run;
};

// ksym-symbolize from its arguments to its exit status; see ksym-symbolize(1).
int RunSymbolizeProgram(int argc, char** argv, const ProfileNaming& profiles);

}  // namespace ksym
