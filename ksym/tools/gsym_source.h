// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ksym/base/result.h"
#include "ksym/tools/address_source.h"
#include "ksym/tools/symbolize_options.h"

namespace ksym {

// Functions, lines and inlined calls of a GSYM file, which is mapped. Fails
// when it cannot be opened or is none.
Result<std::unique_ptr<AddressSource>> OpenGsymFile(
    const SymbolizeOptions& options);

// The same of an ELF file, whose debug data are converted in memory. Where they
// have no function, `symbols` answers.
Result<std::unique_ptr<AddressSource>> OpenConvertedFile(
    const SymbolizeOptions& options, const ByteSource& source,
    const DebugFileFinder& finder, std::unique_ptr<AddressSource> symbols);

}  // namespace ksym
