#pragma once

#include <functional>

#include "ksym/base/result.h"
#include "ksym/elf/debuginfod_client.h"
#include "ksym/tools/symbolize_options.h"

namespace ksym {

// Does what --profile asks for, which needs more than libksym; the client may
// be null.
using ProfileNamer =
    std::function<Status(const SymbolizeOptions& options, DebuginfodClient*)>;

// ksym-symbolize from its arguments to its exit status; see ksym-symbolize(1).
int RunSymbolizeProgram(int argc, char** argv,
                        const ProfileNamer& name_profile);

}  // namespace ksym
