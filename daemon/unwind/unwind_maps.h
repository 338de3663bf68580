// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "bpf/unwind_abi.h"
#include "daemon/unwind/unwind_pieces.h"
#include "ksym/base/result.h"
#include "ksym/process/process_image.h"

namespace profd {

// Where the sampler reads tables and lists of mappings. It may run meanwhile: a
// list is published when it is complete, and what is taken back is not written
// again before Recycle(). Not thread-safe.
class UnwindMaps {
 public:
  struct Place {
    uint32_t shard = 0;
    uint32_t first = 0;
    uint32_t count = 0;
  };
  virtual ~UnwindMaps() = default;

  // How many slots there may be in all.
  virtual uint64_t max_slots() const = 0;
  // The entries of one list with its header, at the most.
  virtual uint32_t max_entries() const = 0;

  // Copies the piece into a shard. Nothing: there is no room.
  virtual ksym::Result<std::optional<Place>> Add(const UnwindPiece& piece) = 0;
  virtual void FreeSlots(const Place& place) = 0;
  // Whether Add() of pieces of so many slots each waits for nothing now. False:
  // room for them is being made elsewhere, which takes a grace period; ask
  // again. True also where there can be no more room.
  virtual bool PrepareRoom(std::span<const uint32_t> pieces) = 0;

  struct List {
    std::span<const unwind_mapping> mappings;
    bool has_runtime = false;    // the process maps an interpreter
    uint32_t code_runtimes = 0;  // UNWIND_CODE_..., that it maps; below 2^8
  };
  // Replaces the process's list. False: there is no room.
  virtual ksym::Result<bool> Publish(const ksym::ProcessId& process,
                                     const List& list) = 0;
  virtual void Withdraw(const ksym::ProcessId& process) = 0;

  // After a grace period that began after the last call of the others.
  virtual void Recycle() = 0;
};

}  // namespace profd
