// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/history/tables.h"
#include "daemon/profile/profile.h"

namespace profd::history {

// Adds a part to what a profile of many parts says of its capture: where it was
// made, as the last part says; how long it took; its warnings, each once and
// not more than some. Its start and its kinds are the caller's.
void AddCaptureFacts(const Tables& tables, const Part& part,
                     CaptureMetadata& metadata);

}  // namespace profd::history
