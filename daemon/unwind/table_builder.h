// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/steady_clock.h"
#include "daemon/unwind/table_queue.h"
#include "ksym/elf/byte_source.h"

namespace profd {

// Builds unwind tables in a thread of its own, which begins with the first
// file: one of 50 MB takes 60 ms, in which whoever empties the ring cannot
// wait. All functions are for one thread, the caller's.
class TableBuilder final : public TableQueue {
 public:
  // Called in the builder's thread.
  using Build = std::function<BuiltTable(const ksym::ByteSource& source)>;
  // `max_bytes`: of tables that were not taken yet; with more it waits.
  explicit TableBuilder(Build build, size_t max_bytes = size_t{32} << 20);
  // Waits for the table that is being built, drops the others.
  ~TableBuilder() override;
  TableBuilder(const TableBuilder&) = delete;
  TableBuilder& operator=(const TableBuilder&) = delete;

  void Add(Job job) override;
  void Want(uint64_t id, uint64_t wanted) override;
  std::vector<Result> Take() override;
  void Wait(SteadyClock::duration time) override;
  SteadyClock::duration busy() const override;

 private:
  void Run();
  bool HasWork() const;
  Job TakeJob();

  const Build build_;
  const size_t max_bytes_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<Job> jobs_;
  std::vector<Result> results_;
  size_t result_bytes_ = 0;
  bool is_building_ = false;
  bool stops_ = false;
  SteadyClock::duration busy_ = {};

  std::thread thread_;  // after all that it uses
};

// The builder's work: tables from the directory, where those that are not there
// are kept for the next run; without one (empty) they are built.
TableBuilder::Build BuildTablesWith(const std::string& cache_directory);

}  // namespace profd
