// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ksym/base/result.h"
#include "ksym/fetch/debuginfod_client.h"
#include "ksym/tools/symbolize_options.h"

namespace profd {

// What ksym-symbolize does with --profile: reads the raw profile, names its
// addresses with files that are found by build-id, and writes it to standard
// output in `options.format`. What is missing goes to standard error, a line
// per file. `client` is asked for debug files last; null: nobody is.
ksym::Status NameRawProfile(const ksym::SymbolizeOptions& options,
                            ksym::DebuginfodClient* client);

}  // namespace profd
