// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/file_systems.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace ksym {
namespace {

using std::chrono::nanoseconds;

// The inode of the initial user namespace: PROC_USER_INIT_INO of
// linux/proc_ns.h.
constexpr ino_t kInitialUserNamespace = 0xEFFFFFFD;
constexpr std::chrono::seconds kKeep(1);
constexpr std::string_view kOverlay = "overlay";

constexpr auto kLocalTypes = std::to_array<std::string_view>(
    {"bcachefs",  "btrfs",   "cramfs", "devtmpfs", "erofs", "exfat",
     "ext2",      "ext3",    "ext4",   "f2fs",     "hfs",   "hfsplus",
     "hugetlbfs", "iso9660", "jffs2",  "jfs",      "minix", "msdos",
     "nilfs2",    "ntfs3",   "ramfs",  "reiserfs", "romfs", "rootfs",
     "squashfs",  "tmpfs",   "ubifs",  "udf",      "vfat",  "xfs",
     "zfs"});
static_assert(std::ranges::is_sorted(kLocalTypes));

uint64_t DeviceOf(uint32_t device_major, uint32_t device_minor) {
  return uint64_t{device_major} << 32 | device_minor;
}

// "\040" and its like.
std::string Decoded(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    const bool is_escape = text.front() == '\\' && text.size() >= 4;
    const auto code = is_escape ? ParseUnsigned<uint8_t>(text.substr(1, 3), 8)
                                : std::optional<uint8_t>();
    decoded += code ? static_cast<char>(*code) : text.front();
    text.remove_prefix(code ? 4 : 1);
  }
  return decoded;
}

std::optional<Mount> ParseMount(std::string_view line) {
  Mount mount;
  const auto id = ParseUnsigned<uint32_t>(TakeField(line, ' '), 10);
  TakeField(line, ' ');  // the parent's
  const auto device_major = ParseUnsigned<uint32_t>(TakeField(line, ':'), 10);
  const auto device_minor = ParseUnsigned<uint32_t>(TakeField(line, ' '), 10);
  TakeField(line, ' ');  // which directory of it
  mount.point = Decoded(TakeField(line, ' '));
  TakeField(line, ' ');  // options
  if (!id || !device_major || !device_minor || !mount.point.starts_with('/')) {
    return std::nullopt;
  }
  while (!line.empty() && TakeField(line, ' ') != "-") {
  }
  mount.type = TakeField(line, ' ');
  if (mount.type.empty()) return std::nullopt;
  mount.id = *id;
  mount.device_major = *device_major;
  mount.device_minor = *device_minor;
  return mount;
}

bool IsBelow(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string ReadLink(const std::string& path) {
  std::array<char, 4096> text;  // PATH_MAX
  const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
  return size < 0 ? std::string() : std::string(text.data(), size);
}

std::string DirectoryOf(uint32_t pid) { return "/proc/" + std::to_string(pid); }

// Whether only who has privileges in the initial user namespace can mount there
// what others do not let him.
bool IsOfInitialUser(const std::string& directory) {
  const UniqueFd mounts(
      ::open((directory + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
  if (!mounts.valid()) return false;
  const UniqueFd owner(::ioctl(mounts.get(), NS_GET_USERNS));
  struct stat status = {};
  return owner.valid() && ::fstat(owner.get(), &status) == 0 &&
         status.st_ino == kInitialUserNamespace;
}

// No mountinfo shows the file system of memfds.
uint64_t DeviceOfSharedMemory() {
  const UniqueFd memory(::memfd_create("device", MFD_CLOEXEC));
  struct stat status = {};
  if (!memory.valid() || ::fstat(memory.get(), &status) != 0) return 0;
  return DeviceOf(major(status.st_dev), minor(status.st_dev));
}

nanoseconds OwnCpuTime() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

}  // namespace

// The mounts of one namespace, as they are seen from one root.
struct FileSystems::Table {
  UniqueFd fd;  // of mountinfo; invalid: nothing is known
  Clock::time_point read;
  std::map<uint64_t, bool> devices;  // whether they are local
  std::map<uint64_t, bool> ids;
  bool has_local_root = false;
  std::vector<std::string> others;  // where those are that are not local

  // The kernel remembers for each open mountinfo whether it told.
  bool IsCurrent() const {
    if (!fd.valid()) return false;
    pollfd changes = {.fd = fd.get(), .events = POLLPRI, .revents = 0};
    return ::poll(&changes, 1, 0) == 0;
  }

  // Nothing is known if it cannot be read or is too long.
  void Read(const std::string& directory) {
    *this = Table();
    read = Clock::now();
    // Opened before it is read, and kept: what is mounted meanwhile is told of
    // by poll(2) later.
    auto file = OpenForRead(directory + "/mountinfo");
    if (!file) return;
    const auto text = ReadAll(file->get(), kMaxMountinfoBytes);
    if (!text) return;
    const auto mounts = ParseMountinfo(*text);
    if (!mounts) return;
    const bool is_of_initial_user = IsOfInitialUser(directory);
    for (const Mount& mount : *mounts) {
      const bool is_local = IsLocalType(mount.type) ||
                            (mount.type == kOverlay && is_of_initial_user);
      devices[DeviceOf(mount.device_major, mount.device_minor)] = is_local;
      ids[mount.id] = is_local;
      if (!is_local) others.push_back(mount.point);
      has_local_root |= is_local && mount.point == "/";
    }
    fd = std::move(*file);
  }
};

bool IsLocalType(std::string_view type) {
  return std::ranges::binary_search(kLocalTypes, type);
}

Result<std::vector<Mount>> ParseMountinfo(std::string_view text) {
  std::vector<Mount> mounts;
  while (!text.empty()) {
    auto mount = ParseMount(TakeField(text, '\n'));
    if (!mount) continue;
    if (mounts.size() == kMaxMounts) {
      return Fail(ErrorCode::kLimit, "more than " + std::to_string(kMaxMounts) +
                                         " mounts in a namespace");
    }
    mounts.push_back(std::move(*mount));
  }
  return mounts;
}

FileSystems::Place FileSystems::PlaceOf(const std::string& directory) {
  return {ReadLink(directory + "/ns/mnt"), ReadLink(directory + "/root")};
}

FileSystems::FileSystems()
    : own_place_(PlaceOf("/proc/self")),
      shared_memory_(DeviceOfSharedMemory()),
      own_(std::make_unique<Table>()),
      refilled_(Clock::now()) {}

FileSystems::~FileSystems() = default;

const FileSystems::Table& FileSystems::Own() {
  if (!own_->IsCurrent()) own_->Read("/proc/self");
  return *own_;
}

bool FileSystems::MayRead() {
  const auto now = Clock::now();
  reading_left_ = std::min<nanoseconds>(
      kReadingAtOnce,
      reading_left_ +
          (now - refilled_) / (std::chrono::seconds(1) / kReadingPerSecond));
  refilled_ = now;
  return reading_left_ > nanoseconds(0);
}

// Null: nothing is known, and may not be found out now.
const FileSystems::Table* FileSystems::TableOf(uint32_t pid) {
  const Place place = PlaceOf(DirectoryOf(pid));
  if (place.first.empty() || place.second.empty()) return nullptr;
  if (place == own_place_) return &Own();
  const auto known = tables_.find(place);
  if (known != tables_.end() && known->second->IsCurrent()) {
    return known->second.get();
  }
  if (!MayRead()) return nullptr;
  if (known == tables_.end() && tables_.size() >= kMaxTables) {
    tables_.erase(std::ranges::min_element(
        tables_, {}, [](const auto& entry) { return entry.second->read; }));
  }
  auto& table = tables_[place];
  if (!table) table = std::make_unique<Table>();
  const nanoseconds begin = OwnCpuTime();
  table->Read(DirectoryOf(pid));
  reading_left_ -= OwnCpuTime() - begin;
  return table.get();
}

// The own table knows best: a number that is in it means nothing else anywhere.
template <typename Find>
bool FileSystems::AskTables(uint32_t pid, const Find& find) {
  if (const std::optional<bool> is_local = find(Own())) return *is_local;
  const Table* table = pid == 0 ? nullptr : TableOf(pid);
  return table != nullptr && find(*table).value_or(false);
}

bool FileSystems::IsLocalDevice(uint32_t pid, uint32_t device_major,
                                uint32_t device_minor) {
  const uint64_t device = DeviceOf(device_major, device_minor);
  if (device == shared_memory_ && device != 0) return true;
  const std::scoped_lock lock(mutex_);
  return AskTables(pid, [&](const Table& table) -> std::optional<bool> {
    const auto found = table.devices.find(device);
    if (found == table.devices.end()) return std::nullopt;
    return found->second;
  });
}

bool FileSystems::IsLocalPath(uint32_t pid, std::string_view path) {
  if (path.contains("/../") || path.ends_with("/..")) return false;
  const std::scoped_lock lock(mutex_);
  const Table* table = pid == 0 ? &Own() : TableOf(pid);
  if (table == nullptr || !table->has_local_root) return false;
  return std::ranges::none_of(table->others, [&](const std::string& point) {
    return IsBelow(path, point);
  });
}

bool FileSystems::IsLocalFile(uint32_t pid, int fd) {
  // With this flag and for nothing in particular FUSE, NFS and Ceph answer with
  // what they know.
  struct statx status = {};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &status) != 0) {
    return false;
  }
  const uint64_t device = DeviceOf(status.stx_dev_major, status.stx_dev_minor);
  if (device == shared_memory_ && device != 0) return true;
  const bool has_id = (status.stx_mask & STATX_MNT_ID) != 0;
  const std::scoped_lock lock(mutex_);
  return AskTables(pid, [&](const Table& table) -> std::optional<bool> {
    const auto by_device = table.devices.find(device);
    if (by_device != table.devices.end()) return by_device->second;
    const auto by_id = table.ids.find(status.stx_mnt_id);
    if (!has_id || by_id == table.ids.end()) return std::nullopt;
    return by_id->second;
  });
}

void FileSystems::Sweep() {
  const auto now = Clock::now();
  const std::scoped_lock lock(mutex_);
  std::erase_if(tables_, [&](const auto& entry) {
    return now - entry.second->read > kKeep;
  });
}

}  // namespace ksym
