// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/service/config.h"

namespace profd {

// The capture that a configuration asks for. It calls nobody back yet, and has
// no opener.
CaptureOptions MakeCaptureOptions(const ServiceConfig& config);

}  // namespace profd
