// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/unwind_tables.h"

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/unwind/kernel_unwind_maps.h"
#include "daemon/unwind/table_builder.h"
#include "ksym/base/file.h"
#include "ksym/base/unique_fd.h"
#include "ksym/unwind/unwind_table.h"

namespace profd {
namespace {

using ksym::Address;
using ksym::FileOffset;
using ksym::ProcessId;
using ksym::UniqueFd;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A shard has room for two tables like this one's, and not for three.
constexpr const char* kLibrary = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
// A process is not sampled for so long: its tables may go.
constexpr milliseconds kIdle(2100);

// An array whose memory can be mapped.
UniqueFd CreateArray(uint32_t value_bytes, uint32_t entries) {
  bpf_map_create_opts options = {};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  return UniqueFd(bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_test", 4,
                                 value_bytes, entries, &options));
}

UniqueFd CreateProcesses() {
  return UniqueFd(bpf_map_create(BPF_MAP_TYPE_HASH, "unwind_test",
                                 sizeof(unwind_process), 8, 16, nullptr));
}

UniqueFd CreateShards(uint32_t entries) {
  const UniqueFd inner = CreateArray(8, UNWIND_SHARD_SLOTS);
  bpf_map_create_opts options = {};
  options.sz = sizeof(options);
  options.inner_map_fd = static_cast<uint32_t>(inner.get());
  return UniqueFd(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "unwind_test", 4,
                                 4, entries, &options));
}

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
  ProcessId Start(uint64_t number) {
    const std::string path = directory_ + "/" + std::to_string(number);
    std::filesystem::copy_file(kLibrary, path);
    struct stat status = {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    ksym::Mapping mapping;
    mapping.start = Address{0x7f00'0000'0000 + (number << 32)};
    mapping.end = mapping.start + code_.file_size;
    mapping.file_offset = code_.file_offset;
    mapping.device_major = major(status.st_dev);
    mapping.device_minor = minor(status.st_dev);
    mapping.inode = status.st_ino;
    mapping.path = path;
    const auto pid = static_cast<uint32_t>(::getpid());
    const ProcessId id = {.pid = pid, .exec_count = 0, .start_ns = number};
    tables_->Update({.id = id, .mappings = {mapping}});
    tables_->NoteSample(id, SteadyClock::now());
    mappings_of_[number] = mapping;
    return id;
  }

  // What the capture does between two drains, while these are sampled.
  void Poll(const std::vector<ProcessId>& sampled, int times = 1) {
    for (int i = 0; i < times; ++i) {
      // Without a table the sampler copies the stack, which is walked.
      for (const ProcessId& id : sampled) {
        if (ListOf(id) != Lists::kRight) {
          tables_->CodeOf(id.pid, mappings_of_[id.start_ns]);
        }
      }
      const auto now = SteadyClock::now();
      for (const ProcessId& id : sampled) tables_->NoteSample(id, now);
      tables_->Build(seconds(20), now + seconds(20));
      while (tables_->IsBuilding()) tables_->WaitForTable(seconds(1));
      tables_->Build(seconds(20), now + seconds(20));
      tables_->Recycle();
    }
  }

  // The mapping of a file that is nowhere.
  ksym::Mapping Missing() const {
    ksym::Mapping mapping = mappings_of_.begin()->second;
    mapping.start = Address{0x7e00'0000'0000};
    mapping.end = mapping.start + code_.file_size;
    mapping.inode += 1'000'000'000;
    mapping.path = "/nowhere/at/all";
    return mapping;
  }

  // Bytes of code for which the sampler would find tables.
  uint64_t CoveredBy(const ProcessId& id) const {
    uint64_t covered = 0;
    for (const unwind_mapping& mapping : ListedMappings(id)) {
      if (HasTable(mapping)) covered += mapping.size;
    }
    return covered;
  }

  enum class Lists { kNone, kWithoutTable, kRight, kWrong };

  // What the sampler would find for the process.
  Lists ListOf(const ProcessId& id) const {
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
  std::optional<uint32_t> PlaceOfList(const ProcessId& id) const {
    const unwind_process key = {
        .start_ns = id.start_ns, .tgid = id.pid, .exec_count = id.exec_count};
    uint64_t place = 0;
    if (bpf_map_lookup_elem(processes_.get(), &key, &place) != 0) return {};
    return static_cast<uint32_t>(place);
  }
  bool HasList(const ProcessId& id) const {
    return PlaceOfList(id).has_value();
  }

  std::vector<unwind_mapping> ListedMappings(const ProcessId& id) const {
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
    const UniqueFd map(bpf_map_get_fd_by_id(id));
    std::vector<uint64_t> slots(UNWIND_SHARD_SLOTS);
    for (uint32_t i = 0; i < slots.size(); ++i) {
      bpf_map_lookup_elem(map.get(), &i, &slots[i]);
    }
    return slots;
  }

  UniqueFd processes_, mappings_, shards_;
  std::string directory_;
  std::map<uint64_t, ksym::Mapping> mappings_of_;  // by start_ns
  ksym::ElfSegment code_;
  ksym::UnwindTable table_;
  size_t turns_ = 0;
  std::optional<UnwindTables> tables_;
};

// Whoever calls Build() gets a turn before each file and each of its pieces.
TEST_F(UnwindTablesTest, GivesItsCallerTurns) {
  const ProcessId id = Start(1);
  EXPECT_EQ(turns_, 0u);
  Poll({id});
  ASSERT_EQ(ListOf(id), Lists::kRight);
  EXPECT_GE(turns_, 2u);
}

// When memory ends, those who were not sampled for a while lose their tables to
// those who are, and get them again when they are sampled; each step is
// counted, and no process ever has a wrong row.
TEST_F(UnwindTablesTest, EvictsAndRecovers) {
  const ProcessId a = Start(1);
  const ProcessId b = Start(2);
  Poll({a, b});
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_EQ(ListOf(b), Lists::kRight);
  EXPECT_EQ(tables_->statistics().files_refused, 0u);

  // All are sampled: the third has to do without.
  const ProcessId c = Start(3);
  Poll({a, b, c}, 2);
  EXPECT_EQ(ListOf(c), Lists::kWithoutTable);
  EXPECT_EQ(tables_->statistics().files_refused, 1u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);

  // The first is idle: the third gets its room.
  std::this_thread::sleep_for(kIdle);
  Poll({b, c}, 3);
  EXPECT_EQ(ListOf(a), Lists::kNone);
  EXPECT_EQ(ListOf(b), Lists::kRight);
  EXPECT_EQ(ListOf(c), Lists::kRight);
  EXPECT_EQ(tables_->statistics().processes_evicted, 1u);
  EXPECT_EQ(tables_->statistics().files_evicted, 1u);

  // It comes back, and the second is idle.
  Poll({a, c}, 2);
  EXPECT_EQ(ListOf(a), Lists::kWithoutTable);
  std::this_thread::sleep_for(kIdle);
  Poll({a, c}, 3);
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_EQ(ListOf(b), Lists::kNone);
  EXPECT_EQ(ListOf(c), Lists::kRight);
  EXPECT_EQ(tables_->statistics().processes_evicted, 2u);
  EXPECT_EQ(tables_->statistics().files_refused, 2u);
}

// What no stack leads into is neither opened nor built. Once one does, all who
// map it get its table.
TEST_F(UnwindTablesTest, BuildsWhatStacksLeadInto) {
  const ProcessId a = Start(1);
  const ProcessId b = {.pid = a.pid, .exec_count = 0, .start_ns = 2};
  tables_->Update({.id = b, .mappings = {mappings_of_[1]}});
  Start(3);
  for (int i = 0; i < 3; ++i) {
    tables_->Build(seconds(20), SteadyClock::now() + seconds(20));
    EXPECT_FALSE(tables_->IsBuilding());
  }
  EXPECT_EQ(tables_->statistics().files, 0u);
  EXPECT_EQ(tables_->statistics().milliseconds, 0);

  EXPECT_FALSE(tables_->CodeOf(a.pid, mappings_of_[1]));  // to come
  Poll({});
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_EQ(ListOf(b), Lists::kRight);
  EXPECT_EQ(tables_->statistics().files, 1u);
  const auto code = tables_->CodeOf(a.pid, mappings_of_[1]);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->kind, ksym::CodeAt::Kind::kTable);
}

// All files of a process whose stacks could not be followed are built, and of
// no other.
TEST_F(UnwindTablesTest, BuildsAllOfAProcess) {
  const ProcessId a = Start(1);
  const ProcessId b = Start(2);
  Start(3);
  tables_->Update({.id = a, .mappings = {mappings_of_[1], mappings_of_[2]}});
  tables_->WantAll({.pid = a.pid, .exec_count = 0, .start_ns = 4});  // unknown
  Poll({});
  EXPECT_EQ(tables_->statistics().files, 0u);
  tables_->WantAll(a);
  Poll({});
  EXPECT_EQ(tables_->statistics().files, 2u);
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_EQ(ListOf(b), Lists::kRight);
}

// What was placed for one process is published for the others that map it, also
// while they wait for something else.
TEST_F(UnwindTablesTest, PublishesWhatWasPlacedForOthers) {
  const ProcessId a = Start(1);
  const ProcessId b = Start(2);
  ksym::Mapping missing = Missing();
  tables_->Update(
      {.id = b, .mappings = {mappings_of_[1], mappings_of_[2], missing}});
  tables_->CodeOf(b.pid, mappings_of_[2]);
  tables_->CodeOf(b.pid, missing);
  Poll({b}, 2);
  EXPECT_EQ(ListOf(b), Lists::kRight);
  EXPECT_LT(CoveredBy(b), 2 * table_.size);
  Poll({a, a, a});
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_GE(CoveredBy(b), 2 * table_.size);
}

// A process whose list has no room gets it when others are not sampled any
// more.
TEST_F(UnwindTablesTest, FindsRoomForLists) {
  const ProcessId first = Start(1);
  std::vector<ProcessId> all = {first};
  for (uint32_t i = 1; i < kSizes.processes + 4; ++i) {
    ProcessId id = first;
    id.exec_count = i;
    tables_->Update({.id = id, .mappings = {mappings_of_[1]}});
    tables_->NoteSample(id, SteadyClock::now());
    all.push_back(id);
  }
  Poll(all, 3);
  std::vector<ProcessId> without;
  for (const ProcessId& id : all) {
    if (ListOf(id) != Lists::kRight) without.push_back(id);
  }
  ASSERT_EQ(without.size(), 4u);
  EXPECT_GE(tables_->statistics().processes_refused, 4u);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);

  std::this_thread::sleep_for(kIdle);
  Poll(without, 10);
  for (const ProcessId& id : without) EXPECT_EQ(ListOf(id), Lists::kRight);
  EXPECT_EQ(tables_->statistics().processes_evicted, 4u);
}

// A file that one process can no more be asked for is opened through another
// that maps it; what nobody has is tried again after a while.
TEST_F(UnwindTablesTest, OpensFilesThroughWhoIsThere) {
  const ProcessId a = Start(1);
  if (mappings_of_[1].device_major == 0) {
    GTEST_SKIP() << "the file system of " << directory_
                 << " has no device: the path tells its files apart";
  }
  constexpr uint32_t kGone = 0x7fffffff;
  ksym::Mapping gone = mappings_of_[1];
  gone.path = "/nowhere/at/all";
  EXPECT_FALSE(tables_->CodeOf(kGone, gone));  // to come
  Poll({});
  EXPECT_EQ(ListOf(a), Lists::kRight);
  EXPECT_EQ(tables_->statistics().files_failed, 0u);
}

// A table that finds no room is told of once, with its file and whom to ask.
TEST_F(UnwindTablesTest, TellsWhichFileFindsNoRoom) {
  const std::vector<ProcessId> all = {Start(1), Start(2), Start(3)};
  Poll(all, 3);
  ASSERT_EQ(tables_->statistics().files_refused > 0, true);
  const std::vector<std::string> warnings = tables_->TakeWarnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find(directory_ + "/"), std::string::npos);
  EXPECT_NE(warnings[0].find("(of user " + std::to_string(::getuid()) + ")"),
            std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[0].find("no room"), std::string::npos) << warnings[0];
  Poll(all, 3);
  EXPECT_TRUE(tables_->TakeWarnings().empty());
}

TEST_F(UnwindTablesTest, OpensFilesWhenTheyAreThere) {
  const ProcessId a = Start(1);
  const std::string path = mappings_of_[1].path;
  std::filesystem::rename(path, path + " elsewhere");
  for (int i = 0; i < 100; ++i) {
    const auto code = tables_->CodeOf(a.pid, mappings_of_[1]);
    ASSERT_TRUE(code);
    EXPECT_EQ(code->kind, ksym::CodeAt::Kind::kNoTable);
  }
  // Once, as far as the file is concerned.
  EXPECT_EQ(tables_->statistics().files_failed, 0u);
  Poll({a}, 20);
  EXPECT_EQ(tables_->statistics().files_failed, 1u);
  EXPECT_EQ(ListOf(a), Lists::kWithoutTable);

  // A process with stacks that were copied finds it at once.
  std::filesystem::rename(path + " elsewhere", path);
  EXPECT_FALSE(tables_->CodeOf(a.pid, mappings_of_[1]));
  Poll({});
  EXPECT_EQ(ListOf(a), Lists::kRight);
}

// So does, after a while, a process whose stacks end at code without a table.
TEST_F(UnwindTablesTest, TriesAgainToOpen) {
  const ProcessId a = Start(1);
  const std::string path = mappings_of_[1].path;
  std::filesystem::rename(path, path + " elsewhere");
  tables_->WantAll(a);
  Poll({}, 20);
  EXPECT_EQ(ListOf(a), Lists::kWithoutTable);
  std::filesystem::rename(path + " elsewhere", path);
  Poll({}, 2);
  EXPECT_EQ(ListOf(a), Lists::kWithoutTable);
  std::this_thread::sleep_for(kIdle);
  tables_->NoteSample(a, SteadyClock::now());
  Poll({}, 2);
  EXPECT_EQ(ListOf(a), Lists::kRight);
}

// An overlay's layers number their files alike: what has the number of another
// file does not get its table.
TEST_F(UnwindTablesTest, KeepsLayersApart) {
  std::string memory = "/dev/shm/unwind_tables_XXXXXX";
  if (::mkdtemp(memory.data()) == nullptr) GTEST_SKIP() << "needs /dev/shm";
  std::filesystem::remove_all(std::exchange(directory_, memory));
  const ProcessId a = Start(1);
  if (mappings_of_[1].device_major != 0) GTEST_SKIP() << "no tmpfs there";
  Poll({a});
  EXPECT_EQ(ListOf(a), Lists::kRight);
  ksym::Mapping other = mappings_of_[1];
  other.path = directory_ + "/of another layer";
  const auto code = tables_->CodeOf(a.pid, other);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->kind, ksym::CodeAt::Kind::kNoTable);
}

// A process with mounts of its own, in a directory that is to become a file
// system.
class MountedProcess {
 public:
  explicit MountedProcess(const std::string& script) {
    int ends[2] = {};
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      const std::string all = script + "; echo; exec sleep 60";
      ::execlp("unshare", "unshare", "--mount", "sh", "-ec", all.c_str(),
               nullptr);
      ::_exit(1);
    }
    ::close(ends[1]);
    char byte = 0;
    is_ready_ = ::read(ends[0], &byte, 1) == 1;
    ::close(ends[0]);
  }
  ~MountedProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  MountedProcess(const MountedProcess&) = delete;
  MountedProcess& operator=(const MountedProcess&) = delete;

  bool is_ready() const { return is_ready_; }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }

 private:
  pid_t pid_ = -1;
  bool is_ready_ = false;
};

// A user's file that has the numbers of root's, where an overlay of the user's
// shows it, has a table for the user's process alone, whoever comes first.
TEST_F(UnwindTablesTest, KeepsUsersApart) {
  const std::string path = directory_ + "/lib.so";
  const MountedProcess victim("mount -t tmpfs tmpfs " + directory_ +
                              "; mkdir " + directory_ + "/a; cp " + kLibrary +
                              " " + path);
  const std::string root = "/proc/" + std::to_string(victim.pid()) + "/root";
  struct stat status = {};
  if (!victim.is_ready() || ::stat((root + path).c_str(), &status) != 0) {
    GTEST_SKIP() << "needs mount namespaces";
  }
  const MountedProcess attacker(
      "mount -t tmpfs tmpfs /mnt; mkdir /mnt/a; "
      "cp /usr/lib/x86_64-linux-gnu/libc.so.6 /mnt/a/lib.so; "
      "chown 54321 /mnt/a/lib.so; mkdir /mnt/b; "
      "mount -t overlay -o lowerdir=/mnt/a:/mnt/b overlay " +
      directory_);
  struct stat other = {};
  const std::string shown =
      "/proc/" + std::to_string(attacker.pid()) + "/root" + path;
  if (!attacker.is_ready() || ::stat(shown.c_str(), &other) != 0 ||
      other.st_ino != status.st_ino) {
    GTEST_SKIP() << "needs overlays that number files as their layers do";
  }
  ksym::Mapping mapping;
  mapping.start = Address{0x7f00'0000'0000};
  mapping.end = mapping.start + code_.file_size;
  mapping.file_offset = code_.file_offset;
  mapping.device_major = major(status.st_dev);
  mapping.device_minor = minor(status.st_dev);
  mapping.inode = status.st_ino;
  mapping.path = path;
  const ProcessId bad = {.pid = attacker.pid(), .start_ns = 1};
  const ProcessId good = {.pid = victim.pid(), .start_ns = 2};
  for (const ProcessId& id : {bad, good}) {
    mappings_of_[id.start_ns] = mapping;
    tables_->Update({.id = id, .mappings = {mapping}});
    Poll({id}, 3);
  }
  Poll({bad, good}, 3);
  EXPECT_EQ(ListOf(good), Lists::kRight);
  EXPECT_EQ(ListOf(bad), Lists::kWrong);
}

// A process that ended leaves its room at once.
TEST_F(UnwindTablesTest, UsesTheRoomOfWhoIsGone) {
  const ProcessId a = Start(1);
  const ProcessId b = Start(2);
  const ProcessId c = Start(3);
  Poll({a, b}, 1);
  tables_->Forget(a);
  Poll({b, c}, 3);
  std::this_thread::sleep_for(kIdle);
  Poll({b, c}, 3);
  EXPECT_EQ(ListOf(a), Lists::kNone);
  EXPECT_EQ(ListOf(b), Lists::kRight);
  EXPECT_EQ(ListOf(c), Lists::kRight);
  EXPECT_EQ(tables_->statistics().processes_evicted, 0u);
}

}  // namespace
}  // namespace profd
