// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/unwind/kernel_unwind_maps.h"
#include "daemon/unwind/table_builder.h"
#include "daemon/unwind/unwind_tables.h"
#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"
#include "ksym/unwind/unwind_table.h"

namespace profd {

// A shard has room for two tables like this one's, and not for three.
inline constexpr const char* kLibrary =
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
// A process is not sampled for so long: its tables may go.
inline constexpr std::chrono::milliseconds kIdle(2100);

// An array whose memory can be mapped.
inline ksym::UniqueFd CreateArray(uint32_t value_bytes, uint32_t entries) {
  bpf_map_create_opts options = {};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  return ksym::UniqueFd(bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_test", 4,
                                       value_bytes, entries, &options));
}

inline ksym::UniqueFd CreateProcesses() {
  return ksym::UniqueFd(bpf_map_create(BPF_MAP_TYPE_HASH, "unwind_test",
                                       sizeof(unwind_process), 8, 16, nullptr));
}

inline ksym::UniqueFd CreateShards(uint32_t entries) {
  const ksym::UniqueFd inner = CreateArray(UNWIND_SHARD_BYTES, 1);
  bpf_map_create_opts options = {};
  options.sz = sizeof(options);
  options.inner_map_fd = static_cast<uint32_t>(inner.get());
  return ksym::UniqueFd(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS,
                                       "unwind_test", 4, 4, entries, &options));
}

// The tables of processes that map copies of one library, in maps of the
// kernel.
class UnwindTablesTest : public ::testing::Test {
 protected:
  static constexpr UnwindMapSizes kSizes = {
      .processes = 16, .mappings = 64, .shards = 1};

  void SetUp() override {
    if (!std::filesystem::exists(kLibrary))
      GTEST_SKIP() << "needs " << kLibrary;
    processes_ = CreateProcesses();
    if (!processes_.valid()) GTEST_SKIP() << "needs root: no BPF maps";
    mappings_ = CreateArray(sizeof(unwind_mapping), kSizes.mappings);
    shards_ = CreateShards(kSizes.shards);
    ASSERT_TRUE(mappings_.valid() && shards_.valid());
    std::string path = ::testing::TempDir() + "unwind_tables_XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    directory_ = path;
    const UnwindMapFds fds = {.processes = processes_.get(),
                              .mappings = mappings_.get(),
                              .shards = shards_.get()};
    tables_.emplace(UnwindTables::Parts{
        .maps = std::make_unique<KernelUnwindMaps>(fds, kSizes),
        .queue = std::make_unique<TableBuilder>(BuildTablesWith("")),
        .meanwhile = [this] { ++turns_; }});
    LoadLibrary();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void LoadLibrary() {
    auto fd = ksym::OpenForRead(kLibrary);
    ASSERT_TRUE(fd);
    struct stat status = {};
    ASSERT_EQ(::fstat(fd->get(), &status), 0);
    const auto source = ksym::ByteSource::OfFile(
        std::move(*fd), static_cast<uint64_t>(status.st_size));
    const auto image = ksym::ElfImage::Parse(source);
    ASSERT_TRUE(image);
    for (const ksym::ElfSegment& segment : image->segments()) {
      if (segment.executable) code_ = segment;
    }
    auto table = BuildUnwindTable(source, *image);
    ASSERT_TRUE(table);
    table_ = std::move(*table);
    ASSERT_GT(3 * table_.rows.size(), size_t{UNWIND_SHARD_SLOTS});
    ASSERT_LT(2 * table_.rows.size(), size_t{UNWIND_SHARD_SLOTS} * 15 / 16);
  }

  // A process that maps its own copy of the library.
  ksym::ProcessId Start(uint64_t number) {
    const std::string path = directory_ + "/" + std::to_string(number);
    std::filesystem::copy_file(kLibrary, path);
    struct stat status = {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    ksym::Mapping mapping;
    mapping.start = ksym::Address{0x7f00'0000'0000 + (number << 32)};
    mapping.end = mapping.start + code_.file_size;
    mapping.file_offset = code_.file_offset;
    mapping.device_major = major(status.st_dev);
    mapping.device_minor = minor(status.st_dev);
    mapping.inode = status.st_ino;
    mapping.path = path;
    const auto pid = static_cast<uint32_t>(::getpid());
    const ksym::ProcessId id = {
        .pid = pid, .exec_count = 0, .start_ns = number};
    tables_->Update({.id = id, .mappings = {mapping}});
    tables_->NoteSample(id, SteadyClock::now());
    mappings_of_[number] = mapping;
    return id;
  }

  // What the capture does between two drains, while these are sampled.
  void Poll(const std::vector<ksym::ProcessId>& sampled, int times = 1) {
    for (int i = 0; i < times; ++i) {
      // Without a table the sampler copies the stack, which is walked.
      for (const ksym::ProcessId& id : sampled) {
        if (ListOf(id) != Lists::kRight) {
          tables_->CodeOf(id.pid, mappings_of_[id.start_ns]);
        }
      }
      const auto now = SteadyClock::now();
      for (const ksym::ProcessId& id : sampled) tables_->NoteSample(id, now);
      const auto deadline = now + std::chrono::seconds(20);
      tables_->Build(std::chrono::seconds(20), deadline);
      while (tables_->IsBuilding()) {
        tables_->WaitForTable(std::chrono::seconds(1));
        tables_->Build(std::chrono::seconds(20), deadline);
      }
      tables_->Recycle();
    }
  }

  // The mapping of a file that is nowhere.
  ksym::Mapping Missing() const {
    ksym::Mapping mapping = mappings_of_.begin()->second;
    mapping.start = ksym::Address{0x7e00'0000'0000};
    mapping.end = mapping.start + code_.file_size;
    mapping.inode += 1'000'000'000;
    mapping.path = "/nowhere/at/all";
    return mapping;
  }

  // Bytes of code for which the sampler would find tables.
  uint64_t CoveredBy(const ksym::ProcessId& id) const {
    uint64_t covered = 0;
    for (const unwind_mapping& mapping : ListedMappings(id)) {
      if (HasTable(mapping)) covered += mapping.size;
    }
    return covered;
  }

  enum class Lists { kNone, kWithoutTable, kRight, kWrong };

  // What the sampler would find for the process.
  Lists ListOf(const ksym::ProcessId& id) const {
    if (!HasList(id)) return Lists::kNone;
    uint64_t covered = 0;
    for (const unwind_mapping& mapping : ListedMappings(id)) {
      if (!HasTable(mapping)) continue;
      if (!IsRight(mapping)) return Lists::kWrong;
      covered += mapping.size;
    }
    if (covered == 0) return Lists::kWithoutTable;
    return covered >= table_.size ? Lists::kRight : Lists::kWrong;
  }

  static bool HasTable(const unwind_mapping& mapping) {
    return mapping.shard != UNWIND_NO_TABLE && mapping.shard != UNWIND_PENDING;
  }

  // The place of its list's header.
  std::optional<uint32_t> PlaceOfList(const ksym::ProcessId& id) const {
    const unwind_process key = {
        .start_ns = id.start_ns, .tgid = id.pid, .exec_count = id.exec_count};
    uint64_t place = 0;
    if (bpf_map_lookup_elem(processes_.get(), &key, &place) != 0) return {};
    return static_cast<uint32_t>(place);
  }
  bool HasList(const ksym::ProcessId& id) const {
    return PlaceOfList(id).has_value();
  }

  std::vector<unwind_mapping> ListedMappings(const ksym::ProcessId& id) const {
    std::vector<unwind_mapping> listed;
    const auto place = PlaceOfList(id);
    if (!place) return listed;
    uint32_t at = *place;
    unwind_list_header header = {};
    bpf_map_lookup_elem(mappings_.get(), &at, &header);
    EXPECT_EQ(header.start_ns, id.start_ns);
    EXPECT_EQ(header.tgid, id.pid);
    for (uint32_t i = 0; i < header.mappings; ++i) {
      ++at;
      bpf_map_lookup_elem(mappings_.get(), &at, &listed.emplace_back());
    }
    return listed;
  }

  // Whether each place of the mapping leads to its row.
  bool IsRight(const unwind_mapping& mapping) const {
    const std::vector<uint64_t> slots = ReadShard(mapping.shard);
    const auto number = [&](uint64_t block) {
      return slots.at(mapping.index + block / 4) >> (16 * (block % 4)) & 0xffff;
    };
    for (uint64_t at = 0; at < mapping.size; at += 61) {
      const uint64_t pc = mapping.start + at - mapping.base;
      const uint64_t block = (pc >> UNWIND_BLOCK_SHIFT) - mapping.first_block;
      uint64_t row = mapping.rows + number(block);
      const uint64_t last = mapping.rows + number(block + 1);
      while (row < last && (slots.at(row + 1) & 0xffffffff) <= pc) ++row;
      const auto found = std::bit_cast<ksym::UnwindRow>(slots.at(row));
      ksym::UnwindRow right = *FindUnwindRow(table_, pc);
      right.pc = found.pc;  // that of a piece's first row is the piece's
      if (found != right) return false;
    }
    return true;
  }

  std::vector<uint64_t> ReadShard(uint32_t shard) const {
    uint32_t id = 0;
    bpf_map_lookup_elem(shards_.get(), &shard, &id);
    const ksym::UniqueFd map(bpf_map_get_fd_by_id(id));
    std::vector<uint64_t> slots(UNWIND_SHARD_SLOTS);
    const uint32_t whole = 0;
    bpf_map_lookup_elem(map.get(), &whole, slots.data());
    return slots;
  }

  ksym::UniqueFd processes_, mappings_, shards_;
  std::string directory_;
  std::map<uint64_t, ksym::Mapping> mappings_of_;  // by start_ns
  ksym::ElfSegment code_;
  ksym::UnwindTable table_;
  size_t turns_ = 0;
  std::optional<UnwindTables> tables_;
};

}  // namespace profd
