// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ksym/base/result.h"
#include "ksym/symbolizer.h"

namespace ksym {

// Why the addresses in a file have no names, where it could not be opened.
Unresolved ReasonOfOpening(const Error& error);
// The same where it was opened, and its symbols could not be read.
Unresolved ReasonOfLoading(const Error& error);

}  // namespace ksym
