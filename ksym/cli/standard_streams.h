// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ksym/base/result.h"

namespace ksym {

// Puts /dev/null in the place of standard descriptors that are closed, so
// that no file of ours gets their numbers and with them what is meant for
// stdout or stderr. A closed stdout becomes one that cannot be written. Call
// first of all.
Status ReserveStandardStreams();

}  // namespace ksym
