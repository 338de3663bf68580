// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/capture/sampler.h"
#include "ksym/base/result.h"

namespace profd {

// Runs a program that walks over all threads, and takes the records that it
// writes. Costs some microseconds per thread, and what `take` does.
ksym::Status ReadThreadRecords(int program_fd,
                               const Sampler::RecordTaker& take);

}  // namespace profd
