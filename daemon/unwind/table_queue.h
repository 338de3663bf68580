// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/steady_clock.h"
#include "daemon/unwind/unwind_pieces.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/runtime/file_runtimes.h"
#include "ksym/unwind/unwind_table.h"

namespace profd {

// The result of a file.
struct BuiltTable {
  std::shared_ptr<const ksym::UnwindTable> rows;  // null: it can have none
  std::vector<ksym::ElfSegment> code;             // the executable segments
  std::vector<UnwindPiece> pieces;                // of `rows`
  std::optional<uint32_t> owner = {};             // user; of a file
  // The bound that is why it can have none; else empty.
  std::string refusal = {};
  ksym::FileRuntimes runtimes = {};  // that the file holds
};

// Builds unwind tables somewhere else, those that are wanted most first.
class TableQueue {
 public:
  struct Job {
    uint64_t id = 0;  // the caller's
    // The larger the sooner; of equals the smaller file. 0: when nobody else
    // wants the CPU.
    uint64_t wanted = 0;
    ksym::ByteSource source;
  };
  struct Result {
    uint64_t id = 0;
    BuiltTable table;
  };
  virtual ~TableQueue() = default;

  virtual void Add(Job job) = 0;
  // Sooner than it was asked for; nothing if it was begun.
  virtual void Want(uint64_t id, uint64_t wanted) = 0;
  // Gives the tables that are ready, in that order. Does not wait.
  virtual std::vector<Result> Take() = 0;
  // Waits until there is something to take or nothing left to do, for that
  // long at the most.
  virtual void Wait(SteadyClock::duration time) = 0;
  // Time that was spent on building.
  virtual SteadyClock::duration busy() const = 0;
};

}  // namespace profd
