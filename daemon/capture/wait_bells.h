// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/capture/ring_reader.h"
#include "ksym/base/result.h"

namespace profd {

// Ring buffers of the CPUs into which programs write nothing but that there is
// something, so that the kernel sends the CPU an interrupt. Each takes 8 bytes.
class WaitBells {
 public:
  WaitBells() = default;
  // One for each possible CPU, in that map of maps. A grace period for 128 of
  // them, or for each where the kernel has no batches for that.
  static ksym::Result<WaitBells> Make(int map_fd);

  // Makes room. Costs some nanoseconds for each CPU.
  void Empty();

 private:
  std::vector<RingReader> bells_;
};

}  // namespace profd
