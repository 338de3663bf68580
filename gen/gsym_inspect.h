// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "gen/gsym_options.h"
#include "ksym/base/result.h"

namespace gen {

// Does --dump or --stats on options.input. The text goes to `write` in pieces.
//   --dump   the header, and per function its lines and inlined calls
//   --stats  "PART NUMBER", one line per part of the file
ksym::Status InspectGsym(const GsymOptions& options,
                         const std::function<void(std::string_view)>& write);

// Does --verify: looks up every row's address and every end of an inlined call
// of options.program's debug data in options.input, and compares function,
// inlined calls, files and lines. Prints what differs, the first kMaxShown
// times, and a summary. True when nothing does.
inline constexpr size_t kMaxShownDifferences = 20;
ksym::Result<bool> VerifyGsym(
    const GsymOptions& options,
    const std::function<void(std::string_view)>& write);

}  // namespace gen
