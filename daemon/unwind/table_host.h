// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "daemon/base/steady_clock.h"
#include "daemon/files/deferred_opener.h"
#include "ksym/base/result.h"
#include "ksym/base/trust.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"

namespace profd {

// The questions that the unwind tables have for the machine that they are on.
// Tests answer it themselves; nothing here waits.
struct TableHost {
  // Holds the file that a process maps. IsRemote(): that might wait.
  std::function<ksym::Result<ksym::OpenedFile>(uint32_t pid,
                                               const ksym::Mapping& mapping)>
      hold;
  // The mount namespace of a process; 0: it is gone, or not ours to see.
  std::function<uint64_t(uint32_t pid)> mounts_of;
  // No user but root and this process's own could have made the file.
  std::function<bool(const ksym::FileOwner& owner)> is_trusted;
  SteadyNow now;

  // The machine itself. Files are held by the opener; null: at once, wherever
  // they are.
  static TableHost OfThisMachine(std::shared_ptr<DeferredOpener> opener);
};

}  // namespace profd
