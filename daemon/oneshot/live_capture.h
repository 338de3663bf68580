// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/capture/capture.h"
#include "daemon/oneshot/options.h"
#include "daemon/oneshot/part_names.h"
#include "daemon/oneshot/progress.h"
#include "ksym/base/result.h"

namespace profd {

// Steps that a capture and a dump have in common.

// Gives the options an opener with a child process of its own, or says on
// stderr that there can be none. It forks: before there are threads and much
// memory.
void StartOpener(ProfileOptions& options);

// A capture as the options ask for, not yet enabled. `names` gets the processes
// as they are seen, and must live longer.
ksym::Result<std::unique_ptr<Capture>> StartCapture(CaptureOptions& options,
                                                    PartNames& names);

// When sampling has begun: what is missing, and which of the ids that were
// chosen are not there.
void SayStartWarnings(const CaptureMetadata& metadata,
                      const std::vector<uint32_t>& missing_ids,
                      PartNames& names, Progress& progress);

// Ends the program if a thread of the capture, which may be null, or of the
// names is at something that may take long: their destructors would wait for
// it. When the report is written.
void ExitIfBusy(int status, PartNames& names, const Capture* capture);

}  // namespace profd
