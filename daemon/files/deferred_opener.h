// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "ksym/base/result.h"
#include "ksym/process/mapped_file.h"
#include "ksym/process/process_image.h"

namespace profd {

// Opens files of processes for one who never waits: local ones at once, those
// of a file system that may not answer some time after they were asked for.
// HoldLocal() and Sweep() are thread-safe, the others for one thread.
class DeferredOpener {
 public:
  DeferredOpener() = default;
  DeferredOpener(const DeferredOpener&) = delete;
  DeferredOpener& operator=(const DeferredOpener&) = delete;
  virtual ~DeferredOpener() = default;

  // IsRemote(): the file is not local, and nothing was asked.
  virtual ksym::Result<ksym::OpenedFile> HoldLocal(
      uint32_t pid, const ksym::Mapping& mapping) = 0;
  // Has a file held and copied. Returns an id for TakeOpened(), which gives
  // nothing until it is done, and then the file once.
  virtual uint64_t BeginOpening(uint32_t pid, const ksym::Mapping& mapping) = 0;
  virtual std::optional<ksym::Result<ksym::OpenedFile>> TakeOpened(
      uint64_t id) = 0;
  // Waits until there may be something to take, for that long at the most.
  virtual void WaitForOpened(std::chrono::milliseconds time) const = 0;
  // Forgets what is no longer true of the file systems; now and then.
  virtual void Sweep() = 0;
};

}  // namespace profd
