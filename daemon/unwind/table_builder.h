// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/unwind/unwind_pieces.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/elf_image.h"
#include "ksym/runtime/cpython/interpreter.h"
#include "ksym/unwind/unwind_table.h"

namespace profd {

// What the thread makes of a file.
struct BuiltTable {
  std::shared_ptr<const ksym::UnwindTable> rows;  // null: it can have none
  std::vector<ksym::ElfSegment> code;             // the executable segments
  std::vector<UnwindPiece> pieces;                // of `rows`
  std::optional<uint32_t> owner = {};             // user; of a file
  // The bound that is why it can have none; else empty.
  std::string refusal = {};
  // The interpreter that the file holds, or why its frames are not known.
  std::optional<ksym::CpythonInterpreter> cpython = {};
  std::string cpython_refusal = {};
};

// Builds call-frame tables in a thread of its own, which begins with the first
// file: one of 50 MB takes 60 ms, in which whoever empties the ring cannot
// wait. All functions are for one thread, the caller's.
class TableBuilder {
 public:
  using Clock = std::chrono::steady_clock;

  // Called in the builder's thread.
  using Build = std::function<BuiltTable(const ksym::ByteSource& source)>;
  // `most_bytes`: of tables that were not taken yet; with more it waits.
  explicit TableBuilder(Build build, size_t most_bytes = size_t{32} << 20);
  // Waits for the table that is being built, drops the others.
  ~TableBuilder();
  TableBuilder(const TableBuilder&) = delete;
  TableBuilder& operator=(const TableBuilder&) = delete;

  struct Job {
    uint64_t id = 0;  // the caller's
    // The larger the sooner; of equals the smaller file. 0: when nobody else
    // wants the CPU.
    uint64_t wanted = 0;
    ksym::ByteSource source;
  };
  void Add(Job job);
  // Sooner than it was asked for; nothing if it was begun.
  void Want(uint64_t id, uint64_t wanted);

  struct Result {
    uint64_t id = 0;
    BuiltTable table;
  };
  // What is ready, in that order. Does not wait.
  std::vector<Result> Take();
  // Waits until there is something to take or nothing left to do, for that
  // long at the most.
  void Wait(Clock::duration time);

  // Time that the thread was busy.
  Clock::duration busy() const;

 private:
  void Run();
  bool HasWork() const;
  Job TakeJob();

  const Build build_;
  const size_t most_bytes_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<Job> jobs_;
  std::vector<Result> results_;
  size_t result_bytes_ = 0;
  bool is_building_ = false;
  bool stops_ = false;
  Clock::duration busy_ = {};

  std::thread thread_;  // after all that it uses
};

// The builder's work: tables from the directory, where those that are not there
// are kept for the next run; without one (empty) they are built.
TableBuilder::Build BuildTablesWith(const std::string& cache_directory);

}  // namespace profd
