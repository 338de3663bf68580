// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/unwind/unwind_tables.h"
#include "ksym/base/file.h"
#include "tests/daemon/unwind/fake_maps.h"

namespace profd {

using ksym::ProcessId;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr uint64_t kCodeBytes = 1 << 16;
inline constexpr uint32_t kRowsOfAFile = 900;
inline constexpr uint64_t kSlotsOfAFile = 1000;  // with its index, about

// Makes tables of the same size when it is told to.
class FakeQueue final : public TableQueue {
 public:
  void Add(Job job) override {
    asked[job.id] = job.wanted;
    ++added;
  }
  void Want(uint64_t id, uint64_t wanted) override {
    const auto job = asked.find(id);
    if (job != asked.end()) job->second = std::max(job->second, wanted);
  }
  std::vector<Result> Take() override {
    std::vector<Result> results;
    if (is_busy) return results;
    for (const auto& [id, wanted] : std::exchange(asked, {})) {
      results.push_back({.id = id, .table = Table()});
    }
    return results;
  }
  void Wait(SteadyClock::duration /*time*/) override {
    ++waits;
    is_busy = false;
  }
  SteadyClock::duration busy() const override { return {}; }

  BuiltTable Table() const {
    if (is_refusing) return {.rows = nullptr, .code = {}, .pieces = {}};
    auto table = std::make_shared<ksym::UnwindTable>();
    table->size = std::max<uint64_t>(kCodeBytes, uint64_t{16} * rows);
    for (uint32_t i = 0; i < rows; ++i) {
      table->rows.push_back({.pc = 16 * i, .cfa_offset = 1});
    }
    ksym::ElfSegment code;
    code.file_size = kCodeBytes;
    code.executable = true;
    return {.rows = std::move(table),
            .code = {code},
            .pieces = {},
            .runtimes = runtimes};
  }

  std::map<uint64_t, uint64_t> asked;
  int added = 0;
  mutable int waits = 0;
  bool is_busy = false;
  bool is_refusing = false;
  uint32_t rows = kRowsOfAFile;
  ksym::FileRuntimes runtimes;
};

// Opens a file when it is told to.
class FakeOpener final : public DeferredOpener {
 public:
  ksym::Result<ksym::OpenedFile> HoldLocal(
      uint32_t /*pid*/, const ksym::Mapping& /*mapping*/) override {
    return ksym::FailErrno(EREMOTE, "not here");
  }
  uint64_t BeginOpening(uint32_t pid,
                        const ksym::Mapping& /*mapping*/) override {
    pids.push_back(pid);
    return pids.size();
  }
  std::optional<ksym::Result<ksym::OpenedFile>> TakeOpened(
      uint64_t id) override {
    const auto at = done.find(id);
    if (at == done.end()) return std::nullopt;
    auto result = std::move(at->second);
    done.erase(at);
    return result;
  }
  void WaitForOpened(milliseconds /*time*/) const override { ++waits; }
  void Sweep() override { ++sweeps; }

  std::vector<uint32_t> pids;  // that a file was opened through; ids from 1
  std::map<uint64_t, ksym::Result<ksym::OpenedFile>> done;
  mutable int waits = 0;
  int sweeps = 0;
};

class TablePolicyFixture : public ::testing::Test {
 protected:
  TablePolicyFixture() { Make({}); }

  void Make(const TableBounds& bounds) {
    auto maps = std::make_unique<FakeMaps>();
    auto queue = std::make_unique<FakeQueue>();
    maps_ = maps.get();
    queue_ = queue.get();
    tables_.emplace(UnwindTables::Parts{
        .maps = std::move(maps),
        .queue = std::move(queue),
        .opener = opener_,
        .meanwhile = [this] { now_ += step_; },
        .host = TableHost{
            .hold =
                [this](uint32_t pid, const ksym::Mapping& mapping) {
                  return Hold(pid, mapping);
                },
            .mounts_of =
                [this](uint32_t pid) {
                  return mounts_.contains(pid) ? mounts_[pid] : 1;
                },
            .is_trusted =
                [](const ksym::FileOwner& owner) { return owner.user == 0; },
            .now = [this] { return now_; }},
        .bounds = bounds});
  }

  ksym::Result<ksym::OpenedFile> Hold(uint32_t pid,
                                      const ksym::Mapping& mapping) {
    ++holds_;
    if (remote_.contains(mapping.inode)) {
      return ksym::FailErrno(EREMOTE, "not here");
    }
    if (missing_.contains(mapping.inode) || gone_.contains(pid)) {
      return ksym::Fail(ksym::ErrorCode::kNotFound, "gone");
    }
    return FileOf(mapping.inode);
  }

  ksym::OpenedFile FileOf(uint64_t inode) {
    ksym::OpenedFile file;
    const auto path = paths_.find(inode);
    file.fd = ksym::UniqueFd(
        ::open(path == paths_.end() ? "/dev/null" : path->second.c_str(),
               O_RDONLY | O_CLOEXEC));
    file.size =
        path == paths_.end() ? 1 : std::filesystem::file_size(path->second);
    file.mtime_ns = modified_[inode];
    file.is_only_one = !owner_of_ambiguous_.contains(inode);
    if (!file.is_only_one) {
      file.owner = {.user = owner_of_ambiguous_[inode], .mode = S_IRUSR};
    }
    return file;
  }

  static ksym::Mapping MappingOf(uint64_t inode) {
    ksym::Mapping mapping;
    mapping.start = ksym::Address{0x10000 * inode};
    mapping.end = mapping.start + kCodeBytes;
    mapping.device_major = 8;
    mapping.inode = inode;
    mapping.path = "/lib/" + std::to_string(inode);
    return mapping;
  }

  // A process that is sampled and has those mappings.
  ProcessId StartWith(uint32_t pid, std::vector<ksym::Mapping> mappings) {
    const ProcessId id = IdOf(pid);
    ksym::ProcessImage image;
    image.id = id;
    image.mappings = std::move(mappings);
    tables_->Update(image);
    tables_->NoteSample(id, now_);
    return id;
  }
  // One that maps those files.
  ProcessId Start(uint32_t pid, const std::vector<uint64_t>& inodes) {
    std::vector<ksym::Mapping> mappings;
    for (const uint64_t inode : inodes) mappings.push_back(MappingOf(inode));
    return StartWith(pid, std::move(mappings));
  }
  static ProcessId IdOf(uint32_t pid) {
    return {.pid = pid, .exec_count = 0, .start_ns = pid};
  }

  // What the capture does between two drains; what stacks wait for is asked
  // for.
  void Pass(int times = 1) {
    for (int i = 0; i < times; ++i) {
      now_ += milliseconds(100);
      tables_->Build(seconds(1), now_ + seconds(10));
      tables_->Build(seconds(1), now_ + seconds(10));
      tables_->Recycle();
    }
  }

  // The mappings of its list that have a table; nothing: it has no list.
  std::optional<size_t> TablesOf(const ProcessId& id) const {
    const auto list = maps_->lists.find(id);
    if (list == maps_->lists.end()) return std::nullopt;
    return static_cast<size_t>(
        std::ranges::count_if(list->second, [](const unwind_mapping& mapping) {
          return mapping.shard != UNWIND_NO_TABLE &&
                 mapping.shard != UNWIND_PENDING;
        }));
  }

  // Whether a copied stack gets rows; nothing: it is to wait for them.
  std::optional<bool> HasRows(uint32_t pid, const ksym::Mapping& mapping) {
    const auto code = tables_->CodeOf(pid, mapping);
    if (!code) return std::nullopt;
    return code->kind == ksym::CodeAt::Kind::kTable;
  }

  SteadyClock::time_point now_{seconds(1000)};
  SteadyClock::duration step_ = {};  // that passes between two steps of Build()
  std::set<uint64_t> missing_;       // inodes
  std::set<uint64_t> remote_;        // inodes
  std::set<uint32_t> gone_;          // pids
  std::map<uint64_t, int64_t> modified_;
  std::map<uint64_t, std::string> paths_;  // of files that are read
  // Files whose numbers another one may have, as in an overlay.
  std::map<uint64_t, uint32_t> owner_of_ambiguous_;
  std::map<uint32_t, uint64_t> mounts_;  // by pid
  int holds_ = 0;
  FakeMaps* maps_ = nullptr;
  FakeQueue* queue_ = nullptr;
  std::shared_ptr<FakeOpener> opener_ = std::make_shared<FakeOpener>();
  std::optional<UnwindTables> tables_;
};

}  // namespace profd
