// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "ksym/elf/debug_file.h"
#include "ksym/symbol_file.h"
#include "ksym/symbolizer.h"

namespace ksym {

// Debug files are looked for where the stripped file is: in the process's own
// root as long as it lives. Those that this machine keeps by build-id serve a
// container's files as well; no other path that a process's file names is
// opened outside its root. The maker of that root chose what is in it, so the
// owners of debug files decide (OnlyTrusted).
// `fetch`, which may be empty, is asked for what is not found. The finder
// borrows what the options refer to, and nothing of the file.
DebugFileFinder MakeDebugFileFinder(
    const SymbolFile& file, const SymbolizerOptions& options,
    DebugFileSource fetch, std::shared_ptr<DebugFileChecksums> checksums);

// The same finder, which keeps in `refusal` why the last file that was not
// trusted was refused. Borrows it.
DebugFileFinder WatchRefusals(DebugFileFinder finder, std::string& refusal);

}  // namespace ksym
