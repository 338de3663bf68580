// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ksym/base/result.h"
#include "ksym/elf/debug_file.h"
#include "ksym/tools/address_source.h"
#include "ksym/tools/symbolize_options.h"

namespace ksym {

// The code of a running process; `fetch` may be empty. kNotFound: there is no
// such process; kPermission: it is not ours to read.
Result<std::unique_ptr<AddressSource>> OpenProcess(
    const SymbolizeOptions& options, DebugFileSource fetch);

}  // namespace ksym
