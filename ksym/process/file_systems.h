// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace ksym {

// One line of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
struct Mount {
  uint32_t id = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  std::string point;  // absolute, from the process's root
  std::string type;   // "ext4", "fuse.sshfs"

  friend bool operator==(const Mount&, const Mount&) = default;
};

// Anybody can mount any number in a namespace of one's own. Nothing is
// known of a number that has more than one.
inline constexpr size_t kMaxMounts = size_t{1} << 14;
inline constexpr size_t kMaxMountinfoBytes = size_t{2} << 20;

// The mounts that the text tells of, in its order. A line that is not of this
// form is skipped:
//   36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
// Escapes (\040) in the path are decoded. kLimit: more than kMaxMounts.
Result<std::vector<Mount>> ParseMountinfo(std::string_view text);

// Whether files of that type are this kernel's own or on a device of this
// machine: such a file system answers without asking another program or
// machine. Those that are not known do not. An overlay has the type of none.
bool IsLocalType(std::string_view type);

// Tells files that can be asked for without fear from those on file systems
// that another program or machine answers for: FUSE, NFS and their like. Who
// asks these waits as long as they please, and often cannot be killed.
//
// /proc/PID/mountinfo asks no file system and says which type is behind a
// device or a mount. It is read once, and again when poll(2) says that it has
// changed: first that of this process, whose devices mean the same everywhere,
// then that of the process that has the file. An overlay is local where nobody
// without privileges can have mounted it. Thread-safe; cost: 0.2 us if the
// mounts are known, some us more for another namespace, else 3 us for each of
// them.
class FileSystems {
 public:
  FileSystems();
  FileSystems(const FileSystems&) = delete;
  FileSystems& operator=(const FileSystems&) = delete;
  ~FileSystems();

  // Whether the device of a mapping of the process is local.
  bool IsLocalDevice(uint32_t pid, uint32_t device_major,
                     uint32_t device_minor);
  // Whether a path of the process (0: of this one) leads through local file
  // systems only, if there is no link in it. It is absolute.
  bool IsLocalPath(uint32_t pid, std::string_view path);
  // Whether a file that is held (O_PATH) is local. Does not ask the file system
  // either.
  bool IsLocalFile(uint32_t pid, int fd);

  // Lets go of what is known of other namespaces, once it is a second old:
  // while it is known a namespace does not end. To be called now and then.
  void Sweep();

  // So many namespaces are known at once.
  static constexpr size_t kMaxTables = 16;
  // Reading the mounts of other namespaces may take so much time at once, and
  // so much of each second. Beyond it what is not known is not local.
  static constexpr std::chrono::milliseconds kReadingAtOnce{100};
  static constexpr std::chrono::milliseconds kReadingPerSecond{20};

 private:
  using Clock = std::chrono::steady_clock;
  struct Table;
  // Mount namespace and the root in it, as the links in /proc/PID say.
  using Place = std::pair<std::string, std::string>;

  static Place PlaceOf(const std::string& directory);
  const Table& Own();
  const Table* TableOf(uint32_t pid);
  bool MayRead();
  template <typename Find>
  bool AskTables(uint32_t pid, const Find& find);

  const Place own_place_;
  const uint64_t shared_memory_;  // the device of memfds; 0: not known
  std::mutex mutex_;              // of all below
  std::unique_ptr<Table> own_;
  std::map<Place, std::unique_ptr<Table>> tables_;
  std::chrono::nanoseconds reading_left_ = kReadingAtOnce;
  Clock::time_point refilled_;
};

}  // namespace ksym
