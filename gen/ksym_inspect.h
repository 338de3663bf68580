// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "gen/ksym_options.h"
#include "ksym/base/result.h"

namespace gen {

// Does --dump, --lookup, --name or --stats on options.input, which may be a
// blob, a compact map or a listing. The text goes to `write` in pieces.
//   --dump    one symbol per line: address, type, name, module if any; a
//             listing that gen_ksym reads again
//   --lookup  "ADDR NAME+0xOFFSET/0xSIZE [MODULE]", or "ADDR ?"
//   --name    "NAME ADDR", one line per symbol of that name, or "NAME ?"
//   --stats   "PART BYTES", one line per part of the file
ksym::Status InspectKsym(const KsymOptions& options,
                         const std::function<void(std::string_view)>& write);

}  // namespace gen
