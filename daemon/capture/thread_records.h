// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <span>

#include "daemon/capture/sampler.h"
#include "ksym/base/result.h"

namespace profd {

// Runs a program that walks over all threads, and takes the records that it
// writes. Costs some microseconds per thread, and what `take` does.
ksym::Status ReadThreadRecords(int program_fd,
                               const Sampler::RecordTaker& take);

// Reads the next bytes of a walk, as read(2) does with its results and errno.
using WalkReader = std::function<ssize_t(std::span<std::byte>)>;

// Takes the records of a walk that has begun.
ksym::Status TakeThreadRecords(const WalkReader& read,
                               const Sampler::RecordTaker& take);

}  // namespace profd
